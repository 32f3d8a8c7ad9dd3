// A working double of RendezvousClient for tests: it records what is sent, and the test plays the
// rendezvous. Thread-safe; the observer is called on the thread of the test's call (or of
// Connect(), with `accepts_connections`).
#ifndef MUSTER_RENDEZVOUS_CLIENT_FAKE_RENDEZVOUS_CLIENT_H_
#define MUSTER_RENDEZVOUS_CLIENT_FAKE_RENDEZVOUS_CLIENT_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::rendezvous {

class FakeRendezvousClient : public RendezvousClient {
 public:
  // `observer` must outlive the fake. With `accepts_connections` every Connect() succeeds at once;
  // without it the test calls Accept() or Break().
  explicit FakeRendezvousClient(SessionObserver* observer, bool accepts_connections = true);
  // Waiting GetKey calls end with Cancelled.
  ~FakeRendezvousClient() override;

  uint64_t Connect() override;
  bool IsToOwnAddress() const override { return true; }
  // Answered at once: refused unless it accepts connections.
  void ProbeEndpoint(ProbeCallback done) override;
  void Send(const AgentMessage& message) override;
  void Disconnect() override;
  void SetKey(const RoundScope& scope, const std::string& key, const std::string& value,
              SetCallback done) override;
  // A wait ends when the key is set or when the test calls EndWaits(); it has no timer.
  void GetKey(const RoundScope& scope, const std::string& key, Duration wait,
              GetCallback done) override;

  // ---- for the test ------------------------------------------------------------------------
  void SetAcceptsConnections(bool accepts);
  // Opens the stream that Connect() has asked for.
  void Accept();
  // Sends to the agent; ignored if no stream is open.
  void Deliver(const RendezvousMessage& message);
  // Breaks the stream or refuses the connection.
  void Break(const absl::Status& why);
  // The next message that was sent, waiting for one up to `most`; none if none came.
  std::optional<AgentMessage> NextSent(Duration most = std::chrono::seconds(10));
  // Waits until Connect() was called `count` times in all; false if that took longer than `most`.
  bool WaitForConnects(uint64_t count, Duration most = std::chrono::seconds(10));
  bool is_open() const;
  // Ends every waiting GetKey.
  void EndWaits(const absl::Status& why);
  // Every key that was set.
  std::map<std::string, std::string> keys() const;

 private:
  struct Wait {
    std::string key;
    GetCallback done;
  };

  SessionObserver* const observer_;
  mutable base::Mutex mutex_;
  std::condition_variable_any changed_;
  bool accepts_ MUSTER_GUARDED_BY(mutex_);
  // Asked for by Connect(), neither open nor broken yet.
  bool is_pending_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_open_ MUSTER_GUARDED_BY(mutex_) = false;
  uint64_t connection_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::deque<AgentMessage> sent_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::string> keys_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Wait> waits_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_FAKE_RENDEZVOUS_CLIENT_H_
