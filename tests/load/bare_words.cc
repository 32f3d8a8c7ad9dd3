#include "tests/load/bare_words.h"

#include <chrono>
#include <string>

#include "base/session_messages.h"
#include "base/version.h"
#include "proto/session_convert.h"

namespace muster::load {
namespace {

// As an agent of a crowd says and hears them (agent_crowd.cc), with numbers of a large job.
World SampleWorld() {
  World world;
  world.round = RoundId(3);
  world.id.bytes.fill(0xa5);
  return world;
}

size_t JoinSize() {
  Attach attach;
  attach.incarnation.bytes.fill(0xa5);
  attach.node_name = "crowd0-00000";
  attach.address = "127.0.0.1";
  attach.terms.run_id = "load";
  attach.terms.min_nodes = 9990;
  attach.terms.max_nodes = 10000;
  attach.terms.version = kVersion;
  attach.candidate_port = 40000;
  return ToProto(AgentMessage(attach)).ByteSizeLong();
}

size_t StartSize() {
  StartRound start;
  start.world = SampleWorld();
  start.key.bytes.fill(0xa5);
  start.group_rank = GroupRank(5000);
  start.group_world_size = 10000;
  start.first_rank = Rank(5000);
  start.world_size = 10000;
  start.master_address = "127.0.0.1";
  start.master_port = 40000;
  start.attempt = 2;
  return ToProto(RendezvousMessage(start)).ByteSizeLong();
}

size_t StopSize() {
  StopRound stop;
  stop.world = SampleWorld();
  stop.cause = StopCause::kPeerLost;
  stop.reason = "lost node crowd0-00000: its stream ended and it did not come back within 100 ms";
  stop.culprit = Rank(5000);
  return ToProto(RendezvousMessage(stop)).ByteSizeLong();
}

size_t StopDoneSize() {
  StopDone done;
  done.world = SampleWorld();
  done.candidate_port = 40000;
  return ToProto(AgentMessage(done)).ByteSizeLong();
}

}  // namespace

size_t SizeOf(proto::Word::Kind kind) {
  static const size_t kJoin = JoinSize(), kStart = StartSize(), kStop = StopSize(),
                      kStopDone = StopDoneSize();
  switch (kind) {
    case proto::Word::START:
      return kStart;
    case proto::Word::STOP:
      return kStop;
    case proto::Word::STOP_DONE:
      return kStopDone;
    default:
      return kJoin;
  }
}

void FillUp(proto::Word* word) {
  const size_t wanted = SizeOf(word->kind());
  // The field's own tag and length.
  constexpr size_t kOverhead = 2;
  const size_t bare = word->ByteSizeLong() + kOverhead;
  if (bare < wanted) word->set_filling(std::string(wanted - bare, 'x'));
}

}  // namespace muster::load
