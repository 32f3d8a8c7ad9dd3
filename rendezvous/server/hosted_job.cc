#include "rendezvous/server/hosted_job.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/entropy.h"

namespace muster::rendezvous {
namespace {

constexpr size_t kMaxKey = 4096;
constexpr size_t kMaxValue = 1u << 20;
constexpr size_t kMaxRoundBytes = 64u << 20;
// More than the agents of the largest job, should all be between two streams at once.
constexpr size_t kMaxDeparted = 1u << 16;

absl::Status CheckKey(const std::string& key, const char* what) {
  if (key.empty() || key.size() > kMaxKey)
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " must have 1 to ", kMaxKey, " bytes, it has ", key.size()));
  return absl::OkStatus();
}

StepInput FreshInput() { return {Instant(), base::FreshId<WorldId>(), base::FreshId<RoundKey>()}; }

}  // namespace

HostedJob::HostedJob(std::string run_id, const JobOptions& options, Instant started,
                     JobOutlet* outlet)
    : run_id_(std::move(run_id)),
      longest_hold_(options.lease / 3),
      outlet_(outlet),
      machine_(run_id_, options, started),
      step_input_(FreshInput()) {
  // A job that an earlier life saw end.
  if (machine_.IsDone()) done_since_ = started;
}

HostedJob::~HostedJob() { CloseRound(absl::UnavailableError("the rendezvous is shutting down")); }

void HostedJob::Step(Instant now, const JobEvent& event) {
  if (auto* message = std::get_if<SessionMessage>(&event)) {
    if (auto* attach = std::get_if<Attach>(&message->message)) {
      is_claimed_ = true;
      sessions_[message->session] = attach->incarnation;
      incarnations_.insert(attach->incarnation);
    }
  }
  step_input_.now = now;
  for (const JobEffect& effect : machine_.Step(step_input_, event)) Perform(now, effect);
  if (auto* ended = std::get_if<SessionEnded>(&event)) NoteDeparture(ended->session);
  if (!done_since_ && machine_.IsDone()) done_since_ = now;
}

void HostedJob::Perform(Instant now, const JobEffect& effect) {
  if (auto* send = std::get_if<SendMessage>(&effect)) {
    if (std::holds_alternative<Refused>(send->message)) {
      auto refused = sessions_.find(send->session);
      if (refused != sessions_.end()) incarnations_.erase(refused->second);
    }
    Say(send->session, send->message);
  } else if (auto* end = std::get_if<EndSession>(&effect)) {
    Say(end->session, std::nullopt);
  } else if (auto* started = std::get_if<RoundStarted>(&effect)) {
    CloseRound(absl::AbortedError("a newer round began"));
    world_ = started->world;
    table_.emplace(KeyValueTable::Limits{
        .max_key_bytes = kMaxKey, .max_value_bytes = kMaxValue, .max_total_bytes = kMaxRoundBytes});
    step_input_ = StepInput{step_input_.now, base::FreshId<WorldId>(), base::FreshId<RoundKey>()};
    outlet_->RoundBegins(run_id_);
  } else if (auto* keep = std::get_if<KeepRecord>(&effect)) {
    const KeepId id(++last_keep_.value);
    if (!outlet_->Keep(run_id_, id, keep->record) || !keep->before_the_rest) return;
    if (!does_disk_answer_) return;
    if (!held_) held_ = Held{id, now + longest_hold_, {}};
    held_->keep = id;
  } else if (auto* over = std::get_if<RoundOver>(&effect)) {
    CloseRound(absl::AbortedError(
        absl::StrCat("round ", over->world.round.value, " is over: ", over->reason)));
  } else if (auto* record = std::get_if<Record>(&effect)) {
    outlet_->Report(run_id_, world_.round, record->text);
  }
}

void HostedJob::Say(SessionId session, std::optional<RendezvousMessage> message) {
  if (held_) {
    held_->utterances.push_back({session, std::move(message)});
  } else if (message) {
    outlet_->Send(session, *message);
  } else {
    outlet_->End(session);
  }
}

void HostedJob::Kept(KeepId keep) {
  if (!does_disk_answer_ && keep == last_keep_) {
    does_disk_answer_ = true;
    outlet_->Report(run_id_, world_.round,
                    absl::StrCat("job ", run_id_, ": the state directory answers again"));
  }
  if (held_ && keep >= held_->keep) ReleaseHeld();
}

void HostedJob::ReleaseHeld() {
  const Held held = *std::exchange(held_, std::nullopt);
  for (const Utterance& utterance : held.utterances) Say(utterance.session, utterance.message);
}

void HostedJob::NoteDeparture(SessionId session) {
  auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  departed_.push_back(found->second);
  sessions_.erase(found);
  if (departed_.size() <= kMaxDeparted) return;
  Incarnation oldest = departed_.front();
  departed_.pop_front();
  bool is_back = std::any_of(sessions_.begin(), sessions_.end(),
                             [&](const auto& open) { return open.second == oldest; });
  if (!is_back) incarnations_.erase(oldest);
}

void HostedJob::CloseRound(const absl::Status& why) {
  if (!table_) return;
  std::vector<WaitId> waits = table_->TakeAll();
  table_.reset();
  EndWaits(waits, why);
  waiting_.clear();
  wait_of_.clear();
  incarnations_.clear();
  departed_.clear();
  for (const auto& [session, incarnation] : sessions_) incarnations_.insert(incarnation);
}

void HostedJob::Tick(Instant now) {
  if (table_)
    EndWaits(table_->TakeExpired(now), absl::DeadlineExceededError("not there within the wait"));
  if (held_ && held_->until <= now) {
    outlet_->Report(run_id_, world_.round,
                    absl::StrCat("job ", run_id_,
                                 ": the state directory (--state-dir) does not "
                                 "answer; the job goes on without waiting for it until it does"));
    does_disk_answer_ = false;
    ReleaseHeld();
  }
  if (machine_.NextWakeup() <= now) Step(now, TimePassed{});
}

Instant HostedJob::NextWakeup() const {
  Instant next = machine_.NextWakeup();
  if (held_) next = std::min(next, held_->until);
  return table_ ? std::min(next, table_->NextDeadline()) : next;
}

absl::Status HostedJob::CheckScope(const RoundScope& scope) const {
  const RoundId asked = scope.world.round;
  if (asked > world_.round)
    return absl::UnavailableError(
        absl::StrCat("round ", asked.value, " of job ", run_id_, " isn't known here yet"));
  if (!(scope.world == world_))
    return absl::AbortedError(absl::StrCat("round ", asked.value, " isn't the current one of job ",
                                           run_id_, " (", world_.round.value, ")"));
  if (!table_)
    return absl::AbortedError(
        absl::StrCat("job ", run_id_, " has no round now; round ", asked.value, " is over"));
  if (!incarnations_.contains(scope.incarnation))
    return absl::UnavailableError(
        absl::StrCat("this agent isn't attached to round ", asked.value, " of job ", run_id_));
  return absl::OkStatus();
}

void HostedJob::SetKey(const RoundScope& scope, const std::string& key, std::string value,
                       const CallAnswer& answer) {
  absl::Status status = CheckKey(key, "key");
  if (status.ok() && value.size() > kMaxValue)
    status = absl::InvalidArgumentError(
        absl::StrCat("the value may have ", kMaxValue, " bytes at most, it has ", value.size()));
  if (status.ok()) status = CheckScope(scope);
  if (!status.ok()) return answer(status);
  std::string told = value;
  KeyValueTable::SetResult result = table_->Set(key, std::move(value));
  if (!result.problem.empty()) return answer(absl::ResourceExhaustedError(result.problem));
  answer(std::string());
  EndWaits(result.ended, told);
}

void HostedJob::GetKey(Instant now, CallId call, const RoundScope& scope, const std::string& key,
                       Duration wait, CallAnswer answer) {
  absl::Status status = CheckKey(key, "key");
  if (status.ok()) status = CheckScope(scope);
  if (!status.ok()) return answer(status);
  if (const std::string* value = table_->Get(key)) return answer(*value);
  if (wait <= Duration(0)) return answer(absl::NotFoundError("the key isn't set"));
  KeyValueTable::WaitResult result = table_->Wait(key, now + wait);
  if (!result.problem.empty()) return answer(absl::ResourceExhaustedError(result.problem));
  waiting_[result.wait] = {call, std::move(answer)};
  wait_of_[call] = result.wait;
}

void HostedJob::Barrier(Instant now, CallId call, const RoundScope& scope,
                        const BarrierCall& barrier, CallAnswer answer) {
  absl::Status status = CheckKey(barrier.name, "barrier's name");
  if (status.ok() && (barrier.participant < 0 || barrier.participant >= barrier.count))
    status = absl::InvalidArgumentError(absl::StrCat("participant ", barrier.participant,
                                                     " isn't below the count ", barrier.count));
  if (status.ok()) status = CheckScope(scope);
  if (!status.ok()) return answer(status);
  KeyValueTable::BarrierResult result =
      table_->Arrive({.name = barrier.name,
                      .participant = absl::StrCat(barrier.participant),
                      .count = barrier.count,
                      .deadline = now + barrier.wait});
  if (!result.problem.empty()) return answer(absl::InvalidArgumentError(result.problem));
  waiting_[result.wait] = {call, std::move(answer)};
  wait_of_[call] = result.wait;
  EndWaits(result.ended, std::string());
}

void HostedJob::CancelCall(CallId call) {
  auto found = wait_of_.find(call);
  if (found == wait_of_.end()) return;
  table_->Cancel(found->second);
  waiting_.erase(found->second);
  wait_of_.erase(found);
}

void HostedJob::EndWaits(const std::vector<WaitId>& waits,
                         const absl::StatusOr<std::string>& answer) {
  for (WaitId wait : waits) {
    auto found = waiting_.find(wait);
    if (found == waiting_.end()) continue;
    Waiting waiting = std::move(found->second);
    waiting_.erase(found);
    wait_of_.erase(waiting.call);
    waiting.answer(answer);
  }
}

}  // namespace muster::rendezvous
