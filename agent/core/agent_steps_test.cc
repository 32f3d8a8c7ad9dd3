// What the rendezvous is told of the steps that this node's workers report through the SDK.
#include <string>

#include "agent/core/agent_machine.h"
#include "agent/core/machine_trace.h"
#include "base/ids.h"
#include "base/session_messages.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

void ToRunning(TracedMachine& m) {
  m.At(0, RendezvousConnected{});
  m.At(0,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  m.At(100, StartOf(1));
}

std::string Stepped(TracedMachine& m, int64_t ms, int local_rank, int64_t step) {
  return m.At(ms, WorkerReportedStep{
                      .world = WorldOf(1), .local_rank = LocalRank(local_rank), .step = step});
}

TEST(AgentSteps, TheFirstStepOfTheLastWorkerIsToldAtOnce) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(Stepped(m, 200, 0, 0), "-");
  EXPECT_EQ(Stepped(m, 210, 1, 0), "send Heartbeat 1 step 0");
  EXPECT_EQ(Stepped(m, 220, 1, 1), "-") << "later ones go with the next heartbeat";
  EXPECT_EQ(m.At(1210, TimePassed{}), "send Heartbeat 2 step 0") << "the lowest counts";
}

TEST(AgentSteps, AStoppedNodeTellsTheHighestStepThatItCompleted) {
  TracedMachine m;
  ToRunning(m);
  Stepped(m, 200, 0, 7);
  Stepped(m, 210, 1, 6);
  m.At(300, StopOf(1));
  Stepped(m, 310, 1, 8);
  EXPECT_EQ(m.At(400, GroupGone{.round = RoundId(1)}), "send StopDone r1 step 8");
}

TEST(AgentSteps, AStepOfAnotherWorldOrWorkerIsNone) {
  TracedMachine m;
  ToRunning(m);
  EXPECT_EQ(Stepped(m, 200, 0, 3), "-");
  EXPECT_EQ(Stepped(m, 200, 2, 3), "-");
  EXPECT_EQ(Stepped(m, 200, 1, -3), "-");
  EXPECT_EQ(
      m.At(210, WorkerReportedStep{.world = WorldOf(2), .local_rank = LocalRank(1), .step = 3}),
      "-");
  EXPECT_EQ(m.At(1000, TimePassed{}), "send Heartbeat 1");
}

TEST(AgentSteps, AStopDoneThatContactHeldUpKeepsItsStep) {
  TracedMachine m;
  ToRunning(m);
  Stepped(m, 200, 0, 7);
  m.At(300, StopOf(1));
  m.At(310, RendezvousDisconnected{.why = "reset"});
  m.At(320, RendezvousConnected{});
  EXPECT_EQ(m.At(330, GroupGone{.round = RoundId(1)}), "-");
  EXPECT_EQ(m.At(340, Attached{.lease = std::chrono::seconds(3),
                               .reconnect_timeout = std::chrono::seconds(60)}),
            "show; renew 3070; send StopDone r1 step 7");
}

}  // namespace
}  // namespace muster::agent
