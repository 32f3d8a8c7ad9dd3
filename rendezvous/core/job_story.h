// Runs a JobMachine through a story and writes down what happens, for tests: agents have names,
// time is in virtual milliseconds, and the trace has one line for each event and each effect.
//
//   JobStory story({.min = 2, .max = 2});
//   story.Attach("a");            //    0 a> Attach
//   story.Attach("b");            //      a< StartRound 1: node 0 of 2, ...
//   story.Lapse(1000);            // heartbeats of all agents that aren't silenced go on meanwhile
//   EXPECT_EQ(story.Trace(), ...);
//
// Owned by the test; not thread-safe.
#ifndef MUSTER_RENDEZVOUS_CORE_JOB_STORY_H_
#define MUSTER_RENDEZVOUS_CORE_JOB_STORY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/session_messages.h"
#include "rendezvous/core/job_machine.h"

namespace muster::rendezvous {

class JobStory {
 public:
  struct Options {
    int min = 2;
    int max = 2;
    bool is_static = false;
    int max_restarts = 1;
    int join_timeout_ms = 60'000;
    int last_call_ms = 5'000;
    // Of --standalone, so that stories begin at once.
    int startup_quiet_ms = 0;
    int max_node_failures = 0;
    ScaleUp scale_up = ScaleUp::kAuto;
    int max_restarts_per_hour = 0;
    int max_early_failures = 0;
    int max_stuck_restarts = 0;
    uint64_t highest_round = 0;
    // Record effects appear in the trace as "# text".
    bool shows_records = false;
  };

  // What an Attach may say beyond the ordinary.
  struct AttachOptions {
    int workers = 2;
    std::optional<int> node_rank = std::nullopt;
    std::string version = "1";
    // Tells the same agent from its next life.
    int life = 0;
    // Claims to run the round that it was last told to start.
    bool is_running = false;
    bool has_succeeded = false;
    // One of its workers has exited 0.
    bool has_worker_succeeded = false;
    // Claims to know of this commit.
    int64_t last_commit_step = 0;
    // Absent: that of the last round it was told to start.
    std::optional<uint64_t> highest_round = std::nullopt;
    std::string program{};
    NodeFacts facts = {};
    bool is_drained = false;
    bool was_attached = false;
    bool hosts_rendezvous = false;
  };

  explicit JobStory(Options options);

  // Lets `ms` pass: the timer rings when the machine wants it to, and agents send heartbeats.
  void Lapse(int64_t ms);
  // Time passes in which nobody handles anything, the timer neither: a busy moment of the process.
  void StandStill(int64_t ms) { now_ = now_ + std::chrono::milliseconds(ms); }
  // From now on its heartbeats say that all of its workers ask whether to save.
  void CanSave(const std::string& agent, bool can_save = true);
  // From now on (or no more) this agent sends no heartbeats.
  void Silence(const std::string& agent, bool is_silent = true);
  // A new session for the agent; the one before, if any, isn't ended by this.
  void Attach(const std::string& agent) { Attach(agent, AttachOptions()); }
  void Attach(const std::string& agent, AttachOptions options);
  // The agent's stream ends.
  void Break(const std::string& agent);
  void Send(const std::string& agent, const AgentMessage& message);
  void WorkerFails(const std::string& agent, int rank, int code, int age_ms = 0);
  void Succeed(const std::string& agent) { Send(agent, NodeSucceeded{world(agent)}); }
  void StopDone(const std::string& agent, int64_t last_step = -1) {
    Send(agent, muster::StopDone{world(agent), 7, last_step});
  }
  void Leave(const std::string& agent) { Send(agent, muster::Leave{"stopped by SIGTERM"}); }
  void Feed(const JobEvent& event);
  // The rendezvous dies with all its sessions and another one starts, knowing nothing else.
  void RestartRendezvous(const JobRecord& record = {}, bool record_is_new = false);

  // The world that the agent was last told to start.
  World world(const std::string& agent) const;
  SessionId session(const std::string& agent) const;
  Instant now() const { return now_; }
  JobMachine& machine() { return *machine_; }
  // What was said to the agent last, heartbeats aside.
  const std::vector<RendezvousMessage>& told(const std::string& agent) { return told_[agent]; }
  // The last message of type T among these, or null.
  template <class T>
  const T* Last(const std::string& agent) const;
  // How many of these are of type T.
  template <class T>
  int CountOf(const std::string& agent) const;
  const std::vector<JobEffect>& last_effects() const { return last_effects_; }
  // What was kept last.
  const JobRecord& record() const { return record_; }
  // The lines since the last call.
  std::string Trace();

 private:
  std::string NameOf(SessionId session) const;
  Heartbeat HeartbeatOf(const std::string& agent) const;
  void Write(const std::string& line);
  void Note(const JobEffect& effect);
  StepInput Input();

  Options options_;
  std::unique_ptr<JobMachine> machine_;
  Instant now_{std::chrono::hours(1)};
  Instant began_ = now_;
  uint8_t ids_ = 0;
  uint64_t sessions_used_ = 0;
  std::map<std::string, SessionId> sessions_;
  std::map<SessionId, std::string> names_;
  std::map<std::string, StartRound> started_;
  std::map<std::string, std::vector<RendezvousMessage>> told_;
  std::set<std::string> silent_;
  std::set<std::string> savers_;
  std::vector<JobEffect> last_effects_;
  JobRecord record_;
  std::string trace_;
};

template <class T>
const T* JobStory::Last(const std::string& agent) const {
  auto known = told_.find(agent);
  if (known == told_.end()) return nullptr;
  for (auto message = known->second.rbegin(); message != known->second.rend(); ++message) {
    if (const T* found = std::get_if<T>(&*message)) return found;
  }
  return nullptr;
}

template <class T>
int JobStory::CountOf(const std::string& agent) const {
  auto known = told_.find(agent);
  if (known == told_.end()) return 0;
  return static_cast<int>(std::ranges::count_if(
      known->second,
      [](const RendezvousMessage& message) { return std::holds_alternative<T>(message); }));
}

// One line for an effect or message, as traces have it.
std::string Describe(const RendezvousMessage& message);
std::string Describe(const AgentMessage& message);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CORE_JOB_STORY_H_
