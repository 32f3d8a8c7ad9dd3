// For tests: an agent's end of the worker channel, serving one world from one thread. Worker ids
// are "fake/<rank>". Listens from construction, serves from Start() on: fork workers in between,
// while the process has one thread.
#ifndef MUSTER_WORKER_SDK_CONTEXT_FAKE_AGENT_H_
#define MUSTER_WORKER_SDK_CONTEXT_FAKE_AGENT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/job_types.h"
#include "base/mutex.h"
#include "base/worker_channel.h"

namespace muster {

class FakeAgent {
 public:
  explicit FakeAgent(int world_size);
  // Closes all connections: to the workers, the agent is gone.
  ~FakeAgent();
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  // What every worker is told, but for its rank. Change it before Start().
  worker_channel::Welcome& welcome() { return welcome_; }
  // Never answers, not even Hello.
  void BeSilent() { is_silent_ = true; }
  // Sends this instead of a welcome.
  void GreetWith(std::string bytes) { greeting_ = std::move(bytes); }
  void Start();

  const std::string& socket_name() const { return socket_name_; }
  static std::string WorkerId(int rank) { return "fake/" + std::to_string(rank); }
  // Sets this process's environment as an agent does for that worker.
  void SetEnvironment(int rank) const;

  // To every worker, as the agent does when the round is over.
  void PushAbort(const worker_channel::Abort& abort);
  // To every worker: asks rank 0 for a step to save after, or names one.
  void Push(worker_channel::Message message);
  // Answers the announcement of rank 0.
  void Agree();
  // Waits until the workers have sent as many messages of this kind; what they said.
  std::vector<worker_channel::StepDone> AwaitSteps(size_t count);
  std::vector<int64_t> AwaitAnnouncements(size_t count);
  std::vector<int64_t> AwaitKnown(size_t count);
  // To every worker: asks for a sign of life.
  void PushPing(uint64_t number);
  // The answers to it, in order.
  std::vector<worker_channel::Pong> AwaitPongs(size_t count);
  // Shards and commits that workers reported, in order.
  std::vector<worker_channel::ShardDone> shards();
  std::vector<Commit> commits();

 private:
  struct Connection {
    int fd = -1;
    std::string received;
  };
  struct Waiting {
    int fd = -1;
    worker_channel::GetKey request;
    std::chrono::steady_clock::time_point until;
  };

  void Serve();
  void Take(Connection& connection, const worker_channel::Message& message);
  void Reply(int fd, const worker_channel::Message& message);
  void AnswerWaiting();

  std::string socket_name_;
  const int listen_fd_;
  const int wake_fd_;
  worker_channel::Welcome welcome_;
  std::string greeting_;
  bool is_silent_ = false;

  // The serving thread's.
  std::list<Connection> connections_;
  std::list<Waiting> waiting_;
  std::map<std::string, std::string> values_;

  base::Mutex mutex_;
  bool is_stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<worker_channel::Message> pushes_ MUSTER_GUARDED_BY(mutex_);
  std::condition_variable_any heard_;
  std::vector<worker_channel::StepDone> steps_ MUSTER_GUARDED_BY(mutex_);
  uint64_t announcement_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::vector<int64_t> announced_ MUSTER_GUARDED_BY(mutex_);
  std::vector<int64_t> known_ MUSTER_GUARDED_BY(mutex_);
  std::vector<worker_channel::Pong> pongs_ MUSTER_GUARDED_BY(mutex_);
  std::vector<worker_channel::ShardDone> shards_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Commit> commits_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_FAKE_AGENT_H_
