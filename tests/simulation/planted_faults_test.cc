// Proof that the simulation would notice: each fault that is planted into the machines breaks a
// rule within 1,000 seeds, and the same seeds break none without it.
#include "tests/simulation/planted_faults.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::simulation {
namespace {

constexpr uint64_t kFirst = 1;
constexpr uint64_t kSeeds = 1000;

TEST(PlantedFaults, AreAtLeastTen) { EXPECT_GE(std::size(kPlantedFaults), 10u); }

TEST(PlantedFaults, EachIsFoundWithinAThousandSeeds) {
  for (const PlantedFaultName& planted : kPlantedFaults) {
    Finding finding = FindPlanted(planted.fault, kFirst, kSeeds);
    EXPECT_NE(finding.seed, 0u) << planted.name << " was not found";
    RecordProperty(planted.name, finding.broken);
  }
}

TEST(PlantedFaults, NoneIsFoundWhereNoneIsPlanted) {
  Finding finding = FindPlanted(PlantedFault::kNone, kFirst, kSeeds);
  EXPECT_EQ(finding.seed, 0u) << finding.broken;
}

}  // namespace
}  // namespace muster::simulation
