#include "rendezvous/server/rendezvous_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace muster::rendezvous {
namespace {

constexpr size_t kMaxJobs = 4096;
// An ended stream may take this long to deliver what was sent before.
constexpr Duration kDrainTime = std::chrono::seconds(5);
// Where nothing is due the loop still looks around: a bound on any slip in its bookkeeping.
constexpr Duration kLongestSleep = std::chrono::seconds(60);

int64_t WallTimeMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::Status RendezvousLoop::ShuttingDown() {
  return absl::UnavailableError("the rendezvous is shutting down");
}

RendezvousLoop::RendezvousLoop(RendezvousLoopOptions options)
    : options_(std::move(options)), started_(options_.clock->Now()), now_(started_) {
  // Jobs of an earlier life are there from the start: who comes late to one that has ended is told
  // how, and one that nobody comes back to is forgotten in time.
  if (options_.jobs) {
    for (const std::string& run_id : options_.jobs->RunIds()) {
      if (const HostedJob* job = JobFor(run_id)) NoteDue(*job);
    }
    wakeup_ = next_due_;
  }
  thread_ = std::thread([this] { Run(); });
}

RendezvousLoop::~RendezvousLoop() {
  Stop();
  // Its thread tells this loop what is kept.
  options_.jobs.reset();
}

void RendezvousLoop::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  idleness_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool RendezvousLoop::Enqueue(Task task, size_t most_waiting) {
  {
    base::MutexLock lock(mutex_);
    if (stopping_ || tasks_.size() >= most_waiting) return false;
    tasks_.push_back(std::move(task));
    if (is_turning_) return true;
    is_turning_ = true;
  }
  Turn(/*looks_around=*/false);
  return true;
}

void RendezvousLoop::Poke() {
  {
    base::MutexLock lock(mutex_);
    poked_ = true;
  }
  changed_.notify_one();
}

void RendezvousLoop::Turn(bool looks_around) {
  std::deque<Task> batch;
  std::optional<Instant> attended;
  bool was_stopped = false;
  bool wakes_sooner = false;
  while (true) {
    {
      base::MutexLock lock(mutex_);
      now_ = std::max(now_, options_.clock->Now());
      batch.swap(tasks_);
      was_stopped = stopping_;
      // Once for an instant: what is still due then is left to the loop's own thread.
      const bool is_due = now_ >= next_due_ && attended != now_;
      if (stopping_ || (batch.empty() && !is_due && !looks_around)) {
        // What is left owes its answers: StopAll() gives them.
        batch.swap(tasks_);
        is_turning_ = false;
        wakeup_ = next_due_;
        wakes_sooner = wakeup_ < sleeps_until_;
        break;
      }
    }
    for (Task& task : batch) task(now_);
    batch.clear();
    if (now_ >= next_due_ || looks_around) {
      looks_around = false;
      attended = now_;
      Attend(now_);
      next_due_ = NextWakeup();
    }
    AnswerDrains(now_);
    PublishIdleness(now_);
  }
  if (was_stopped || wakes_sooner) changed_.notify_all();
}

void RendezvousLoop::Run() {
  while (true) {
    {
      base::MutexLock lock(mutex_);
      while (!stopping_ && !poked_) {
        const Instant now = options_.clock->Now();
        if (!is_turning_ && wakeup_ <= now) break;
        // Whoever turns the loop attends to what is due, and says when the next is.
        sleeps_until_ = is_turning_ ? Instant::Never() : wakeup_;
        const auto wait = std::clamp(sleeps_until_ - now, Duration(0), kLongestSleep);
        const auto end = std::chrono::steady_clock::now() + wait;
        if (changed_.wait_until(mutex_, end) == std::cv_status::timeout && !is_turning_) break;
      }
      while (stopping_ && is_turning_) changed_.wait(mutex_);
      if (stopping_) break;
      poked_ = false;
      if (is_turning_) continue;
      is_turning_ = true;
    }
    Turn(/*looks_around=*/true);
  }
  StopAll();
}

void RendezvousLoop::StopAll() {
  for (auto& [id, session] : sessions_) session.sink->Cut(ShuttingDown());
  for (auto& [id, watcher] : watchers_) watcher.sink->Cut(ShuttingDown());
  for (Draining& drain : draining_) drain.answer(ShuttingDown());
  draining_.clear();
  sessions_.clear();
  watchers_.clear();
  jobs_.clear();
  // What was enqueued but not handled still owes its answers.
  std::deque<Task> rest;
  {
    base::MutexLock lock(mutex_);
    rest.swap(tasks_);
  }
  for (Task& task : rest) task(Instant::Never());
}

Instant RendezvousLoop::NextWakeup() const {
  Instant next = ending_.empty() ? Instant::Never() : ending_.front().first;
  for (const Draining& drain : draining_) next = std::min(next, drain.until);
  for (const auto& [run_id, job] : jobs_) {
    next = std::min({next, job->NextWakeup(), ForgottenAt(*job)});
  }
  return next;
}

void RendezvousLoop::StepJob(Instant now, HostedJob& job, const JobEvent& event) {
  job.Step(now, event);
  NoteDue(job);
}

void RendezvousLoop::NoteDue(const HostedJob& job) {
  next_due_ = std::min(next_due_, job.NextWakeup());
  if (job.machine().IsBlank()) next_due_ = std::min(next_due_, now_);
  next_due_ = std::min(next_due_, ForgottenAt(job));
}

// Kept, such jobs would fill kMaxJobs: one for each run id that was tried and given up.
bool RendezvousLoop::IsAbandoned(const HostedJob& job) const {
  return job.machine().IsBlank() &&
         std::none_of(sessions_.begin(), sessions_.end(),
                      [&](const auto& session) { return session.second.job == &job; });
}

// Everything that is due by the time alone.
void RendezvousLoop::Attend(Instant now) {
  while (!ending_.empty() && ending_.front().first <= now) {
    auto found = sessions_.find(ending_.front().second);
    if (found != sessions_.end())
      found->second.sink->Cut(absl::UnavailableError("the session's end was not read in time"));
    ending_.pop_front();
  }
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    job->second->Tick(now);
    if (IsAbandoned(*job->second)) {
      job = jobs_.erase(job);
      continue;
    }
    if (now < ForgottenAt(*job->second)) {
      ++job;
      continue;
    }
    if (options_.jobs) options_.jobs->Forget(job->first);
    DropSessionsOf(*job->second);
    job = jobs_.erase(job);
  }
}

Instant RendezvousLoop::ForgottenAt(const HostedJob& job) const {
  if (job.done_since() && job.machine().IsDone()) return *job.done_since() + options_.retention;
  // Kept by an earlier life, and no node has come back.
  return job.is_claimed() ? Instant::Never() : started_ + options_.retention;
}

void RendezvousLoop::DropSessionsOf(const HostedJob& job) {
  std::erase_if(sessions_, [&](const auto& session) { return session.second.job == &job; });
}

void RendezvousLoop::PublishIdleness(Instant now) {
  if (!sessions_.empty() && published_sessions_ == sessions_.size() && asked_.empty()) return;
  published_sessions_ = sessions_.size();
  bool is_someone_away = false;
  if (sessions_.empty()) {
    for (const auto& [run_id, job] : jobs_) {
      for (const NodeStatus& node : job->machine().Status(now).nodes)
        is_someone_away = is_someone_away || !node.attached;
    }
  }
  {
    base::MutexLock lock(mutex_);
    open_sessions_ = sessions_.size();
    is_someone_away_ = is_someone_away;
    for (const std::shared_ptr<bool>& asked : asked_) *asked = true;
  }
  asked_.clear();
  idleness_.notify_all();
}

bool RendezvousLoop::WaitUntilIdle(Duration most, Duration linger) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  // Whatever was received before this call is handled before idleness is judged. Shared: this call
  // may give up before the loop comes to it.
  auto is_judged = std::make_shared<bool>(false);
  Enqueue([this, is_judged](Instant) { asked_.push_back(is_judged); });
  base::MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && (!*is_judged || open_sessions_ > 0)) {
      if (idleness_.wait_until(mutex_, deadline) == std::cv_status::timeout) return false;
    }
    const auto end = std::min(deadline, std::chrono::steady_clock::now() + linger);
    while (!stopping_ && open_sessions_ == 0) {
      if (!is_someone_away_) return true;
      if (idleness_.wait_until(mutex_, end) == std::cv_status::timeout) return true;
    }
    if (stopping_) return true;
  }
}

// ---- sessions ------------------------------------------------------------------------------

void RendezvousLoop::OpenSession(SessionId id, Attach attach,
                                 const std::shared_ptr<SessionSink>& sink) {
  bool taken = Enqueue([this, id, attach = std::move(attach), sink](Instant now) mutable {
    Open(now, id, std::move(attach), sink);
  });
  if (!taken) sink->Cut(ShuttingDown());
}

void RendezvousLoop::Open(Instant now, SessionId id, Attach attach,
                          const std::shared_ptr<SessionSink>& sink) {
  if (now.IsNever()) return sink->Cut(ShuttingDown());
  HostedJob* job = JobFor(attach.terms.run_id);
  auto record = job == nullptr ? std::nullopt : job->machine().OpenedAnewBy(attach);
  if (record) {
    // Whoever was told to run it again does so.
    JobOptions anew = options_.job;
    anew.record = *std::move(record);
    anew.record_is_new = true;
    DropSessionsOf(*job);
    job = Host(attach.terms.run_id, anew);
  }
  if (job == nullptr)
    return sink->Cut(absl::ResourceExhaustedError("this rendezvous has too many jobs"));
  sessions_[id] = {job, sink};
  StepJob(now, *job, SessionMessage{id, std::move(attach)});
  sink->ReadNext();
}

HostedJob* RendezvousLoop::JobFor(const std::string& run_id) {
  auto found = jobs_.find(run_id);
  if (found != jobs_.end()) return found->second.get();
  if (jobs_.size() >= kMaxJobs) return nullptr;
  JobOptions job = options_.job;
  if (options_.jobs) job.record = options_.jobs->RecordOf(run_id);
  return Host(run_id, job);
}

HostedJob* RendezvousLoop::Host(const std::string& run_id, const JobOptions& options) {
  JobOutlet* outlet = this;
  auto& hosted = jobs_[run_id];
  hosted = std::make_unique<HostedJob>(run_id, options, started_, outlet);
  return hosted.get();
}

void RendezvousLoop::TakeMessage(SessionId session, AgentMessage message) {
  Enqueue([this, session, message = std::move(message)](Instant now) mutable {
    auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    // The sink lives on even if the step ends the session.
    std::shared_ptr<SessionSink> sink = found->second.sink;
    if (!found->second.is_ending)
      StepJob(now, *found->second.job, SessionMessage{session, std::move(message)});
    sink->ReadNext();
  });
}

void RendezvousLoop::SessionEnded(SessionId session) {
  Enqueue([this, session](Instant now) {
    auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    HostedJob* job = found->second.job;
    sessions_.erase(found);
    StepJob(now, *job, muster::rendezvous::SessionEnded{session});
  });
}

void RendezvousLoop::Send(SessionId session, const RendezvousMessage& message) {
  auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second.sink->Send(message);
}

void RendezvousLoop::End(SessionId session) {
  auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  found->second.sink->End();
  found->second.is_ending = true;
  ending_.emplace_back(now_ + kDrainTime, session);
  next_due_ = std::min(next_due_, ending_.front().first);
}

void RendezvousLoop::RoundBegins(const std::string& run_id) {
  if (options_.on_round && run_id == options_.watched_job) options_.on_round();
}

bool RendezvousLoop::Keep(const std::string& run_id, KeepId keep, const JobRecord& record) {
  if (!options_.jobs) return false;
  options_.jobs->Keep(run_id, record, [this, run_id, keep] {
    Enqueue([this, run_id, keep](Instant) {
      auto found = jobs_.find(run_id);
      if (found != jobs_.end()) found->second->Kept(keep);
    });
  });
  return true;
}

void RendezvousLoop::Report(const std::string& run_id, RoundId round, const std::string& text) {
  spdlog::info("{}", text);
  if (watchers_.empty()) return;
  const auto job = jobs_.find(run_id);
  const char* state = job == jobs_.end() ? "" : JobStateName(job->second->machine().state());
  WatchedEvent event{run_id, round, WallTimeMs(), text, state};
  for (auto& [id, watcher] : watchers_)
    if (!watcher.run_id || *watcher.run_id == run_id) watcher.sink->Send(event);
}

// ---- calls ---------------------------------------------------------------------------------

void RendezvousLoop::GetStatus(const std::optional<std::string>& run_id,
                               const StatusAnswer& answer) {
  bool taken = Enqueue([this, run_id, answer](Instant now) {
    if (now.IsNever()) return answer(absl::CancelledError("the rendezvous is shutting down"));
    std::vector<JobStatus> jobs;
    for (const auto& [id, job] : jobs_)
      if (!run_id || id == *run_id) jobs.push_back(job->machine().Status(now));
    if (run_id && !run_id->empty() && jobs.empty())
      return answer(absl::NotFoundError(absl::StrCat("no job \"", *run_id, "\" is here")));
    answer(std::move(jobs));
  });
  if (!taken) answer(absl::CancelledError("the rendezvous is shutting down"));
}

void RendezvousLoop::CannotStart(const std::string& run_id, NodeCannotStart node,
                                 const CallAnswer& answer) {
  bool taken = Enqueue([this, run_id, node = std::move(node), answer](Instant now) {
    if (now.IsNever()) return answer(ShuttingDown());
    auto job = jobs_.find(run_id);
    if (job == jobs_.end() || job->second->machine().IsBlank())
      return answer(absl::NotFoundError(absl::StrCat("no job \"", run_id, "\" is here")));
    StepJob(now, *job->second, node);
    answer(std::string());
  });
  if (!taken) answer(ShuttingDown());
}

WatchId RendezvousLoop::Watch(const std::optional<std::string>& run_id,
                              const std::shared_ptr<WatchSink>& sink) {
  WatchId id(++last_id_);
  bool taken = Enqueue([this, id, run_id, sink](Instant now) {
    if (now.IsNever()) return sink->Cut(ShuttingDown());
    if (watchers_.size() >= kMaxWatchers)
      return sink->Cut(absl::ResourceExhaustedError("too many watchers"));
    watchers_[id] = {run_id, sink};
    sink->Begun();
  });
  if (!taken) sink->Cut(ShuttingDown());
  return id;
}

void RendezvousLoop::Unwatch(WatchId watch) {
  Enqueue([this, watch](Instant) { watchers_.erase(watch); });
}

void RendezvousLoop::HostRefused(const std::string& reason, int exit_code) {
  Enqueue([this, reason, exit_code](Instant now) {
    for (auto& [run_id, job] : jobs_)
      StepJob(now, *job, muster::rendezvous::HostRefused{reason, exit_code});
  });
}

void RendezvousLoop::HostStopping(const std::string& reason, int exit_code) {
  Enqueue([this, reason, exit_code](Instant now) {
    for (auto& [run_id, job] : jobs_)
      StepJob(now, *job, muster::rendezvous::HostStopping{reason, exit_code});
  });
}

}  // namespace muster::rendezvous
