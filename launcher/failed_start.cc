#include "launcher/failed_start.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "launcher/addresses.h"
#include "launcher/text.h"
#include "rendezvous/client/admin_client.h"

namespace muster::launcher {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(250);
// Of one try: a host that is down answers nothing.
constexpr Duration kOneTry = std::chrono::seconds(2);

bool IsOwn(const Endpoint& endpoint) {
  absl::StatusOr<std::vector<Address>> resolved = Resolve(endpoint.host);
  return resolved.ok() && std::ranges::any_of(*resolved, IsOwnAddress);
}

}  // namespace

bool TellOthers(const LaunchPlan& plan, const FailedStart& failed) {
  if (plan.terms.max_nodes <= 1 || plan.endpoint.port == 0) return false;
  const Instant end = SystemClock().Now() + failed.patience;
  const bool is_host = plan.hosting == Hosting::kAlways || IsOwn(plan.endpoint);
  rendezvous::AdminClient client(plan.endpoint.host, plan.endpoint.port);
  bool has_said = false;
  while (true) {
    const Duration left = end - SystemClock().Now();
    if (left <= Duration(0)) return false;
    const absl::Status told = client.CannotStart(
        {.run_id = plan.terms.run_id, .node_name = failed.node_name, .reason = failed.reason},
        std::min(left, kOneTry));
    if (told.ok()) return true;
    const bool may_come = absl::IsNotFound(told) || (absl::IsUnavailable(told) && !is_host);
    if (!may_come || left <= kPause) return false;
    if (!std::exchange(has_said, true)) {
      failed.say(Cat("telling the other nodes of job ", plan.terms.run_id, " at ",
                     plan.endpoint.ToString(), ", for at most ",
                     std::chrono::ceil<std::chrono::seconds>(failed.patience).count(), " s"));
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace muster::launcher
