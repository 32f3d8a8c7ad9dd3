// What `muster run --hosts` tells the muster that it has started on another host, over that one's
// standard input: nothing of it is ever on a command line, where others could see it and a shell
// could misread it. First one plan, then, as long as the job runs, lines with signals; the end of
// the input ends the job there. Bytes are kept as they are. Pure.
//
//   "muster plan 1 0000000000001234\n"   and so many bytes, as EncodeRemotePlan() makes them
//   "signal 15\n"                        any number of times
#ifndef MUSTER_LAUNCHER_SSH_REMOTE_PLAN_H_
#define MUSTER_LAUNCHER_SSH_REMOTE_PLAN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

struct RemotePlan {
  // How the launching side calls this host.
  std::string host;
  // Begins each record that isn't output (launcher/ssh/remote_record.h); of this job alone.
  std::string mark{};
  std::string folder{};
  // "NAME=value"; on top of what the host has by itself.
  std::vector<std::string> environment{};
  // Those after `muster run`.
  std::vector<std::string> words{};
  friend bool operator==(const RemotePlan&, const RemotePlan&) = default;
};

// What comes before the plan's bytes has this length.
inline constexpr size_t kPlanHeaderBytes = 31;
// More than the arguments and the environment of a process can have.
inline constexpr size_t kMaxPlanBytes = 16 << 20;

// Header and plan.
std::string EncodeRemotePlan(const RemotePlan& plan);
// The number of bytes behind the header. InvalidArgument: it is none, or too many.
absl::StatusOr<size_t> PlanSize(std::string_view header);
// InvalidArgument: these bytes are no plan.
absl::StatusOr<RemotePlan> DecodeRemotePlan(std::string_view bytes);

std::string EncodeSignal(int number);
// Takes whole lines off the front of `received` until it has found a signal; nothing if there is
// none. Other lines are passed over.
std::optional<int> TakeSignal(std::string& received);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_REMOTE_PLAN_H_
