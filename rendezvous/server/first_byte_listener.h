// The one accept loop that owns the rendezvous' port. It looks at the first byte of each connection
// and hands the socket on: 'P' (an HTTP/2 preface) or 0x16 (a TLS hello) to gRPC, anything else to
// the NonGrpcAcceptor, or closed where there is none. The socket is exclusive: no SO_REUSEPORT, so
// a second server on the port gets AlreadyExists instead of half of the connections.
//
// A connection that says nothing is handed to the NonGrpcAcceptor after `first_byte_timeout`, or
// closed where there is none: gRPC's clients speak first, and those of PyTorch's store may be there
// to listen. Of too many that say nothing the oldest is closed. Nothing a client does makes the
// loop wait for it. One thread of its own; Listen(), Start() and Stop() are for the owner's thread,
// DisownEarlier() for any, and the acceptors are called on the loop's.
#ifndef MUSTER_RENDEZVOUS_SERVER_FIRST_BYTE_LISTENER_H_
#define MUSTER_RENDEZVOUS_SERVER_FIRST_BYTE_LISTENER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/instant.h"
#include "base/mutex.h"

namespace muster::rendezvous {

// Takes sockets that begin like gRPC.
class GrpcAcceptor {
 public:
  virtual ~GrpcAcceptor() = default;
  // Owns `fd` (non-blocking, nothing read yet) from now on. Must not block.
  virtual void Accept(int fd) = 0;
};

// Takes the other sockets: the seam for PyTorch's store.
class NonGrpcAcceptor {
 public:
  virtual ~NonGrpcAcceptor() = default;
  // Owns `fd` (non-blocking, nothing read yet) from now on. Must not block. Without a first byte it
  // has said nothing for `first_byte_timeout`.
  virtual void Accept(int fd, std::optional<uint8_t> first_byte) = 0;
};

struct FirstByteListenerOptions {
  // An IP address or a name; empty means all interfaces. See RendezvousServerOptions::host.
  std::string host{};
  // 0: any free port.
  uint16_t port = 0;
  Duration first_byte_timeout = std::chrono::seconds(10);
  // Connections that have said nothing yet: more than the nodes of a large job that all come in one
  // moment, to a machine too busy to let them speak.
  size_t max_silent = 1u << 14;
};

class FirstByteListener {
 public:
  // Binds and listens; connections wait in the kernel until Start(). AlreadyExists: the port is in
  // use. InvalidArgument: the host doesn't resolve or isn't this machine's. Unavailable: any other
  // refusal of the system, in its words.
  static absl::StatusOr<std::unique_ptr<FirstByteListener>> Listen(
      const FirstByteListenerOptions& options);
  ~FirstByteListener();
  FirstByteListener(const FirstByteListener&) = delete;
  FirstByteListener& operator=(const FirstByteListener&) = delete;

  uint16_t port() const { return port_; }
  // `grpc` must outlive Stop(), and so must `other`, which may be null.
  void Start(GrpcAcceptor* grpc, NonGrpcAcceptor* other);
  // Nothing that is connected already is handed to the NonGrpcAcceptor after this has returned,
  // also what still waits in the kernel; it is closed if it turns out to be no gRPC. Takes
  // milliseconds. Must not be called by an acceptor.
  void DisownEarlier() MUSTER_EXCLUDES(mutex_);
  // Closes the port and the silent connections and joins the thread. May be called more than once.
  void Stop();

 private:
  struct Silent {
    int fd;
    Instant deadline;
    // The NonGrpcAcceptor shall not have it.
    bool is_disowned = false;
  };

  FirstByteListener(const FirstByteListenerOptions& options, std::vector<int> sockets,
                    uint16_t port);
  void Run();
  // False: the owner has stopped the loop.
  bool DoWhatWasAsked() MUSTER_EXCLUDES(mutex_);
  // How many came.
  size_t AcceptAll(int listening_fd);
  void HandOn(const Silent& connection, std::optional<uint8_t> first_byte);
  void Wake() const;
  void Admit(int fd, Instant now);
  void LookAt(int fd);
  // Returns what it was.
  Silent Forget(int fd);
  void DropExpired(Instant now);
  void SetPaused(bool paused, Instant now);
  int WaitMs(Instant now) const;

  const FirstByteListenerOptions options_;
  const std::vector<int> sockets_;
  const uint16_t port_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  GrpcAcceptor* grpc_ = nullptr;
  NonGrpcAcceptor* other_ = nullptr;
  // The loop's own. Oldest first, which is also the order of the deadlines.
  std::list<Silent> silent_;
  std::unordered_map<int, std::list<Silent>::iterator> by_fd_;
  // Out of file descriptors: the sockets are left alone until then, since they would stay ready.
  Instant paused_until_ = Instant::Never();
  bool stopped_ = false;
  base::Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_running_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  // Calls of DisownEarlier(), and how many of them are done.
  uint64_t disowns_asked_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t disowns_done_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_FIRST_BYTE_LISTENER_H_
