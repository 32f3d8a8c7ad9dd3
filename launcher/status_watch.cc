#include "launcher/status_watch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/visible_text.h"
#include "launcher/status_table.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(250);
// Of one try: a host that is down answers nothing.
constexpr Duration kOneTry = std::chrono::seconds(5);
// The state of a job that the rendezvous knows no more.
constexpr char kForgotten[] = "forgotten";

}  // namespace

StatusWatch::StatusWatch(StatusWatchOptions options)
    : options_(std::move(options)), client_(options_.endpoint.host, options_.endpoint.port) {}

absl::Status StatusWatch::Run() {
  while (true) {
    const absl::Status end = WatchOnce();
    if (!could_print_) return absl::OkStatus();
    if (!end.ok() && !absl::IsUnavailable(end)) return end;
    if (AreAllOver()) {
      options_.say(Cat("the rendezvous at ", options_.endpoint.ToString(),
                       " has ended, and what it did is over"));
      return absl::OkStatus();
    }
    absl::Status back = AwaitReturn();
    if (!back.ok()) return back;
  }
}

absl::Status StatusWatch::WatchOnce() {
  absl::Status asked;
  const absl::Status end = client_.Watch(
      options_.run_id,
      // Not before: nobody would tell of what happens in between.
      [&] {
        auto jobs = client_.Jobs(options_.run_id, kOneTry);
        if (jobs.ok()) {
          Begin(*jobs);
          return Print(StatusPage(*jobs));
        }
        // A job that has just gone may come again.
        if (absl::IsNotFound(jobs.status())) return true;
        asked = jobs.status();
        return false;
      },
      [&](const rendezvous::JobEventReport& event) {
        Take(event);
        return Print(Cat(VisibleText(event.run_id), ": ", VisibleText(event.text), "\n"));
      });
  return asked.ok() ? end : asked;
}

void StatusWatch::Begin(const std::vector<rendezvous::JobReport>& jobs) {
  jobs_.clear();
  for (const rendezvous::JobReport& job : jobs) Learn(job);
}

void StatusWatch::Learn(const rendezvous::JobReport& job) {
  const bool is_blank = job.state == "gathering" && job.round == 0 && job.nodes.empty();
  jobs_[job.run_id] = {.state = is_blank ? kForgotten : job.state,
                       .events_until_empty = job.nodes.size()};
}

void StatusWatch::Take(const rendezvous::JobEventReport& event) {
  if (event.state.empty()) return;
  Job& job = jobs_[event.run_id];
  job.state = event.state;
  // A job that all its nodes leave before they had a round is forgotten, and nothing tells of that.
  // Each that leaves is an event, so to ask after as many as there were nodes is often enough, and
  // costs little for a job of thousands.
  if (event.state != "gathering") return;
  if (job.events_until_empty > 1) {
    --job.events_until_empty;
  } else {
    AskAbout(event.run_id);
  }
}

void StatusWatch::AskAbout(const std::string& run_id) {
  auto jobs = client_.Jobs(run_id, kOneTry);
  if (jobs.ok() && !jobs->empty()) Learn(jobs->front());
  if (absl::IsNotFound(jobs.status())) jobs_[run_id].state = kForgotten;
}

bool StatusWatch::AreAllOver() const {
  return !jobs_.empty() && std::ranges::all_of(jobs_, [](const auto& job) {
    const std::string& state = job.second.state;
    return state == "succeeded" || state == "failed" || state == kForgotten;
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
