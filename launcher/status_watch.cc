#include "launcher/status_watch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "launcher/status_table.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(250);
// Of one try: a host that is down answers nothing.
constexpr Duration kOneTry = std::chrono::seconds(5);

}  // namespace

StatusWatch::StatusWatch(StatusWatchOptions options)
    : options_(std::move(options)), client_(options_.endpoint.host, options_.endpoint.port) {}

absl::Status StatusWatch::Run(const std::vector<rendezvous::JobReport>& jobs) {
  Learn(jobs);
  while (true) {
    absl::Status end =
        client_.Watch(options_.run_id, [this](const rendezvous::JobEventReport& event) {
          if (!event.state.empty()) states_[event.run_id] = event.state;
          return Print(Cat(event.run_id, ": ", event.text, "\n"));
        });
    if (!could_print_) return absl::OkStatus();
    if (!end.ok() && !absl::IsUnavailable(end)) return end;
    if (AreAllOver()) {
      options_.say(Cat("the rendezvous at ", options_.endpoint.ToString(),
                       " has ended, and what it did is over"));
      return absl::OkStatus();
    }
    absl::Status back = AwaitReturn();
    if (!back.ok() || !could_print_) return back;
  }
}

void StatusWatch::Learn(const std::vector<rendezvous::JobReport>& jobs) {
  states_.clear();
  for (const rendezvous::JobReport& job : jobs) states_[job.run_id] = job.state;
}

bool StatusWatch::AreAllOver() const {
  return !states_.empty() && std::ranges::all_of(states_, [](const auto& job) {
    return job.second == "succeeded" || job.second == "failed";
  });
}

absl::Status StatusWatch::AwaitReturn() {
  const std::string endpoint = options_.endpoint.ToString();
  const std::string bound =
      Cat(std::chrono::ceil<std::chrono::seconds>(options_.patience).count(), " s");
  options_.say(Cat("lost the rendezvous at ", endpoint, "; trying to reach it again for ", bound));
  const Instant end = SystemClock().Now() + options_.patience;
  bool is_there = false;
  for (Duration left = options_.patience; left > Duration(0); left = end - SystemClock().Now()) {
    auto jobs = client_.Jobs(options_.run_id, std::min(left, kOneTry));
    if (jobs.ok()) {
      options_.say(Cat("reached the rendezvous at ", endpoint, " again"));
      Learn(*jobs);
      Print(StatusPage(*jobs));
      return absl::OkStatus();
    }
    // The job's nodes may need a moment to attach to it.
    is_there = absl::IsNotFound(jobs.status());
    std::this_thread::sleep_for(kPause);
  }
  if (is_there) {
    return absl::NotFoundError(Cat("the rendezvous at ", endpoint, " is back, but job \"",
                                   options_.run_id.value_or(""),
                                   "\" hasn't come back to it within ", bound,
                                   ": it has ended, or lost its nodes; their own output tells"));
  }
  return absl::UnavailableError(
      Cat("the rendezvous at ", endpoint, " hasn't come back within ", bound,
          ": if its job has ended, the output of the job's nodes tells how; else start the "
          "rendezvous again there, and watch it anew"));
}

bool StatusWatch::Print(const std::string& text) {
  could_print_ = could_print_ && options_.print(text);
  return could_print_;
}

}  // namespace muster::launcher
