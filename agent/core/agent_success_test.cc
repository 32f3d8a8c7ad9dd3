// What an agent tells of workers that exit 0: the first of them closes the round for newcomers, the
// last one is the node's success.
#include <csignal>

#include "agent/core/agent_machine.h"
#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

Attached AttachedNow() {
  return {.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)};
}

void ToRunning(TracedMachine& m) {
  m.At(0, RendezvousConnected{});
  m.At(0, AttachedNow());
  m.At(100, StartOf(1));
}

TEST(AgentSuccess, TheFirstAndTheLastWorkerAreTold) {
  AgentOptions options = TracedMachine::DefaultOptions();
  options.attach.worker_count = 3;
  TracedMachine m(options);
  ToRunning(m);
  EXPECT_EQ(m.At(200, EndOf(1, 0, {})), "send WorkerSucceeded r1");
  EXPECT_EQ(m.At(210, EndOf(1, 1, {})), "-");
  EXPECT_EQ(m.At(220, EndOf(1, 2, {})), "send NodeSucceeded r1; stop r1 signal 15 grace 30000");
}

TEST(AgentSuccess, WhatCouldNotBeSentIsToldWithAttachAndAfterIt) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(210, EndOf(1, 0, {})), "-");
  m.At(310, RendezvousConnected{});
  const auto& send = std::get<SendToRendezvous>(m.effects().back());
  EXPECT_TRUE(std::get<Attach>(send.message).running->worker_succeeded);
  EXPECT_FALSE(std::get<Attach>(send.message).running->succeeded);
  EXPECT_EQ(m.At(320, AttachedNow()), "show; renew 3060; send WorkerSucceeded r1");
}

TEST(AgentSuccess, BesideAFailureItIsNoNews) {
  TracedMachine m;
  ToRunning(m);
  m.At(200, EndOf(1, 0, {.code = 3}));
  EXPECT_EQ(m.At(205, EndOf(1, 1, {})), "-");
  m.At(300, RendezvousDisconnected{.why = "reset"});
  m.At(310, RendezvousConnected{});
  EXPECT_EQ(m.At(320, AttachedNow()), "show; renew 3060; send WorkerFailed r1 rank 2 age 120");
}

}  // namespace
}  // namespace muster::agent
