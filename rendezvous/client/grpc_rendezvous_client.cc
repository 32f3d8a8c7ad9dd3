#include "rendezvous/client/grpc_rendezvous_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/session_convert.h"
#include "rendezvous/client/channel.h"
#include "rendezvous/client/plain_connect.h"
#include "rendezvous/client/session_stream.h"

namespace muster::rendezvous {
namespace {

// As the server's: larger requests are refused here, in clear words.
constexpr size_t kMaxValue = 1u << 20;
// What a call may take beyond the wait that it asks for.
constexpr Duration kCallMargin = std::chrono::seconds(5);
// How long a plain connection may take. The next one is due soon after.
constexpr Duration kProbePatience = std::chrono::milliseconds(200);
// How long the destructor lets a closed stream deliver its last words.
constexpr Duration kLastWords = std::chrono::milliseconds(150);

absl::Status CallStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

template <class Request, class Reply>
struct Call {
  grpc::ClientContext context;
  Request request;
  Reply reply;
};

// What the client, gRPC's callbacks and the resolver's thread share; the last of them ends it.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(GrpcRendezvousClientOptions options, SessionObserver* observer)
      : options_(std::move(options)),
        endpoint_(EndpointText(options_.host, options_.port)),
        observer_(observer) {}

  uint64_t Connect() {
    std::shared_ptr<SessionStream> old;
    uint64_t connection = 0;
    bool resolves = false;
    const bool is_numeric = IsNumericHost(options_.host);
    NoteOwnAddress();
    {
      base::MutexLock lock(mutex_);
      old = std::move(stream_);
      connection = ++connection_;
      wants_stream_ = true;
      // One resolver at a time: its answer serves the newest connection.
      resolves = !is_numeric && !is_resolving_;
      if (resolves) is_resolving_ = true;
    }
    if (old) old->Drop();
    if (is_numeric) {
      Open(ResolveTarget(options_.host, options_.port));
    } else if (resolves) {
      // Detached, for getaddrinfo can't be interrupted and the client's end must not wait for it.
      std::thread([core = shared_from_this()] {
        core->Open(ResolveTarget(core->options_.host, core->options_.port));
      }).detach();
    }
    return connection;
  }

  void Send(const AgentMessage& message) {
    if (std::shared_ptr<SessionStream> stream = Stream()) stream->Send(message);
  }

  void Disconnect() {
    std::shared_ptr<SessionStream> stream;
    NoteOwnAddress();
    {
      base::MutexLock lock(mutex_);
      wants_stream_ = false;
      stream = std::move(stream_);
      if (stream) closing_ = stream;
    }
    if (stream) stream->Close();
  }

  bool IsToOwnAddress() { return !NoteOwnAddress().empty(); }

  void Probe(RendezvousClient::ProbeCallback done) {
    std::string address = NoteOwnAddress();
    if (address.empty()) return done(false);
    // Detached for the same reason as the resolver's: a name is looked up again, since a rendezvous
    // that is elsewhere now may be up while the old address refuses.
    std::thread([core = shared_from_this(), address, done = std::move(done)] {
      const GrpcRendezvousClientOptions& options = core->options_;
      absl::StatusOr<std::string> target = ResolveTarget(options.host, options.port);
      bool is_same = target.ok() && SingleAddress(*target) == address;
      bool is_refused =
          is_same && PlainConnect(address, options.port, kProbePatience) == ConnectAnswer::kRefused;
      core->Report([&] { done(is_refused); });
    }).detach();
  }

  // `set_scope` fills the request; `done` hears of the end.
  template <class Request, class Reply, class Method, class Done>
  void Start(Method method, Request request, Duration wait, Done done) {
    auto call = std::make_shared<Call<Request, Reply>>();
    call->request = std::move(request);
    call->context.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(wait + kCallMargin));
    std::shared_ptr<proto::Rendezvous::Stub> stub;
    {
      base::MutexLock lock(mutex_);
      stub = stub_;
      if (stub) calls_.insert(&call->context);
    }
    if (!stub) return done(absl::UnavailableError("not connected to the rendezvous"), Reply());
    ((*stub->async()).*method)(&call->context, &call->request, &call->reply,
                               [core = shared_from_this(), call, stub,
                                done = std::move(done)](const grpc::Status& status) {
                                 done(core->CallEnd(status), std::move(call->reply));
                                 core->Forget(&call->context);
                               });
  }

  void Close() {
    std::shared_ptr<SessionStream> stream;
    const auto last_words = std::chrono::steady_clock::now() + kLastWords;
    {
      base::MutexLock lock(mutex_);
      is_closed_ = true;
      wants_stream_ = false;
      // A stream that Disconnect() closed may deliver what was sent; no other is waited for.
      while (stream_ == nullptr && closing_ != nullptr && streams_ > 0) {
        if (changed_.wait_until(mutex_, last_words) == std::cv_status::timeout) break;
      }
      stream = stream_ ? std::move(stream_) : nullptr;
      for (grpc::ClientContext* context : calls_) context->TryCancel();
    }
    if (stream) stream->Drop();
    std::shared_ptr<SessionStream> closing;
    {
      base::MutexLock lock(mutex_);
      closing = std::move(closing_);
    }
    if (closing) closing->Drop();
    base::MutexLock lock(mutex_);
    while (streams_ > 0 || !calls_.empty() || reports_ > 0) changed_.wait(mutex_);
    stub_.reset();
  }

 private:
  std::shared_ptr<SessionStream> Stream() {
    base::MutexLock lock(mutex_);
    return stream_;
  }

  // Keeps what the newest stream knows beyond its end; returns what the newest open one knew.
  std::string NoteOwnAddress() {
    std::shared_ptr<SessionStream> stream = Stream();
    std::optional<std::string> address = stream ? stream->own_address() : std::nullopt;
    base::MutexLock lock(mutex_);
    if (address) own_address_ = *std::move(address);
    return own_address_;
  }

  // Calls the observer or a callback of its, unless the client is closed, which waits for the end.
  template <class Call>
  void Report(Call call) {
    {
      base::MutexLock lock(mutex_);
      if (is_closed_) return;
      ++reports_;
    }
    call();
    base::MutexLock lock(mutex_);
    --reports_;
    changed_.notify_all();
  }

  // The host resolved, or didn't: opens the stream of the newest connection.
  void Open(const absl::StatusOr<std::string>& target) {
    uint64_t connection = 0;
    std::shared_ptr<SessionStream> stream;
    {
      base::MutexLock lock(mutex_);
      is_resolving_ = false;
      if (is_closed_ || !wants_stream_) return;
      wants_stream_ = false;
      connection = connection_;
      if (target.ok()) {
        stub_ = proto::Rendezvous::NewStub(MakeChannel(*target, options_.connect_timeout));
        // Known before it is started: what the observer sends as soon as it is connected must find
        // it, and a Connect() or Disconnect() that comes now must end it.
        stream_ =
            SessionStream::Make({.stub = stub_,
                                 .connection = connection,
                                 .endpoint = endpoint_,
                                 .address = SingleAddress(*target),
                                 .connect_timeout = options_.connect_timeout,
                                 .observer = observer_,
                                 .on_done = [core = shared_from_this()] { core->StreamDone(); }});
        stream = stream_;
        ++streams_;
      }
    }
    if (stream) return stream->Start();
    Report([&] { observer_->OnDisconnected(connection, target.status()); });
  }

  void StreamDone() {
    base::MutexLock lock(mutex_);
    --streams_;
    changed_.notify_all();
  }

  void Forget(grpc::ClientContext* context) {
    base::MutexLock lock(mutex_);
    calls_.erase(context);
    changed_.notify_all();
  }

  absl::Status CallEnd(const grpc::Status& status) {
    base::MutexLock lock(mutex_);
    if (status.error_code() != grpc::StatusCode::CANCELLED) return CallStatus(status);
    // By the server, unless it was us: it is shutting down.
    return is_closed_ ? absl::CancelledError("the client is closed")
                      : absl::UnavailableError(status.error_message());
  }

  const GrpcRendezvousClientOptions options_;
  const std::string endpoint_;
  SessionObserver* const observer_;

  base::Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t connection_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool wants_stream_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_resolving_ MUSTER_GUARDED_BY(mutex_) = false;
  // Calls of Report() that aren't done.
  int reports_ MUSTER_GUARDED_BY(mutex_) = 0;
  // What the rendezvous called its own address on the stream that was opened last.
  std::string own_address_ MUSTER_GUARDED_BY(mutex_);
  bool is_closed_ MUSTER_GUARDED_BY(mutex_) = false;
  // Of the newest connection's channel; calls go over it too.
  std::shared_ptr<proto::Rendezvous::Stub> stub_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<SessionStream> stream_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<SessionStream> closing_ MUSTER_GUARDED_BY(mutex_);
  // Streams that gRPC isn't done with.
  int streams_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::set<grpc::ClientContext*> calls_ MUSTER_GUARDED_BY(mutex_);
};

class GrpcRendezvousClient : public RendezvousClient {
 public:
  GrpcRendezvousClient(GrpcRendezvousClientOptions options, SessionObserver* observer)
      : core_(std::make_shared<Core>(std::move(options), observer)) {}
  ~GrpcRendezvousClient() override { core_->Close(); }

  uint64_t Connect() override { return core_->Connect(); }
  bool IsToOwnAddress() const override { return core_->IsToOwnAddress(); }
  void ProbeEndpoint(ProbeCallback done) override { core_->Probe(std::move(done)); }
  void Send(const AgentMessage& message) override { core_->Send(message); }
  void Disconnect() override { core_->Disconnect(); }

  void SetKey(const RoundScope& scope, const std::string& key, const std::string& value,
              SetCallback done) override {
    if (value.size() > kMaxValue)
      return done(absl::InvalidArgumentError(
          absl::StrCat("the value may have ", kMaxValue, " bytes at most, it has ", value.size())));
    proto::SetKeyRequest request;
    *request.mutable_scope() = ToProto(scope);
    request.set_key(key);
    request.set_value(value);
    using Method = void (proto::Rendezvous::Stub::async::*)(
        grpc::ClientContext*, const proto::SetKeyRequest*, proto::SetKeyReply*,
        std::function<void(grpc::Status)>);
    Method method = &proto::Rendezvous::Stub::async::SetKey;
    core_->Start<proto::SetKeyRequest, proto::SetKeyReply>(
        method, std::move(request), Duration(0),
        [done = std::move(done)](const absl::Status& status, const proto::SetKeyReply&) {
          done(status);
        });
  }

  void GetKey(const RoundScope& scope, const std::string& key, Duration wait,
              GetCallback done) override {
    proto::GetKeyRequest request;
    *request.mutable_scope() = ToProto(scope);
    request.set_key(key);
    request.set_wait_ms(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
    using Method = void (proto::Rendezvous::Stub::async::*)(
        grpc::ClientContext*, const proto::GetKeyRequest*, proto::GetKeyReply*,
        std::function<void(grpc::Status)>);
    Method method = &proto::Rendezvous::Stub::async::GetKey;
    core_->Start<proto::GetKeyRequest, proto::GetKeyReply>(
        method, std::move(request), wait,
        [done = std::move(done)](const absl::Status& status, const proto::GetKeyReply& reply) {
          if (status.ok())
            done(reply.value());
          else
            done(status);
        });
  }

 private:
  // Shared with gRPC's callbacks and the resolver's thread, which may outlive the client.
  const std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<RendezvousClient> NewGrpcRendezvousClient(GrpcRendezvousClientOptions options,
                                                          SessionObserver* observer) {
  return std::make_unique<GrpcRendezvousClient>(std::move(options), observer);
}

}  // namespace muster::rendezvous
