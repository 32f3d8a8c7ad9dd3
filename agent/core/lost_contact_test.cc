// How long workers live when contact with the rendezvous is lost: --lost-contact and what decides
// in its automatic mode.
#include <algorithm>
#include <csignal>
#include <string>

#include "agent/core/agent_machine.h"
#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

// Two workers run round 1, attached at 0 with a lease of 3 s.
void ToRunning(TracedMachine& m) {
  m.At(0, RendezvousConnected{.to_own_address = true});
  m.At(0,
       Attached{.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)});
  m.At(100, StartOf(1));
  m.At(110, WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(0), .pid = 100});
  m.At(110, WorkerStarted{.round = RoundId(1), .local_rank = LocalRank(1), .pid = 101});
}

// The workers of ToRunning() say Hello, as SDK programs do.
void SayHello(TracedMachine& m) {
  m.At(150, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(0)});
  m.At(160, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(1)});
}

// Contact is lost at 300, every probe is answered with `is_refused`, every try with silence. When
// the lease's end killed the workers, in seconds; 0 if they lived until contact was given up on.
int64_t KilledInSecond(TracedMachine& m, bool is_refused) {
  std::string effects = m.At(300, RendezvousDisconnected{.why = "reset"});
  auto has = [&effects](const char* effect) { return effects.find(effect) != std::string::npos; };
  for (int64_t ms = 300; ms < 70'000;) {
    if (has("stop r1")) return has("show") ? ms / 1000 : 0;
    if (has("probe")) {
      effects = m.At(ms, EndpointProbed{.is_refused = is_refused});
    } else if (has("connect")) {
      effects = m.At(ms, RendezvousDisconnected{.why = "no answer"});
    } else {
      ms = std::max(ms + 1, m.wakeup_ms());
      effects = m.At(ms, TimePassed{});
    }
  }
  return -1;
}

TEST(LostContact, EachModeLetsWorkersLiveAsLongAsItSays) {
  struct Case {
    const char* name;
    LostContact mode;
    bool is_sdk;
    bool is_refused;
    int64_t killed_in_second;
  };
  // 2.5 s after the last acknowledgement the lease ends; after 60 s contact is given up on.
  const Case kCases[] = {
      {"auto, the process is gone", LostContact::kAuto, false, true, 0},
      {"auto, nobody answers", LostContact::kAuto, false, false, 2},
      {"auto, SDK workers", LostContact::kAuto, true, false, 0},
      {"go-on, nobody answers", LostContact::kGoOn, false, false, 0},
      {"stop, the process is gone", LostContact::kStop, false, true, 2},
      {"stop, SDK workers", LostContact::kStop, true, true, 2},
  };
  for (const Case& c : kCases) {
    AgentOptions options = TracedMachine::DefaultOptions();
    options.lost_contact = c.mode;
    TracedMachine m(options);
    ToRunning(m);
    if (c.is_sdk) SayHello(m);
    EXPECT_EQ(KilledInSecond(m, c.is_refused), c.killed_in_second) << c.name;
  }
}

TEST(LostContact, TheLeaseIsNamed) {
  TracedMachine m;
  ToRunning(m);
  m.At(2500, TimePassed{});
  EXPECT_EQ(m.shown(),
            "no answer from the rendezvous at " + TracedMachine::DefaultOptions().endpoint +
                " to anything sent in the last 2.5 s, and the lease of 3 s is nearly over: this "
                "node may be replaced, so its workers are killed");
}

// A rendezvous that falls silent right after its answer has 2.5 s, one that does so right before
// the next heartbeat 1.5 s.
TEST(LostContact, TheLeaseIsCountedFromTheHeartbeatThatWasAnswered) {
  TracedMachine m;
  ToRunning(m);
  m.At(1000, TimePassed{});
  m.At(1001, HeartbeatAck{.sequence = 1});
  int64_t killed_at = 0;
  while (killed_at == 0 && m.wakeup_ms() >= 0) {
    const int64_t ms = m.wakeup_ms();
    if (m.At(ms, TimePassed{}).find("stop r1") != std::string::npos) killed_at = ms;
  }
  EXPECT_EQ(killed_at, 3500);
}

TEST(LostContact, OneWorkerWithoutTheSdkIsEnoughForTheLeaseToDecide) {
  TracedMachine m;
  ToRunning(m);
  m.At(150, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(1)});
  m.At(150, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(1)});
  m.At(150, WorkerSaidHello{.round = RoundId(9), .local_rank = LocalRank(0)});
  EXPECT_EQ(KilledInSecond(m, /*is_refused=*/false), 2);
}

TEST(LostContact, AHelloWhileContactIsMissingCounts) {
  TracedMachine m;
  ToRunning(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(310, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(0)}), "-");
  // The guardian's deadline is renewed as if contact held: a frozen agent is noticed all the same.
  EXPECT_EQ(m.At(320, WorkerSaidHello{.round = RoundId(1), .local_rank = LocalRank(1)}),
            "renew 3070");
  EXPECT_EQ(m.At(1320, TimePassed{}), "renew 4070");
}

TEST(LostContact, WhereWorkersGoOnASilentStreamIsDroppedAndTheyAreNotTouched) {
  AgentOptions options = TracedMachine::DefaultOptions();
  options.lost_contact = LostContact::kGoOn;
  TracedMachine m(options);
  ToRunning(m);
  m.At(1000, TimePassed{});
  m.At(2000, TimePassed{});
  EXPECT_EQ(m.At(2500, TimePassed{}), "disconnect; show; connect");
  EXPECT_EQ(m.At(2600, RendezvousConnected{}), "send Attach running r1 highest 1");
  // The others went on without this node: nothing of it counts any more.
  EXPECT_EQ(m.At(2610, Refused{.code = RefusalCode::kSuperseded, .message = "lost"}),
            "show; disconnect; abort r1 culprit -1; stop r1 signal 9 grace 0");
}

TEST(LostContact, AFrozenAgentIsNoticedThoughItsWorkersMayGoOn) {
  TracedMachine m;
  ToRunning(m);
  SayHello(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
  m.At(1160, TimePassed{});
  // Its last renewal was good until 3910 for the guardian, which has killed the workers then.
  EXPECT_EQ(m.At(9000, EndOf(1, 0, {.signal = SIGKILL})),
            "show; abort r1 culprit -1; stop r1 signal 9 grace 0; disconnect");
}

TEST(LostContact, AUsersStopHasItsGraceAlsoWithoutContact) {
  TracedMachine m;
  ToRunning(m);
  SayHello(m);
  m.At(300, RendezvousDisconnected{.why = "reset"});
  EXPECT_EQ(m.At(400, StopRequested{.signal = SIGTERM}),
            "show; stop r1 signal 15 grace 30000; disconnect");
  for (int64_t ms = m.wakeup_ms(); ms < 20'000; ms = m.wakeup_ms()) {
    EXPECT_TRUE(m.At(ms, TimePassed{}).starts_with("renew")) << ms;
  }
  EXPECT_EQ(m.At(20'000, GroupGone{.round = RoundId(1)}), "end 143");
}

}  // namespace
}  // namespace muster::agent
