// The limit of a rendezvous: a bare gRPC server of the same shape. When `--nodes` members have
// joined it tells all to start; when a stream ends it tells the rest to stop, and when all have
// answered, to start again. No leases, no checks, no state beyond that.
//   bare_rendezvous --nodes=1000         prints `listens PORT`
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <set>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "agent/guardian/descriptor_limit.h"
#include "base/mutex.h"
#include "tests/load/bare.grpc.pb.h"
#include "tests/load/bare_words.h"

namespace muster::load {
namespace {

class BareSession;

// Who is here, and how far the round has come; under one lock.
class Room {
 public:
  explicit Room(size_t nodes) : nodes_(nodes) {}

  void Joined(BareSession* session) {
    base::MutexLock lock(mutex_);
    members_.insert(session);
    if (members_.size() == nodes_) StartAll();
  }
  void Answered(BareSession* session) {
    base::MutexLock lock(mutex_);
    unanswered_.erase(session);
    if (is_stopping_ && unanswered_.empty()) StartAll();
  }
  void Gone(BareSession* session);

 private:
  void StartAll() MUSTER_REQUIRES(mutex_);
  void StopAll() MUSTER_REQUIRES(mutex_);

  const size_t nodes_;
  base::Mutex mutex_;
  std::set<BareSession*> members_ MUSTER_GUARDED_BY(mutex_);
  std::set<BareSession*> unanswered_ MUSTER_GUARDED_BY(mutex_);
  uint64_t round_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ MUSTER_GUARDED_BY(mutex_) = false;
};

class BareSession : public grpc::ServerBidiReactor<proto::Word, proto::Word> {
 public:
  explicit BareSession(Room* room) : room_(room) {
    StartSendInitialMetadata();
    StartRead(&incoming_);
  }

  void Say(proto::Word word) {
    base::MutexLock lock(mutex_);
    if (is_finished_) return;
    FillUp(&word);
    queue_.push_back(std::move(word));
    if (queue_.size() == 1) StartWrite(&queue_.front());
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return End();
    if (incoming_.kind() == proto::Word::JOIN) {
      room_->Joined(this);
    } else {
      room_->Answered(this);
    }
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    base::MutexLock lock(mutex_);
    queue_.pop_front();
    if (ok && !is_finished_ && !queue_.empty()) StartWrite(&queue_.front());
  }
  // A connection that breaks is heard of here first.
  void OnCancel() override { End(); }
  void OnDone() override { delete this; }

  void End() {
    room_->Gone(this);
    base::MutexLock lock(mutex_);
    if (is_finished_) return;
    is_finished_ = true;
    Finish(grpc::Status::OK);
  }

  Room* const room_;
  proto::Word incoming_;
  base::Mutex mutex_;
  std::deque<proto::Word> queue_ MUSTER_GUARDED_BY(mutex_);
  bool is_finished_ MUSTER_GUARDED_BY(mutex_) = false;
};

void Room::Gone(BareSession* session) {
  base::MutexLock lock(mutex_);
  if (members_.erase(session) == 0) return;
  if (round_ > 0 && !is_stopping_) StopAll();
  unanswered_.erase(session);
  if (is_stopping_ && unanswered_.empty()) StartAll();
}

void Room::StartAll() {
  is_stopping_ = false;
  proto::Word start;
  start.set_kind(proto::Word::START);
  start.set_round(++round_);
  start.set_world_size(static_cast<int32_t>(members_.size()));
  int32_t rank = 0;
  for (BareSession* member : members_) {
    start.set_rank(rank++);
    member->Say(start);
  }
}

void Room::StopAll() {
  is_stopping_ = true;
  unanswered_ = members_;
  proto::Word stop;
  stop.set_kind(proto::Word::STOP);
  stop.set_round(round_);
  for (BareSession* member : members_) member->Say(stop);
}

class BareService : public proto::Bare::CallbackService {
 public:
  explicit BareService(Room* room) : room_(room) {}
  grpc::ServerBidiReactor<proto::Word, proto::Word>* Session(
      grpc::CallbackServerContext* /*context*/) override {
    return new BareSession(room_);  // Deletes itself when gRPC is done with it.
  }

 private:
  Room* const room_;
};

int Main(int argc, char** argv) {
  size_t nodes = 1;
  CLI::App app("A bare gRPC server of a rendezvous' shape");
  app.add_option("--nodes", nodes, "How many members start the first round")->required();
  CLI11_PARSE(app, argc, argv);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  agent::guardian::RaiseDescriptorLimit();
  // As in launcher/main.cc.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Room room(nodes);
  BareService service(&room);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 71;
  std::printf("listens %d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  try {
    return muster::load::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bare_rendezvous: %s\n", e.what());
    return 70;
  }
}
