// An agent's way to its rendezvous: one session (a stream of messages both ways) and the calls to
// the round's key-value table. An interface, with a gRPC implementation and a fake. Thread-safe;
// the observer's methods and all callbacks run on threads of the client and must only enqueue. The
// observer must outlive the client.
#ifndef MUSTER_RENDEZVOUS_CLIENT_RENDEZVOUS_CLIENT_H_
#define MUSTER_RENDEZVOUS_CLIENT_RENDEZVOUS_CLIENT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::rendezvous {

class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  // The stream of this connection (numbered by Connect()) is open: Attach can be sent.
  virtual void OnConnected(uint64_t connection) = 0;
  virtual void OnMessage(uint64_t connection, RendezvousMessage message) = 0;
  // The stream couldn't be opened or broke. Called once for each Connect() that isn't closed by
  // Disconnect(). Codes: Unavailable (nobody answers there now), Unimplemented or Internal (who
  // answers is no muster rendezvous), InvalidArgument (the endpoint doesn't resolve).
  virtual void OnDisconnected(uint64_t connection, absl::Status why) = 0;
};

using RoundScope = ::muster::RoundScope;

class RendezvousClient {
 public:
  virtual ~RendezvousClient() = default;

  // Begins to open a stream, dropping an earlier one without a report. Returns its number.
  virtual uint64_t Connect() = 0;
  // Whether the stream that was opened last leads to the rendezvous' own address: the host resolved
  // to one address alone, and the rendezvous says that it is its own.
  virtual bool IsToOwnAddress() const = 0;
  // Makes a plain connection to that address and drops it. `done` hears within a fraction of a
  // second, once, whether it was refused (ECONNREFUSED): nobody listens there. Never so if
  // the newest stream didn't lead to the rendezvous' own address, or if the host's name stands for
  // another address by now.
  using ProbeCallback = std::function<void(bool is_refused)>;
  virtual void ProbeEndpoint(ProbeCallback done) = 0;
  // Sends on the open stream; dropped silently if there is none (its end is reported anyway).
  virtual void Send(const AgentMessage& message) = 0;
  // Closes the stream after everything sent before has been handed to the network.
  virtual void Disconnect() = 0;

  // Key-value calls of the current round. Codes, beyond Unavailable: Aborted (the round is over),
  // DeadlineExceeded (the key did not come within `wait`).
  using SetCallback = std::function<void(absl::Status)>;
  using GetCallback = std::function<void(absl::StatusOr<std::string>)>;
  virtual void SetKey(const RoundScope& scope, const std::string& key, const std::string& value,
                      SetCallback done) = 0;
  // Waits until the key is set; `wait` of zero asks for what is there now (NotFound if nothing).
  virtual void GetKey(const RoundScope& scope, const std::string& key, Duration wait,
                      GetCallback done) = 0;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_RENDEZVOUS_CLIENT_H_
