#include "rendezvous/client/session_stream.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/session_convert.h"
#include "rendezvous/client/channel.h"

namespace muster::rendezvous {
namespace {

// An agent says a few words per round and one per heartbeat: more than this waiting means that the
// rendezvous doesn't read.
constexpr size_t kMaxQueued = 4096;
// How long a closed stream may take to deliver what was sent before.
constexpr Duration kCloseTime = std::chrono::seconds(1);

}  // namespace

std::shared_ptr<SessionStream> SessionStream::Make(SessionStreamOptions options) {
  return std::shared_ptr<SessionStream>(new SessionStream(std::move(options)));
}

void SessionStream::Start() {
  self_ = shared_from_this();
  {
    base::MutexLock lock(mutex_);
    Set(opening_, options_.connect_timeout);
  }
  // What the endpoint's address is worth is asked of the rendezvous: see SessionStreamOptions.
  if (!options_.address.empty()) context_.AddMetadata("muster-connected-to", options_.address);
  options_.stub->async()->Session(&context_, this);
  // Writes are started from outside: gRPC must not be done before LetGo().
  AddHold();
  StartCall();
}

void SessionStream::Set(grpc::Alarm& alarm, Duration wait) {
  // gRPC keeps the callback as long as the alarm, which is ours: one that held this stream would
  // keep it for ever.
  alarm.Set(std::chrono::system_clock::now() +
                std::chrono::duration_cast<std::chrono::system_clock::duration>(wait),
            [weak = weak_from_this()](bool is_due) {
              std::shared_ptr<SessionStream> self = is_due ? weak.lock() : nullptr;
              if (self) self->OnAlarm();
            });
}

void SessionStream::OnAlarm() {
  {
    base::MutexLock lock(mutex_);
    if (is_open_ && !is_closing_) return;
  }
  Abandon(absl::UnavailableError(
      absl::StrCat("the rendezvous at ", options_.endpoint, " doesn't answer within ",
                   options_.connect_timeout / std::chrono::milliseconds(1), " ms")));
}

void SessionStream::Abandon(const absl::Status& why) {
  {
    base::MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
  }
  context_.TryCancel();
}

void SessionStream::Send(const AgentMessage& message) {
  bool is_full = false;
  {
    base::MutexLock lock(mutex_);
    if (!is_open_ || is_closing_) return;
    is_full = queue_.size() >= kMaxQueued;
    if (!is_full) {
      queue_.push_back(ToProto(message));
      // Only enqueues in gRPC; under the lock, so that no write follows the half-close.
      if (queue_.size() == 1) StartWrite(&queue_.front());
    }
  }
  if (is_full)
    Abandon(absl::UnavailableError(
        absl::StrCat("the rendezvous at ", options_.endpoint, " doesn't read its messages")));
}

void SessionStream::Close() {
  bool is_open = false;
  {
    base::MutexLock lock(mutex_);
    if (is_closing_) return;
    is_silent_ = true;
    is_closing_ = true;
    is_open = is_open_;
    if (is_open) {
      Set(closing_, kCloseTime);
      CloseIfDrained();
    }
  }
  if (!is_open) context_.TryCancel();
}

void SessionStream::Drop() {
  {
    base::MutexLock lock(mutex_);
    is_silent_ = true;
  }
  context_.TryCancel();
}

std::optional<std::string> SessionStream::own_address() const {
  base::MutexLock lock(mutex_);
  if (!was_open_) return std::nullopt;
  return is_to_own_address_ ? options_.address : "";
}

void SessionStream::CloseIfDrained() {
  if (!is_closing_ || is_half_closed_ || !is_open_ || !queue_.empty()) return;
  is_half_closed_ = true;
  StartWritesDone();
}

void SessionStream::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return LetGo();
  const auto& metadata = context_.GetServerInitialMetadata();
  if (metadata.find("muster-version") == metadata.end()) {
    // Either an error comes next, or it is some other service.
    Abandon(absl::OkStatus());
    return LetGo();
  }
  bool is_wanted = false;
  {
    base::MutexLock lock(mutex_);
    opening_.Cancel();
    is_wanted = !is_silent_ && why_.ok();
    is_open_ = is_wanted;
    is_to_own_address_ = metadata.find("muster-own-address") != metadata.end();
    was_open_ = is_wanted;
  }
  if (!is_wanted) return LetGo();
  options_.observer->OnConnected(options_.connection);
  StartRead(&incoming_);
}

void SessionStream::OnReadDone(bool ok) {
  if (!ok) return LetGo();
  absl::StatusOr<RendezvousMessage> message = FromProto(incoming_);
  if (!message.ok()) {
    Abandon(absl::InternalError(
        absl::StrCat("the rendezvous at ", options_.endpoint,
                     " speaks another language: ", message.status().message())));
    return LetGo();
  }
  bool is_silent = false;
  {
    base::MutexLock lock(mutex_);
    is_silent = is_silent_;
  }
  if (!is_silent) options_.observer->OnMessage(options_.connection, *std::move(message));
  StartRead(&incoming_);
}

void SessionStream::OnWriteDone(bool ok) {
  base::MutexLock lock(mutex_);
  queue_.pop_front();
  if (!ok || !is_open_) return;
  if (!queue_.empty()) return StartWrite(&queue_.front());
  CloseIfDrained();
}

void SessionStream::LetGo() {
  {
    base::MutexLock lock(mutex_);
    if (!is_held_) return;
    is_held_ = false;
    is_open_ = false;
  }
  RemoveHold();
}

absl::Status SessionStream::Explain(const grpc::Status& status) const {
  if (!why_.ok()) return why_;
  if (!was_open_) return ExplainConnectFailure(status, options_.endpoint);
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return absl::UnavailableError(
          absl::StrCat("the rendezvous at ", options_.endpoint, " ended the session"));
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::Status(
          static_cast<absl::StatusCode>(status.error_code()),
          absl::StrCat("the rendezvous at ", options_.endpoint, " says: ", status.error_message()));
    default:
      return absl::UnavailableError(absl::StrCat("the stream ended: ", status.error_message()));
  }
}

void SessionStream::OnDone(const grpc::Status& status) {
  bool is_silent = false;
  absl::Status why;
  {
    base::MutexLock lock(mutex_);
    opening_.Cancel();
    closing_.Cancel();
    is_silent = is_silent_;
    why = Explain(status);
  }
  if (!is_silent) options_.observer->OnDisconnected(options_.connection, why);
  // After this the observer may be gone.
  options_.on_done();
  self_.reset();  // The last line: it may delete this.
}

}  // namespace muster::rendezvous
