// Calls on the key-value table of a job's round.
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/server/rendezvous_loop.h"

namespace muster::rendezvous {
namespace {

// Calls that wait for the loop itself, not for a key.
constexpr size_t kMaxTasks = 1u << 17;

}  // namespace

CallId RendezvousLoop::EnqueueCall(
    const std::string& run_id, const CallAnswer& answer,
    std::function<void(Instant, HostedJob&, CallId, CallAnswer)> call) {
  CallId id(++last_id_);
  bool taken = Enqueue(
      [this, run_id, id, answer, call = std::move(call)](Instant now) {
        if (now.IsNever()) return answer(absl::UnavailableError("the rendezvous is shutting down"));
        auto found = jobs_.find(run_id);
        if (found == jobs_.end())
          // Its agents may be on their way to a rendezvous that has come back.
          return answer(
              absl::UnavailableError(absl::StrCat("no job \"", run_id, "\" is known here yet")));
        call(now, *found->second, id, answer);
        NoteDue(*found->second);
      },
      kMaxTasks);
  // The caller may try again elsewhere or later.
  if (!taken) answer(absl::UnavailableError("the rendezvous is shutting down or overloaded"));
  return id;
}

CallId RendezvousLoop::SetKey(RoundScope scope, std::string key, std::string value,
                              const CallAnswer& answer) {
  std::string run_id = scope.run_id;
  return EnqueueCall(run_id, answer,
                     [scope = std::move(scope), key = std::move(key), value = std::move(value)](
                         Instant, HostedJob& job, CallId, const CallAnswer& answer) {
                       job.SetKey(scope, key, value, answer);
                     });
}

CallId RendezvousLoop::GetKey(RoundScope scope, std::string key, Duration wait,
                              const CallAnswer& answer) {
  std::string run_id = scope.run_id;
  return EnqueueCall(run_id, answer,
                     [scope = std::move(scope), key = std::move(key), wait](
                         Instant now, HostedJob& job, CallId call, CallAnswer answer) {
                       job.GetKey(now, call, scope, key, wait, std::move(answer));
                     });
}

CallId RendezvousLoop::Barrier(RoundScope scope, BarrierCall barrier, const CallAnswer& answer) {
  std::string run_id = scope.run_id;
  return EnqueueCall(run_id, answer,
                     [scope = std::move(scope), barrier = std::move(barrier)](
                         Instant now, HostedJob& job, CallId call, CallAnswer answer) {
                       job.Barrier(now, call, scope, barrier, std::move(answer));
                     });
}

void RendezvousLoop::CancelCall(const std::string& run_id, CallId call) {
  Enqueue([this, run_id, call](Instant) {
    auto found = jobs_.find(run_id);
    if (found != jobs_.end()) found->second->CancelCall(call);
  });
}

}  // namespace muster::rendezvous
