#include "rendezvous/server/rendezvous_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/version.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/session_convert.h"
#include "rendezvous/server/own_address.h"
#include "rendezvous/server/status_convert.h"

namespace muster::rendezvous {
namespace {

// What may wait for one reader. An agent hears a few messages per round and one per heartbeat.
constexpr size_t kMaxQueued = 4096;
// A call waits this long at most; its caller asks again.
constexpr Duration kLongestWait = std::chrono::hours(1);

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

Duration Wait(int64_t ms) {
  ms = std::clamp<int64_t>(ms, 0, kLongestWait / std::chrono::milliseconds(1));
  return std::chrono::milliseconds(ms);
}

// The writing half that both kinds of stream share: a queue, one write at a time, one Finish.
// gRPC's Start... and Finish calls are made under the lock: they only enqueue, and without it a
// write could be started after the Finish.
template <class Reactor, class Message>
class QueuedWriter : public Reactor {
 protected:
  explicit QueuedWriter(grpc::CallbackServerContext* context) : context_(context) {}

  void Enqueue(Message message) {
    base::MutexLock lock(mutex_);
    if (finished_ || ending_) return;
    if (queue_.size() >= kMaxQueued) {
      FinishNow(absl::UnavailableError("messages aren't read fast enough"));
      return;
    }
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }

  void FinishWhenDrained() {
    base::MutexLock lock(mutex_);
    ending_ = true;
    if (queue_.empty()) FinishNow(absl::OkStatus());
  }

  void Finish(const absl::Status& status) {
    base::MutexLock lock(mutex_);
    FinishNow(status);
  }

  void OnWriteDone(bool ok) override {
    base::MutexLock lock(mutex_);
    queue_.pop_front();
    if (finished_) return;
    if (!ok) return FinishNow(absl::CancelledError("the stream broke"));
    if (!queue_.empty()) return this->StartWrite(&queue_.front());
    if (ending_) FinishNow(absl::OkStatus());
  }

  // Calls `start` unless the stream has been finished.
  template <class Start>
  void UnlessFinished(Start start) {
    base::MutexLock lock(mutex_);
    if (!finished_) start();
  }

 private:
  void FinishNow(const absl::Status& status) MUSTER_REQUIRES(mutex_) {
    if (finished_) return;
    finished_ = true;
    // A write that is under way may be stuck behind a reader that doesn't read: it is cut off.
    if (!queue_.empty()) context_->TryCancel();
    Reactor::Finish(ToGrpc(status));
  }

  grpc::CallbackServerContext* const context_;
  base::Mutex mutex_;
  // The front one is being written.
  std::deque<Message> queue_ MUSTER_GUARDED_BY(mutex_);
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false;
  bool finished_ MUSTER_GUARDED_BY(mutex_) = false;
};

// One agent's stream.
class SessionReactor
    : public QueuedWriter<grpc::ServerBidiReactor<proto::AgentMessage, proto::RendezvousMessage>,
                          proto::RendezvousMessage>,
      public SessionSink {
 public:
  static SessionReactor* New(RendezvousLoop* loop, grpc::CallbackServerContext* context) {
    // Shared with the loop: either side may be the last that refers to it.
    std::shared_ptr<SessionReactor> reactor(new SessionReactor(loop, context));
    reactor->self_ = reactor;
    context->AddInitialMetadata("muster-version", kVersion);
    const auto& asked = context->client_metadata();
    auto address = asked.find("muster-connected-to");
    if (address != asked.end() &&
        IsOwnAddress(std::string(address->second.data(), address->second.size()))) {
      context->AddInitialMetadata("muster-own-address", "1");
    }
    reactor->StartSendInitialMetadata();
    reactor->StartRead(&reactor->incoming_);
    return reactor.get();
  }

  void Send(const RendezvousMessage& message) override { Enqueue(ToProto(message)); }
  void ReadNext() override {
    UnlessFinished([this] { StartRead(&incoming_); });
  }
  void End() override { FinishWhenDrained(); }
  void Cut(const absl::Status& why) override { Finish(why); }

 private:
  SessionReactor(RendezvousLoop* loop, grpc::CallbackServerContext* context)
      : QueuedWriter(context), loop_(loop) {}

  void OnReadDone(bool ok) override {
    if (!ok) {
      // The agent has said its last word, or the stream broke.
      ReportEnd();
      return FinishWhenDrained();
    }
    absl::StatusOr<AgentMessage> message = FromProto(incoming_);
    if (!message.ok()) return Finish(message.status());
    if (session_.value != 0) return loop_->TakeMessage(session_, *std::move(message));
    auto* attach = std::get_if<Attach>(&*message);
    if (attach == nullptr)
      return Finish(absl::FailedPreconditionError("the first message must be Attach"));
    {
      base::MutexLock lock(session_mutex_);
      // Before the loop hears of it: it may start the next read at once.
      session_ = loop_->NewSessionId();
    }
    loop_->OpenSession(session_, std::move(*attach), self_);
    {
      base::MutexLock lock(session_mutex_);
      is_known_ = true;
      if (!has_ended_) return;
    }
    ReportEnd();
  }

  void OnCancel() override {
    ReportEnd();
    Finish(absl::CancelledError("the stream was cancelled"));
  }

  void OnDone() override {
    ReportEnd();
    self_.reset();  // The last line: it may delete this.
  }

  // Tells the loop once, as soon as it knows the session.
  void ReportEnd() {
    {
      base::MutexLock lock(session_mutex_);
      has_ended_ = true;
      if (was_told_ || !is_known_) return;
      was_told_ = true;
    }
    loop_->SessionEnded(session_);
  }

  RendezvousLoop* const loop_;
  std::shared_ptr<SessionReactor> self_;
  proto::AgentMessage incoming_;
  base::Mutex session_mutex_;
  // Written once, by OnReadDone; gRPC runs the reads one after the other.
  SessionId session_;
  bool is_known_ MUSTER_GUARDED_BY(session_mutex_) = false;
  bool has_ended_ MUSTER_GUARDED_BY(session_mutex_) = false;
  bool was_told_ MUSTER_GUARDED_BY(session_mutex_) = false;
};

class WatchReactor
    : public QueuedWriter<grpc::ServerWriteReactor<proto::WatchEvent>, proto::WatchEvent>,
      public WatchSink {
 public:
  static WatchReactor* New(RendezvousLoop* loop, grpc::CallbackServerContext* context,
                           const std::optional<std::string>& run_id) {
    // Shared with the loop: either side may be the last that refers to it.
    std::shared_ptr<WatchReactor> reactor(new WatchReactor(loop, context));
    reactor->self_ = reactor;
    reactor->watch_ = loop->Watch(run_id, reactor);
    return reactor.get();
  }

  void Send(const WatchedEvent& event) override { Enqueue(EventToProto(event)); }
  // The initial metadata tells the caller that it hears of all that happens from now on.
  void Begun() override {
    UnlessFinished([this] { StartSendInitialMetadata(); });
  }
  void Cut(const absl::Status& why) override { Finish(why); }

 private:
  WatchReactor(RendezvousLoop* loop, grpc::CallbackServerContext* context)
      : QueuedWriter(context), loop_(loop) {}

  void OnCancel() override { Finish(absl::CancelledError("the watch was cancelled")); }
  void OnDone() override {
    loop_->Unwatch(watch_);
    self_.reset();  // The last line: it may delete this.
  }

  RendezvousLoop* const loop_;
  std::shared_ptr<WatchReactor> self_;
  WatchId watch_;
};

// One unary call: answered once, by the loop or by its cancellation.
class CallReactor : public grpc::ServerUnaryReactor {
 public:
  explicit CallReactor(RendezvousLoop* loop) : loop_(loop) {}

  // To be kept by whoever answers later. Shared: the call and the loop may end in either order.
  static std::shared_ptr<CallReactor> New(RendezvousLoop* loop) {
    auto reactor = std::make_shared<CallReactor>(loop);
    reactor->self_ = reactor;
    return reactor;
  }

  // Runs `fill` and finishes, unless the call is over.
  template <class Fill>
  void Answer(const absl::Status& status, Fill fill) {
    base::MutexLock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    if (status.ok()) fill();
    Finish(ToGrpc(status));
  }
  void Answer(const absl::Status& status) {
    Answer(status, [] {});
  }

  // What the loop must be told if the caller goes.
  void SetCall(std::string run_id, CallId call) {
    run_id_ = std::move(run_id);
    call_ = call;
  }
  void SetDrain(CallId drain) { drain_ = drain; }

 private:
  // gRPC calls it only after the handler has returned, so the call is known.
  void OnCancel() override {
    if (call_.value != 0) loop_->CancelCall(run_id_, call_);
    if (drain_.value != 0) loop_->CancelDrain(drain_);
    Answer(absl::CancelledError("the call was cancelled"));
  }
  void OnDone() override { self_.reset(); }  // May delete this.

  RendezvousLoop* const loop_;
  std::shared_ptr<CallReactor> self_;
  std::string run_id_;
  CallId call_;
  CallId drain_;
  base::Mutex mutex_;
  bool finished_ MUSTER_GUARDED_BY(mutex_) = false;
};

class RendezvousService : public proto::Rendezvous::CallbackService {
 public:
  explicit RendezvousService(RendezvousLoop* loop) : loop_(loop) {}

  grpc::ServerBidiReactor<proto::AgentMessage, proto::RendezvousMessage>* Session(
      grpc::CallbackServerContext* context) override {
    return SessionReactor::New(loop_, context);
  }

  grpc::ServerUnaryReactor* SetKey(grpc::CallbackServerContext* /*context*/,
                                   const proto::SetKeyRequest* request,
                                   proto::SetKeyReply* /*reply*/) override {
    auto reactor = CallReactor::New(loop_);
    if (auto scope = ScopeOf(*request, reactor.get())) {
      std::string run_id = scope->run_id;
      CallId call = loop_->SetKey(
          *std::move(scope), request->key(), request->value(),
          [reactor](const absl::StatusOr<std::string>& a) { reactor->Answer(a.status()); });
      reactor->SetCall(std::move(run_id), call);
    }
    return reactor.get();
  }

  grpc::ServerUnaryReactor* GetKey(grpc::CallbackServerContext* /*context*/,
                                   const proto::GetKeyRequest* request,
                                   proto::GetKeyReply* reply) override {
    auto reactor = CallReactor::New(loop_);
    if (auto scope = ScopeOf(*request, reactor.get())) {
      std::string run_id = scope->run_id;
      CallId call =
          loop_->GetKey(*std::move(scope), request->key(), Wait(request->wait_ms()),
                        [reactor, reply](const absl::StatusOr<std::string>& answer) {
                          reactor->Answer(answer.status(), [&] { reply->set_value(*answer); });
                        });
      reactor->SetCall(std::move(run_id), call);
    }
    return reactor.get();
  }

  grpc::ServerUnaryReactor* Barrier(grpc::CallbackServerContext* /*context*/,
                                    const proto::BarrierRequest* request,
                                    proto::BarrierReply* /*reply*/) override {
    auto reactor = CallReactor::New(loop_);
    if (request->count() > kMaxCount) {
      reactor->Answer(absl::InvalidArgumentError("malformed message: count is out of range"));
    } else if (auto scope = ScopeOf(*request, reactor.get())) {
      std::string run_id = scope->run_id;
      CallId call = loop_->Barrier(
          *std::move(scope),
          {request->name(), request->participant(), request->count(), Wait(request->wait_ms())},
          [reactor](const absl::StatusOr<std::string>& a) { reactor->Answer(a.status()); });
      reactor->SetCall(std::move(run_id), call);
    }
    return reactor.get();
  }

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* /*context*/,
                                      const proto::GetStatusRequest* request,
                                      proto::GetStatusReply* reply) override {
    auto reactor = CallReactor::New(loop_);
    std::optional<std::string> run_id;
    if (request->has_run_id()) run_id = request->run_id();
    loop_->GetStatus(run_id, [reactor, reply](const absl::StatusOr<std::vector<JobStatus>>& jobs) {
      reactor->Answer(jobs.status(), [&] { *reply = StatusToProto(*jobs); });
    });
    return reactor.get();
  }

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* /*context*/,
                                  const proto::DrainRequest* request,
                                  proto::DrainReply* reply) override {
    auto reactor = CallReactor::New(loop_);
    RendezvousLoop::DrainOrder order;
    order.node = request->node();
    order.wait = Wait(request->wait_ms());
    if (request->has_run_id()) order.run_id = request->run_id();
    reactor->SetDrain(
        loop_->Drain(std::move(order),
                     [reactor, reply](const absl::StatusOr<RendezvousLoop::DrainResult>& result) {
                       reactor->Answer(result.status(), [&] {
                         reply->set_agents(result->agents);
                         reply->set_host_stays(result->host_stays);
                       });
                     }));
    return reactor.get();
  }

  grpc::ServerUnaryReactor* CannotStart(grpc::CallbackServerContext* /*context*/,
                                        const proto::CannotStartRequest* request,
                                        proto::CannotStartReply* /*reply*/) override {
    auto reactor = CallReactor::New(loop_);
    NodeCannotStart node{.node_name = request->node_name().substr(0, kMaxName),
                         .reason = request->reason().substr(0, kMaxText)};
    loop_->CannotStart(
        request->run_id(), std::move(node),
        [reactor](const absl::StatusOr<std::string>& a) { reactor->Answer(a.status()); });
    return reactor.get();
  }

  grpc::ServerWriteReactor<proto::WatchEvent>* Watch(grpc::CallbackServerContext* context,
                                                     const proto::WatchRequest* request) override {
    std::optional<std::string> run_id;
    if (request->has_run_id()) run_id = request->run_id();
    return WatchReactor::New(loop_, context, run_id);
  }

 private:
  // The request's scope; without a good one the call is answered here.
  template <class Request>
  static std::optional<RoundScope> ScopeOf(const Request& request, CallReactor* reactor) {
    absl::StatusOr<RoundScope> scope = FromProto(request.scope());
    if (scope.ok()) return *std::move(scope);
    reactor->Answer(scope.status());
    return std::nullopt;
  }

  RendezvousLoop* const loop_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewRendezvousService(RendezvousLoop* loop) {
  return std::make_unique<RendezvousService>(loop);
}

}  // namespace muster::rendezvous
