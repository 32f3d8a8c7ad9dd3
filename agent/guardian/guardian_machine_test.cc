#include "agent/guardian/guardian_machine.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace muster::agent::guardian {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RoundId kRound(3);
constexpr LocalRank kZero(0);
constexpr LocalRank kOne(1);

std::string Text(const std::vector<int64_t>& pids) {
  std::string text;
  for (int64_t pid : pids) text += (text.empty() ? "" : ",") + std::to_string(pid);
  return "[" + text + "]";
}

// One word or two for each effect, so that a test reads as a trace.
struct Describe {
  std::string operator()(const Fork& e) const {
    return "fork " + std::to_string(e.local_rank.value);
  }
  std::string operator()(const SignalGroup& e) const {
    return "signal " + std::to_string(e.pid) + ":" + std::to_string(e.signal);
  }
  std::string operator()(const LookForLeftOvers& /*e*/) const { return "look"; }
  std::string operator()(const SignalProcesses& e) const {
    return "signal " + Text(e.pids) + ":" + std::to_string(e.signal);
  }
  std::string operator()(const ReportStarted& e) const {
    return "started " + std::to_string(e.local_rank.value);
  }
  std::string operator()(const ReportFailedToStart& e) const {
    return "failed " + std::to_string(e.local_rank.value) + ":" + std::to_string(e.error);
  }
  std::string operator()(const ReportExited& e) const {
    return "exited " + std::to_string(e.local_rank.value) + ":" +
           std::to_string(e.exit.ShellCode());
  }
  std::string operator()(const ReportLeft& e) const {
    return "left " + std::to_string(e.round.value) + Text(e.pids) + " for " +
           std::to_string(e.grace / seconds(1));
  }
  std::string operator()(const ReportGone& e) const {
    return "gone " + std::to_string(e.round.value) + Text(e.unkillable);
  }
  std::string operator()(const Exit& /*e*/) const { return "exit"; }
};

// A machine at a time that the test moves.
class Guardian {
 public:
  std::string Do(const Event& event) {
    std::string trace;
    for (const Effect& effect : machine_.Step(now_, event)) {
      trace += (trace.empty() ? "" : " | ") + std::visit(Describe{}, effect);
    }
    return trace;
  }
  // Moves to the next wakeup and tells the machine.
  std::string Wake() {
    now_ = machine_.NextWakeup();
    return Do(TimePassed{});
  }
  void Pass(Duration time) { now_ = now_ + time; }
  Instant now() const { return now_; }
  State state() const { return machine_.state(); }

  // Two workers, pids 10 and 11.
  void Run() {
    EXPECT_EQ(Do(SpawnAsked{kRound, kZero}), "fork 0");
    EXPECT_EQ(Do(Forked{kZero, 10}), "");
    EXPECT_EQ(Do(SpawnAsked{kRound, kOne}), "fork 1");
    EXPECT_EQ(Do(Forked{kOne, 11}), "");
    EXPECT_EQ(Do(ExecDone{10}), "started 0");
    EXPECT_EQ(Do(ExecDone{11}), "started 1");
  }

 private:
  GuardianMachine machine_;
  Instant now_ = Instant(seconds(1000));
};

WorkerExit Code(int code) { return {.code = code}; }
WorkerExit Killed() { return {.signal = SIGKILL}; }

// A guardian in each state; with workers 10 and 11 alive where the state has any.
Guardian In(State state) {
  Guardian guardian;
  if (state == State::kIdle) return guardian;
  if (state == State::kEnded) {
    guardian.Do(AgentGone{});
    return guardian;
  }
  guardian.Run();
  if (state == State::kStopping) guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)});
  if (state == State::kKilling) guardian.Do(StopAsked{kRound, SIGTERM, seconds(0)});
  if (state == State::kDying) guardian.Do(AgentGone{});
  return guardian;
}

struct Cell {
  const char* event_name;
  Event event;
  State from;
  const char* effects;
  State to;
};

// Every cell of the table in the header.
TEST(GuardianMachine, DoesWhatTheTableSays) {
  constexpr State kIdle = State::kIdle, kRun = State::kRunning, kStop = State::kStopping,
                  kKill = State::kKilling, kDie = State::kDying, kEnd = State::kEnded;
  const SpawnAsked spawn{kRound, LocalRank(2)};
  const Event fork_failed = ForkFailed{LocalRank(2), EAGAIN};
  // Workers 10 and 11 are reported already, so these are about nobody.
  const Event exec_done = ExecDone{10}, exec_failed = ExecFailed{10, ENOENT};
  const Event ended = ChildEnded{10, Code(7)}, gone = AgentGone{}, passed = TimePassed{};
  const Event stop = StopAsked{kRound, SIGTERM, seconds(10)}, usr1 = SignalAsked{SIGUSR1};
  const Event left = LeftSeen{{10, 11, 12}};
  const std::string busy = "failed 2:" + std::to_string(EBUSY);
  const std::vector<Cell> cells = {
      {"spawn", spawn, kIdle, "fork 2", kRun},
      {"spawn", spawn, kRun, "fork 2", kRun},
      {"spawn", spawn, kStop, busy.c_str(), kStop},
      {"spawn", spawn, kKill, busy.c_str(), kKill},
      {"spawn", spawn, kDie, "", kDie},
      {"spawn", spawn, kEnd, "", kEnd},
      {"fork failed", fork_failed, kIdle, "", kIdle},
      {"fork failed", fork_failed, kRun, "failed 2:11", kRun},
      {"fork failed", fork_failed, kStop, "failed 2:11", kStop},
      {"fork failed", fork_failed, kKill, "failed 2:11", kKill},
      {"fork failed", fork_failed, kDie, "", kDie},
      {"fork failed", fork_failed, kEnd, "", kEnd},
      {"exec done", exec_done, kIdle, "", kIdle},
      {"exec done", exec_done, kRun, "", kRun},
      {"exec done", exec_done, kStop, "", kStop},
      {"exec done", exec_done, kKill, "", kKill},
      {"exec done", exec_done, kDie, "", kDie},
      {"exec done", exec_done, kEnd, "", kEnd},
      {"exec failed", exec_failed, kIdle, "", kIdle},
      {"exec failed", exec_failed, kRun, "", kRun},
      {"exec failed", exec_failed, kStop, "", kStop},
      {"exec failed", exec_failed, kKill, "", kKill},
      {"exec failed", exec_failed, kDie, "", kDie},
      {"exec failed", exec_failed, kEnd, "", kEnd},
      {"ended", ended, kIdle, "", kIdle},
      {"ended", ended, kRun, "exited 0:7", kRun},
      {"ended", ended, kStop, "exited 0:7", kStop},
      {"ended", ended, kKill, "exited 0:7", kKill},
      {"ended", ended, kDie, "", kDie},
      {"ended", ended, kEnd, "", kEnd},
      {"stop", stop, kIdle, "gone 3[]", kIdle},
      {"stop", stop, kRun, "signal 10:15 | signal 11:15", kStop},
      {"stop", stop, kStop, "", kStop},
      {"stop", stop, kKill, "", kKill},
      {"stop", stop, kDie, "", kDie},
      {"stop", stop, kEnd, "", kEnd},
      {"signal", usr1, kIdle, "", kIdle},
      {"signal", usr1, kRun, "signal 10:10 | signal 11:10", kRun},
      {"signal", usr1, kStop, "signal 10:10 | signal 11:10", kStop},
      {"signal", usr1, kKill, "", kKill},
      {"signal", usr1, kDie, "", kDie},
      {"signal", usr1, kEnd, "", kEnd},
      {"agent gone", gone, kIdle, "exit", kEnd},
      {"agent gone", gone, kRun, "signal 10:9 | signal 11:9", kDie},
      {"agent gone", gone, kStop, "signal 10:9 | signal 11:9", kDie},
      {"agent gone", gone, kKill, "signal 10:9 | signal 11:9", kDie},
      {"agent gone", gone, kDie, "", kDie},
      {"agent gone", gone, kEnd, "", kEnd},
      {"left", left, kIdle, "", kIdle},
      {"left", left, kRun, "", kRun},
      {"left", left, kStop, "", kStop},
      {"left", left, kKill, "signal [10,11,12]:9", kKill},
      {"left", left, kDie, "signal [10,11,12]:9", kDie},
      {"left", left, kEnd, "", kEnd},
      {"passed", passed, kIdle, "", kIdle},
      {"passed", passed, kRun, "", kRun},
      {"passed", passed, kStop, "", kStop},
      {"passed", passed, kKill, "", kKill},
      {"passed", passed, kDie, "", kDie},
      {"passed", passed, kEnd, "", kEnd},
  };
  for (const Cell& cell : cells) {
    SCOPED_TRACE(std::string(cell.event_name) + " in state " +
                 std::to_string(static_cast<int>(cell.from)));
    Guardian guardian = In(cell.from);
    ASSERT_EQ(guardian.state(), cell.from);
    EXPECT_EQ(guardian.Do(cell.event), cell.effects);
    EXPECT_EQ(guardian.state(), cell.to);
  }
}

TEST(GuardianMachine, APassedDeadlineKillsTheGroupAndNothingElse) {
  for (State state : {State::kRunning, State::kStopping}) {
    Guardian guardian = In(state);
    guardian.Do(DeadlineRenewed{guardian.now() + milliseconds(5)});
    guardian.Pass(milliseconds(4));
    guardian.Do(TimePassed{});
    EXPECT_EQ(guardian.state(), state);
    guardian.Do(DeadlineRenewed{guardian.now() + milliseconds(5)});
    guardian.Pass(milliseconds(4));
    guardian.Do(TimePassed{});
    EXPECT_EQ(guardian.state(), state);
    guardian.Pass(milliseconds(1));
    EXPECT_EQ(guardian.Do(TimePassed{}), "signal 10:9 | signal 11:9");
    EXPECT_EQ(guardian.state(), State::kKilling);
    // The agent may be back before the group is gone.
    guardian.Do(DeadlineRenewed{guardian.now() + milliseconds(5)});
    EXPECT_EQ(guardian.state(), State::kKilling);
  }
}

TEST(GuardianMachine, APassedDeadlineMeansNothingWithoutWorkers) {
  Guardian guardian = In(State::kIdle);
  guardian.Do(DeadlineRenewed{guardian.now() + milliseconds(5)});
  guardian.Pass(milliseconds(9));
  EXPECT_EQ(guardian.Do(TimePassed{}), "");
  EXPECT_EQ(guardian.state(), State::kIdle);
}

TEST(GuardianMachine, ASignalMayBeForOneWorker) {
  Guardian guardian;
  guardian.Run();
  EXPECT_EQ(guardian.Do(SignalAsked{SIGKILL, kOne}), "signal 11:9");
  EXPECT_EQ(guardian.Do(SignalAsked{SIGKILL, LocalRank(7)}), "");
  guardian.Do(ChildEnded{11, {.signal = SIGKILL}});
  EXPECT_EQ(guardian.Do(SignalAsked{SIGKILL, kOne}), "");
}

TEST(GuardianMachine, RefusesASecondRoundAndARankThatRuns) {
  Guardian guardian = In(State::kRunning);
  EXPECT_EQ(guardian.Do(SpawnAsked{RoundId(4), LocalRank(2)}), "failed 2:16");
  EXPECT_EQ(guardian.Do(SpawnAsked{kRound, kOne}), "failed 1:16");
}

TEST(GuardianMachine, AKillBeforeExecIsAStartAndAnEnd) {
  Guardian guardian;
  guardian.Do(SpawnAsked{kRound, kZero});
  guardian.Do(Forked{kZero, 10});
  EXPECT_EQ(guardian.Do(ChildEnded{10, Killed()}), "started 0 | exited 0:137");
}

TEST(GuardianMachine, AFailedExecIsReportedOnceAndItsEndNot) {
  Guardian guardian;
  guardian.Do(SpawnAsked{kRound, kZero});
  guardian.Do(Forked{kZero, 10});
  EXPECT_EQ(guardian.Do(ExecFailed{10, ENOENT}), "failed 0:2");
  EXPECT_EQ(guardian.Do(ChildEnded{10, Code(127)}), "");
  EXPECT_EQ(guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{}), "gone 3[]");
  EXPECT_EQ(guardian.state(), State::kIdle);
}

TEST(GuardianMachine, EndsOfOrphansAreNoEndsOfWorkers) {
  Guardian guardian = In(State::kRunning);
  EXPECT_EQ(guardian.Do(ChildEnded{99, Code(1)}), "");
  // And don't count as a failure.
  guardian.Do(ChildEnded{10, Code(0)});
  guardian.Do(ChildEnded{11, Code(0)});
  guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)});
  EXPECT_EQ(guardian.Do(LeftSeen{{50}}), "signal [50]:15");
}

TEST(GuardianMachine, LeftOversOfASuccessGetTheGrace) {
  Guardian guardian = In(State::kRunning);
  guardian.Do(ChildEnded{10, Code(0)});
  guardian.Do(ChildEnded{11, Code(0)});
  EXPECT_EQ(guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{{50, 51}}), "signal [50,51]:15");
  EXPECT_EQ(guardian.Do(ChildEnded{50, Code(0)}), "look");
  // Signalled once.
  EXPECT_EQ(guardian.Do(LeftSeen{{51}}), "");
  Instant stopped = guardian.now();
  EXPECT_EQ(guardian.Wake(), "left 3[51] for 29");
  EXPECT_EQ(guardian.Wake(), "look");
  EXPECT_EQ(guardian.now(), stopped + seconds(30));
  EXPECT_EQ(guardian.state(), State::kKilling);
  EXPECT_EQ(guardian.Do(LeftSeen{{51}}), "signal [51]:9");
  EXPECT_EQ(guardian.Do(ChildEnded{51, Killed()}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{}), "gone 3[]");
}

TEST(GuardianMachine, LeftOversOfAFailureAreKilledAtOnce) {
  Guardian guardian = In(State::kRunning);
  guardian.Do(ChildEnded{10, Code(1)});
  EXPECT_EQ(guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)}), "signal 11:15");
  EXPECT_EQ(guardian.Do(ChildEnded{11, Code(0)}), "exited 1:0 | look");
  EXPECT_EQ(guardian.Do(LeftSeen{{50}}), "signal [50]:9");
  EXPECT_EQ(guardian.state(), State::kKilling);
}

// A shell dies of the signal at once; what it waits for may be saving.
TEST(GuardianMachine, LeftOversOfWorkersThatWereStoppedGetTheGrace) {
  Guardian guardian = In(State::kRunning);
  guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)});
  guardian.Do(ChildEnded{10, {.signal = SIGTERM}});
  EXPECT_EQ(guardian.Do(ChildEnded{11, {.signal = SIGTERM}}), "exited 1:143 | look");
  // 50 had the signal with its worker, 51 has left the worker's session.
  EXPECT_EQ(guardian.Do(LeftSeen{{50, 51}, {{50, 10}, {51, 51}}}), "signal [51]:9");
  EXPECT_EQ(guardian.state(), State::kStopping);
  EXPECT_EQ(guardian.Do(ChildEnded{51, Killed()}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{{50}, {{50, 10}}}), "");
  EXPECT_EQ(guardian.Wake(), "left 3[50] for 29");
  EXPECT_EQ(guardian.Do(ChildEnded{98, Code(0)}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{{50}, {{50, 10}}}), "") << "told and signalled once";
  EXPECT_EQ(guardian.Do(ChildEnded{50, Code(0)}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{}), "gone 3[]");
}

TEST(GuardianMachine, OnlyWhatTheFailedWorkerLeftIsKilledAtOnce) {
  Guardian guardian = In(State::kRunning);
  guardian.Do(ChildEnded{10, Code(1)});
  EXPECT_EQ(guardian.Do(StopAsked{kRound, SIGTERM, seconds(30)}), "signal 11:15");
  guardian.Do(ChildEnded{11, {.signal = SIGTERM}});
  EXPECT_EQ(guardian.Do(LeftSeen{{50, 51, 52}, {{50, 10}, {51, 11}, {52, 52}}}),
            "signal [50,52]:9");
  EXPECT_EQ(guardian.state(), State::kStopping);
  EXPECT_EQ(guardian.Do(LeftSeen{{51}, {{51, 11}}}), "");
  EXPECT_EQ(guardian.Wake(), "left 3[51] for 29");
  EXPECT_EQ(guardian.Wake(), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{{51}, {{51, 11}}}), "signal [51]:9");
}

TEST(GuardianMachine, WithoutAGraceNothingIsSpared) {
  Guardian guardian = In(State::kRunning);
  EXPECT_EQ(guardian.Do(StopAsked{kRound, SIGTERM, Duration(0)}), "signal 10:9 | signal 11:9");
  guardian.Do(ChildEnded{10, Killed()});
  guardian.Do(ChildEnded{11, Killed()});
  EXPECT_EQ(guardian.Do(LeftSeen{{50}, {{50, 10}}}), "signal [50]:9");
}

TEST(GuardianMachine, SweepsAgainUntilNothingIsForkedAnyMore) {
  Guardian guardian = In(State::kKilling);
  guardian.Do(ChildEnded{10, Killed()});
  EXPECT_EQ(guardian.Do(ChildEnded{11, Killed()}), "exited 1:137 | look");
  EXPECT_EQ(guardian.Do(LeftSeen{{60}}), "signal [60]:9");
  Instant first = guardian.now();
  EXPECT_EQ(guardian.Wake(), "look");
  EXPECT_EQ(guardian.now() - first, kFirstSweepPause);
  EXPECT_EQ(guardian.Do(LeftSeen{{61}}), "signal [61]:9");
  EXPECT_EQ(guardian.Wake(), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{}), "gone 3[]");
}

TEST(GuardianMachine, GivesUpOnWhatCannotBeKilledAndSaysSo) {
  Guardian guardian = In(State::kKilling);
  Instant killed = guardian.now();
  guardian.Do(ChildEnded{10, Killed()});
  std::string trace;
  for (int i = 0; i < 100 && guardian.state() == State::kKilling; ++i) {
    trace = guardian.Wake();
    if (trace == "look") guardian.Do(LeftSeen{{11}});
  }
  EXPECT_EQ(trace, "gone 3[11]");
  EXPECT_EQ(guardian.now() - killed, kKillPatience);
  // It doesn't stand in the way of the next round, and its late end is nobody's.
  guardian.Do(SpawnAsked{RoundId(4), kZero});
  guardian.Do(Forked{kZero, 20});
  guardian.Do(ExecDone{20});
  EXPECT_EQ(guardian.Do(ChildEnded{20, Code(0)}), "exited 0:0");
  EXPECT_EQ(guardian.Do(StopAsked{RoundId(4), SIGTERM, seconds(30)}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{{11}}), "gone 4[]");
  EXPECT_EQ(guardian.Do(ChildEnded{11, Killed()}), "");
}

TEST(GuardianMachine, AStopOfAnOldRoundDoesNotTouchTheNew) {
  Guardian guardian = In(State::kRunning);
  EXPECT_EQ(guardian.Do(StopAsked{RoundId(2), SIGTERM, seconds(0)}), "gone 2[]");
  EXPECT_EQ(guardian.state(), State::kRunning);
}

TEST(GuardianMachine, ASecondStopShortensTheGraceButNeverLengthens) {
  Guardian guardian = In(State::kStopping);
  Instant stopped = guardian.now();
  guardian.Do(StopAsked{kRound, SIGTERM, seconds(60)});
  guardian.Do(StopAsked{kRound, SIGTERM, seconds(2)});
  EXPECT_EQ(guardian.Wake(), "signal 10:9 | signal 11:9");
  EXPECT_EQ(guardian.now() - stopped, seconds(2));
  Guardian other = In(State::kStopping);
  EXPECT_EQ(other.Do(StopAsked{kRound, SIGTERM, seconds(0)}), "signal 10:9 | signal 11:9");
}

TEST(GuardianMachine, DyingEndsWithTheLastProcessOrAtItsBound) {
  Guardian guardian = In(State::kDying);
  guardian.Do(ChildEnded{10, Killed()});
  EXPECT_EQ(guardian.Do(ChildEnded{11, Killed()}), "look");
  EXPECT_EQ(guardian.Do(LeftSeen{}), "exit");
  EXPECT_EQ(guardian.state(), State::kEnded);

  Guardian stuck = In(State::kDying);
  Instant gone = stuck.now();
  std::string trace;
  for (int i = 0; i < 100 && stuck.state() == State::kDying; ++i) {
    trace = stuck.Wake();
    if (trace == "look") stuck.Do(LeftSeen{{10}});
  }
  EXPECT_EQ(trace, "exit");
  EXPECT_EQ(stuck.now() - gone, kDyingPatience);
}

}  // namespace
}  // namespace muster::agent::guardian
