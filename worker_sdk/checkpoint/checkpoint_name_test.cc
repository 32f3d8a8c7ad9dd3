#include "worker_sdk/checkpoint/checkpoint_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

const char kWorld[] = "000102030405060708090a0b0c0d0e0f";

TEST(CheckpointName, PrintsAndParses) {
  const CheckpointName name{.step = 300, .round = RoundId(2), .world_id = WorldId::FromHex(kWorld)};
  EXPECT_EQ(name.ToString(), std::string("step-300.r2-") + kWorld);
  EXPECT_EQ(CheckpointName::Parse(name.ToString()), name);
  EXPECT_EQ(CheckpointName::ParseTemporary(name.ToString() + ".tmp"), name);
  EXPECT_FALSE(CheckpointName::ParseTemporary(name.ToString()).has_value());
}

TEST(CheckpointName, EverythingElseIsForeign) {
  const std::string world = kWorld;
  for (const std::string& text : std::vector<std::string>{
           "", "lost+found", "step-.r2-" + world, "step--1.r2-" + world, "step-01.r2-" + world,
           "step-+1.r2-" + world, "step-1.r-2-" + world, "step-1.r02-" + world,
           "step-1.r2-" + world + "0", "step-1.r2-" + world.substr(1),
           "step-1.r2-" + world + ".tmp", "Step-1.r2-" + world, "step-1.r2-" + world + "/x",
           "step-99999999999999999999.r2-" + world, "step-1.r2-000102030405060708090A0b0c0d0e0f"}) {
    EXPECT_FALSE(CheckpointName::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace muster
