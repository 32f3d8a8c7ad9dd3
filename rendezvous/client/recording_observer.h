// A SessionObserver for tests: writes down what it hears, and a test waits for what it expects,
// with a deadline. Thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_RECORDING_OBSERVER_H_
#define MUSTER_RENDEZVOUS_CLIENT_RECORDING_OBSERVER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "base/mutex.h"
#include "rendezvous/client/rendezvous_client.h"

namespace muster::rendezvous {

class RecordingObserver : public SessionObserver {
 public:
  struct Connected {
    uint64_t connection = 0;
  };
  struct Message {
    uint64_t connection = 0;
    RendezvousMessage message;
  };
  struct Disconnected {
    uint64_t connection = 0;
    absl::Status why;
  };
  using Event = std::variant<Connected, Message, Disconnected>;

  void OnConnected(uint64_t connection) override { Add(Connected{connection}); }
  void OnMessage(uint64_t connection, RendezvousMessage message) override {
    Add(Message{connection, std::move(message)});
  }
  void OnDisconnected(uint64_t connection, absl::Status why) override {
    Add(Disconnected{connection, std::move(why)});
  }

  // The next event of any kind; none if it didn't come in time.
  std::optional<Event> Next(Duration most = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + most;
    base::MutexLock lock(mutex_);
    while (events_.empty()) {
      if (changed_.wait_until(mutex_, end) == std::cv_status::timeout && events_.empty())
        return std::nullopt;
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  // The next event of this kind, dropping others.
  template <class Kind>
  std::optional<Kind> NextOf(Duration most = std::chrono::seconds(20)) {
    while (std::optional<Event> event = Next(most)) {
      if (auto* found = std::get_if<Kind>(&*event)) return std::move(*found);
    }
    return std::nullopt;
  }

  // The next message of this type, dropping other events.
  template <class Type>
  std::optional<Type> NextMessage(Duration most = std::chrono::seconds(20)) {
    while (std::optional<Message> event = NextOf<Message>(most)) {
      if (auto* found = std::get_if<Type>(&event->message)) return std::move(*found);
    }
    return std::nullopt;
  }

 private:
  void Add(Event event) {
    {
      base::MutexLock lock(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_all();
  }

  base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Event> events_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_RECORDING_OBSERVER_H_
