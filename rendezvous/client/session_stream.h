// One attempt to hold a session: a gRPC stream from its start to its end, reported to the observer.
// Once started it lives until gRPC is done with it, and is shared between gRPC and the client,
// since either may be the last to refer to it. Thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_SESSION_STREAM_H_
#define MUSTER_RENDEZVOUS_CLIENT_SESSION_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/instant.h"
#include "base/mutex.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::rendezvous {

struct SessionStreamOptions {
  std::shared_ptr<proto::Rendezvous::Stub> stub;
  // Of RendezvousClient::Connect().
  uint64_t connection = 0;
  // For people.
  std::string endpoint;
  // The one address that the stream goes to, in digits; empty if there are several.
  std::string address;
  Duration connect_timeout{0};
  // Must outlive the stream's last callback, after which `on_done` is called.
  SessionObserver* observer = nullptr;
  std::function<void()> on_done;
};

class SessionStream : public grpc::ClientBidiReactor<proto::AgentMessage, proto::RendezvousMessage>,
                      public std::enable_shared_from_this<SessionStream> {
 public:
  static std::shared_ptr<SessionStream> Make(SessionStreamOptions options);

  // To be called once, when whoever sends can find this stream: the observer may hear that it is
  // connected before this returns. Close() or Drop() may come first.
  void Start();
  void Send(const AgentMessage& message);
  // Ends the stream after all that was sent, without a report; at once if it isn't open yet.
  void Close();
  // Ends the stream now, without a report.
  void Drop();
  // The address that the stream goes to, if the rendezvous has said that it is its own, or nothing
  // if not; none before OnConnected().
  std::optional<std::string> own_address() const;

 private:
  explicit SessionStream(SessionStreamOptions options) : options_(std::move(options)) {}

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void OnAlarm();
  // To be called once for each alarm.
  void Set(grpc::Alarm& alarm, Duration wait) MUSTER_REQUIRES(mutex_);
  // Ends the stream because of `why`, which is what will be reported.
  void Abandon(const absl::Status& why);
  void CloseIfDrained() MUSTER_REQUIRES(mutex_);
  // No write is started from outside any more.
  void LetGo();
  absl::Status Explain(const grpc::Status& status) const MUSTER_REQUIRES(mutex_);

  const SessionStreamOptions options_;
  grpc::ClientContext context_;
  proto::RendezvousMessage incoming_;
  std::shared_ptr<SessionStream> self_;

  mutable base::Mutex mutex_;
  // The front one is being written.
  std::deque<proto::AgentMessage> queue_ MUSTER_GUARDED_BY(mutex_);
  bool is_open_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_held_ MUSTER_GUARDED_BY(mutex_) = true;
  bool is_silent_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_closing_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_half_closed_ MUSTER_GUARDED_BY(mutex_) = false;
  bool was_open_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_to_own_address_ MUSTER_GUARDED_BY(mutex_) = false;
  absl::Status why_ MUSTER_GUARDED_BY(mutex_);
  // Two, since one that was cancelled may still be about to say so: it can't be set again then.
  grpc::Alarm opening_ MUSTER_GUARDED_BY(mutex_);
  grpc::Alarm closing_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_SESSION_STREAM_H_
