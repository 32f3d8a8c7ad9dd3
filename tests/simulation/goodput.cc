#include "tests/simulation/goodput.h"

#include <algorithm>
#include <cmath>

namespace muster::simulation {

Duration Kept(Duration length, const CheckpointCosts& costs) {
  const Duration trains = length - costs.restart - costs.until_committed;
  if (trains <= Duration(0)) return Duration(0);
  return trains / (costs.interval + costs.pause) * costs.interval;
}

double UsefulFraction(const Timeline& timeline, int full_nodes, const CheckpointCosts& costs) {
  double useful = 0;
  for (const Stretch& stretch : timeline.stretches) {
    const Duration length = stretch.ends - stretch.begins;
    Duration kept = Kept(length, costs);
    if (stretch.ends >= timeline.horizon) {
      // What it will keep of its last interval isn't known yet; nothing was lost so far.
      const Duration trains = std::max(length - costs.restart, Duration(0));
      const Duration cycle = costs.interval + costs.pause;
      kept = trains / cycle * costs.interval + std::min(trains % cycle, costs.interval);
    }
    useful += static_cast<double>(kept.count()) * stretch.nodes / full_nodes;
  }
  return useful / static_cast<double>(timeline.horizon.count());
}

double ExpectedFraction(Duration mtbf, Duration outage, const CheckpointCosts& costs) {
  const auto in_mtbf = [&](Duration d) {
    return static_cast<double>(d.count()) / static_cast<double>(mtbf.count());
  };
  return in_mtbf(costs.interval) / (std::exp(in_mtbf(outage + costs.restart)) *
                                    std::expm1(in_mtbf(costs.interval + costs.pause)));
}

}  // namespace muster::simulation
