// What the agent does about a worker that hangs.
#include <csignal>
#include <string>

#include "agent/core/agent_machine.h"
#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kTimeout(4);

AgentOptions Options() {
  AgentOptions options = TracedMachine::DefaultOptions();
  options.hang_timeout = kTimeout;
  return options;
}

class AgentHang : public testing::Test {
 protected:
  AgentHang() : m_(Options()) {
    m_.At(0, RendezvousConnected{});
    // A lease that outlasts the test: heartbeats don't matter here.
    m_.At(0, RendezvousSaid{Attached{.lease = std::chrono::hours(1)}});
    m_.At(0, RendezvousSaid{StartOf(1)});
  }
  void Step(int64_t ms, int local_rank, int64_t step) {
    m_.At(ms, WorkerReportedStep{
                  .world = WorldOf(1), .local_rank = LocalRank(local_rank), .step = step});
  }
  // Serves the timer up to `ms`: the first line of effects that has `wanted`.
  std::string Until(int64_t ms, const std::string& wanted) {
    for (; now_ <= ms; now_ += 50) {
      std::string effects = m_.At(now_, TimePassed{});
      if (effects.find(wanted) != std::string::npos) return effects;
    }
    return "-";
  }
  TracedMachine m_;
  int64_t now_ = 100;
};

TEST_F(AgentHang, WorkersArePingedFourTimesWithinTheTimeout) {
  EXPECT_EQ(Until(950, "ping"), "-");
  EXPECT_EQ(Until(1000, "ping"), "ping r1");
  EXPECT_EQ(Until(2000, "ping"), "ping r1");
}

TEST_F(AgentHang, AHungWorkerIsLookedAtThenKilledAndTheRoundStops) {
  Step(100, 0, 7);
  Step(100, 1, 8);
  // A quarter more than the timeout, as there is another node.
  EXPECT_EQ(Until(5050, "hung"), "-");
  EXPECT_NE(Until(5150, "hung").find("look at hung 0"), std::string::npos);
  EXPECT_EQ(Until(6000, "hung"), "-");
  WorkerEnded ended = EndOf(1, 0, {.signal = SIGKILL});
  ended.failure.hung = true;
  ended.failure.evidence = "it completed no step";
  EXPECT_EQ(m_.At(6000, ended),
            "send WorkerFailed r1 rank 2 age 0; show; kill 0; abort r1 culprit 2; stop r1 signal "
            "15 grace 30000");
  EXPECT_NE(m_.shown().find("hung and was killed: it completed no step"), std::string::npos);
  // Its real end is no news, and nobody hangs any more.
  EXPECT_EQ(m_.At(6010, EndOf(1, 0, {.signal = SIGKILL})), "-");
  EXPECT_EQ(Until(20'000, "hung"), "-");
}

TEST_F(AgentHang, WorkersThatWaitLeaveOtherNodesTimeAndAreToldToWait) {
  Step(100, 0, 7);
  Step(100, 1, 7);
  const Activity waits{.kind = Activity::Kind::kWaits, .lasted = std::chrono::seconds(1)};
  std::string effects;
  while (now_ < 20'000 && effects.find("hung") == std::string::npos) {
    for (int i : {0, 1}) {
      m_.At(now_,
            WorkerAnswered{.world = WorldOf(1), .local_rank = LocalRank(i), .activity = waits});
    }
    effects = Until(now_ + 500, "hung");
  }
  EXPECT_EQ(now_, 10'100);
  EXPECT_NE(effects.find("look at hung 0"), std::string::npos) << effects;
  const auto& look = std::get<LookAtHungWorker>(m_.effects().back());
  EXPECT_TRUE(look.only_waited);
  WorkerEnded ended = EndOf(1, 0, {.signal = SIGKILL});
  ended.failure.hung = true;
  ended.failure.only_waited = look.only_waited;
  m_.At(11'000, ended);
  EXPECT_NE(m_.shown().find("only waited for other ranks and was killed"), std::string::npos);
}

TEST_F(AgentHang, TheLastStepGoesWithAnyFailure) {
  Step(100, 1, 8);
  m_.At(200, EndOf(1, 1, {.code = 1}));
  const auto& sent = std::get<SendToRendezvous>(m_.effects().front());
  EXPECT_EQ(std::get<WorkerFailed>(sent.message).failure.last_step, 8);
}

TEST_F(AgentHang, AnswersCountUntilTheChannelIsClosed) {
  m_.At(1000, WorkerAnswered{.world = WorldOf(1), .local_rank = LocalRank(0)});
  m_.At(1000, WorkerAnswered{.world = WorldOf(1), .local_rank = LocalRank(1)});
  m_.At(1000, WorkerAnswered{.world = WorldOf(9), .local_rank = LocalRank(1)});
  m_.At(1100, WorkerLeft{.world = WorldOf(1), .local_rank = LocalRank(0)});
  now_ = 1100;
  EXPECT_NE(Until(5000, "hung").find("look at hung 1"), std::string::npos);
}

TEST_F(AgentHang, WhoStopsBeforeItsFirstAnswerIsFound) {
  m_.At(500, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(1)});
  now_ = 500;
  EXPECT_EQ(Until(4450, "hung"), "-");
  EXPECT_NE(Until(4550, "hung").find("look at hung 1"), std::string::npos);
}

TEST_F(AgentHang, ARoundThatIsOverHasNoHungWorkers) {
  Step(100, 0, 7);
  m_.At(200, EndOf(1, 1, {.code = 1}));
  EXPECT_EQ(Until(20'000, "hung"), "-");
  EXPECT_EQ(Until(40'000, "ping"), "-");
}

}  // namespace
}  // namespace muster::agent
