// Whole lives of an agent as traces: what came in, and what went out.
#include <csignal>
#include <string>

#include "agent/core/machine_trace.h"
#include "gtest/gtest.h"

namespace muster::agent {
namespace {

// Collects "ms event -> effects" lines.
class Story {
 public:
  template <class Event>
  Story& At(int64_t ms, const std::string& name, Event event) {
    std::string effects = machine_.At(ms, std::move(event));
    text_ += std::to_string(ms) + " " + name + " -> " + effects + "\n";
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  TracedMachine machine_;
  std::string text_ = "\n";
};

Attached In() {
  return {.lease = std::chrono::seconds(3), .reconnect_timeout = std::chrono::seconds(60)};
}

Verdict Good() {
  Verdict verdict;
  verdict.succeeded = true;
  return verdict;
}

TEST(AgentStory, AJobThatSucceeds) {
  Story story;
  story.At(0, "connected", RendezvousConnected{})
      .At(1, "attached", In())
      .At(2, "start 1", StartOf(1))
      .At(50, "rank 2 exits 0", EndOf(1, 0, {}))
      .At(60, "rank 3 exits 0", EndOf(1, 1, {}))
      .At(61, "gone", GroupGone{.round = RoundId(1)})
      .At(62, "noted", SuccessNoted{.world = WorldOf(1)})
      .At(99, "job ended", JobEnded{Good()});
  EXPECT_EQ(story.text(), R"(
0 connected -> send Attach
1 attached -> renew 2750
2 start 1 -> renew 2750; spawn r1
50 rank 2 exits 0 -> send WorkerSucceeded r1
60 rank 3 exits 0 -> send NodeSucceeded r1; stop r1 signal 15 grace 30000
61 gone -> -
62 noted -> -
99 job ended -> disconnect; end 0
)");
}

TEST(AgentStory, AWorkerFailsAndAllStartAgain) {
  Story story;
  story.At(0, "connected", RendezvousConnected{})
      .At(1, "attached", In())
      .At(2, "start 1", StartOf(1))
      .At(50, "rank 3 is killed", EndOf(1, 1, {.signal = SIGKILL}))
      .At(51, "rank 2 exits 1, for its peer is lost", EndOf(1, 0, {.code = 1}))
      .At(52, "stop 1", StopOf(1))
      .At(53, "gone", GroupGone{.round = RoundId(1)})
      .At(54, "start 2", StartOf(2, 1));
  EXPECT_EQ(story.text(), R"(
0 connected -> send Attach
1 attached -> renew 2750
2 start 1 -> renew 2750; spawn r1
50 rank 3 is killed -> send WorkerFailed r1 rank 3 age 0; show; abort r1 culprit 3; stop r1 signal 15 grace 30000
51 rank 2 exits 1, for its peer is lost -> send WorkerFailed r1 rank 2 age 0
52 stop 1 -> show
53 gone -> send StopDone r1
54 start 2 -> show; renew 2750; spawn r2
)");
}

TEST(AgentStory, APeerNodeIsLost) {
  Story story;
  story.At(0, "connected", RendezvousConnected{})
      .At(1, "attached", In())
      .At(2, "start 1", StartOf(1))
      .At(50, "stop 1, peer lost", StopOf(1, StopCause::kPeerLost))
      .At(51, "rank 2 is killed", EndOf(1, 0, {.signal = SIGKILL}))
      .At(52, "gone", GroupGone{.round = RoundId(1)})
      .At(53, "start 2", StartOf(2, 1));
  EXPECT_EQ(story.text(), R"(
0 connected -> send Attach
1 attached -> renew 2750
2 start 1 -> renew 2750; spawn r1
50 stop 1, peer lost -> show; abort r1 culprit 0; stop r1 signal 9 grace 0
51 rank 2 is killed -> -
52 gone -> send StopDone r1
53 start 2 -> show; renew 2750; spawn r2
)");
}

TEST(AgentStory, TheRendezvousIsRestartedAndNoWorkerIsTouched) {
  Story story;
  story.At(0, "connected", RendezvousConnected{})
      .At(1, "attached", In())
      .At(2, "start 1", StartOf(1))
      .At(50, "stream reset", RendezvousDisconnected{.why = "reset"})
      .At(51, "refused", RendezvousDisconnected{.why = "connection refused"})
      .At(101, "time", TimePassed{})
      .At(102, "connected", RendezvousConnected{})
      .At(103, "attached", In())
      .At(104, "start 1 again", StartOf(1));
  EXPECT_EQ(story.text(), R"(
0 connected -> send Attach
1 attached -> renew 2750
2 start 1 -> renew 2750; spawn r1
50 stream reset -> show; connect
51 refused -> -
101 time -> connect
102 connected -> send Attach running r1 highest 1
103 attached -> show; renew 2852
104 start 1 again -> -
)");
}

TEST(AgentStory, ACutOffNodeKillsItsWorkersAndIsTakenInAgain) {
  Story story;
  story.At(0, "connected", RendezvousConnected{})
      .At(1, "attached", In())
      .At(2, "start 1", StartOf(1))
      .At(1001, "time", TimePassed{})
      .At(2001, "time", TimePassed{})
      .At(2500, "time", TimePassed{})
      .At(2501, "gone", GroupGone{.round = RoundId(1)})
      .At(2502, "connected", RendezvousConnected{})
      .At(2503, "superseded", Refused{.code = RefusalCode::kSuperseded, .message = "lost"})
      .At(2503, "time", TimePassed{})
      .At(2560, "time", TimePassed{})
      .At(2561, "connected", RendezvousConnected{})
      .At(2562, "attached", In())
      .At(2563, "start 3", StartOf(3, 2));
  EXPECT_EQ(story.text(), R"(
0 connected -> send Attach
1 attached -> renew 2750
2 start 1 -> renew 2750; spawn r1
1001 time -> send Heartbeat 1
2001 time -> send Heartbeat 2
2500 time -> show; abort r1 culprit -1; stop r1 signal 9 grace 0; disconnect
2501 gone -> connect
2502 connected -> send Attach highest 1
2503 superseded -> show; disconnect
2503 time -> -
2560 time -> connect
2561 connected -> send Attach highest 1
2562 attached -> show; renew 5311
2563 start 3 -> show; renew 5311; spawn r3
)");
}

}  // namespace
}  // namespace muster::agent
