// The worker's end of the channel to its agent: requests and answers, and the agent's pushes. One
// control thread, which reads and answers pings. When the agent goes away, the abort signal is
// raised.
//
// Thread-safe. In a forked child there's no control thread: every call fails with
// kFailedPrecondition and destruction does nothing to the parent's channel; a child that needs the
// SDK opens a context of its own after exec.
#ifndef MUSTER_WORKER_SDK_CONTEXT_AGENT_CHANNEL_H_
#define MUSTER_WORKER_SDK_CONTEXT_AGENT_CHANNEL_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/worker_channel.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/environment.h"
#include "worker_sdk/context/peer_waits.h"
#include "worker_sdk/context/status.h"

namespace muster {

class AgentChannel {
 public:
  // How long the agent may take to answer the first message.
  static constexpr std::chrono::milliseconds kWelcomePatience = std::chrono::seconds(30);

  // Connects and introduces this worker. `abort` outlives the channel. Errors: kUnavailable (no
  // agent there, another user's, or no answer), kAborted (the agent refuses this worker).
  static Result<std::unique_ptr<AgentChannel>> Open(
      const AgentAddress& agent, AbortSignal& abort,
      std::chrono::milliseconds patience = kWelcomePatience);
  ~AgentChannel();
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  const worker_channel::Welcome& welcome() const { return welcome_; }
  // What answers to pings tell of; requests to the agent are counted here. Lives as long as the
  // channel.
  PeerWaits& peer_waits() { return peer_waits_; }

  // Reports a completed step; never waits: what the socket doesn't take is dropped. Returns whether
  // to save after it, which only a caller that `can_save` is told. Asked by the agent, rank 0 names
  // the step after this one here and waits until all ranks know it, or the round is over. One
  // thread at a time.
  bool StepDone(int64_t step, bool can_save);

  // Sends the request (SetKey, GetKey, ShardDone, CommitPublished...; its number is given here) and
  // waits for the answer: its value, or its error. Without `patience` only the end of the round
  // ends the wait. Errors besides the agent's: kDeadlineExceeded, kAborted (the round is over),
  // kFailedPrecondition (forked), kInvalidArgument (larger than a frame).
  Result<std::string> Call(worker_channel::Message request,
                           std::optional<std::chrono::milliseconds> patience);

 private:
  AgentChannel(int fd, AbortSignal& abort);

  Status Introduce(const std::string& worker_id, std::chrono::milliseconds patience);
  Status SendAll(const std::string& frame) MUSTER_EXCLUDES(send_mutex_);
  Status SendRest(std::string_view rest) MUSTER_REQUIRES(send_mutex_);
  void SendOrDrop(const std::string& frame) MUSTER_EXCLUDES(send_mutex_);
  // A step to save after, of which the agent or this rank 0 says that all ranks will.
  void AgreeOn(int64_t step);
  void ReadUntilTheEnd();
  // One message of the agent's; false if it may not come now.
  bool Take(const worker_channel::Message& message);
  void AnswerPing(uint64_t number) MUSTER_EXCLUDES(send_mutex_);
  // Raises the abort signal and ends all waits.
  void End(int lost_rank, const std::string& reason);

  const int fd_;
  const pid_t owner_;
  AbortSignal& abort_;
  PeerWaits peer_waits_;
  worker_channel::Welcome welcome_;
  std::string received_;
  // unique_ptr: a forked child leaves it alone, there's nothing to join.
  std::unique_ptr<std::thread> control_;
  // Tells the control thread to stop.
  const int stop_fd_;

  // The agent wants rank 0 to name a step.
  std::atomic<bool> is_wanted_{false};
  // Save after the first step from this one on; kNoStep: none is agreed on.
  static constexpr int64_t kNoStep = -1;
  std::atomic<int64_t> save_at_{kNoStep};
  // The highest that was ever agreed on: one that is told again is not saved again.
  std::atomic<int64_t> last_agreed_{kNoStep};

  base::Mutex send_mutex_;
  base::Mutex mutex_;
  std::condition_variable_any answered_;
  uint64_t last_request_ MUSTER_GUARDED_BY(mutex_) = 0;
  // By request number: none until the answer has come.
  std::map<uint64_t, std::optional<worker_channel::Answer>> calls_ MUSTER_GUARDED_BY(mutex_);
  bool has_ended_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CONTEXT_AGENT_CHANNEL_H_
