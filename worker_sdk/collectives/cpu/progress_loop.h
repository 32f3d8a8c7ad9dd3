// The one thread of a CPU group: carries out operations in the order in which they were started,
// moving bytes over the links to all peers at once, so that no two ranks can wait for each other's
// reading. Consecutive sends and receives are in progress together; a collective waits for all
// before it, and all after it wait for it.
//
//   running --abort, lost peer, disagreement--> failed: everything ends with that status
//   running --destructor--> leaving: finishes what was started, says goodbye, closes
//
// A rank that fails tells the others why before it closes its connections, so that all report the
// same cause. Start() is thread-safe; everything else belongs to the loop's thread. A forked child
// doesn't have that thread: its operations fail, and destruction touches nothing of the parent's.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_PROGRESS_LOOP_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_PROGRESS_LOOP_H_

#include <sys/types.h>

#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "worker_sdk/collectives/cpu/link.h"
#include "worker_sdk/collectives/cpu/operation.h"
#include "worker_sdk/collectives/work_state.h"
#include "worker_sdk/context/abort_signal.h"
#include "worker_sdk/context/peer_waits.h"

namespace muster::cpu {

class ProgressLoop {
 public:
  struct Options {
    Place place;
    std::chrono::milliseconds culprit_grace{200};
    std::chrono::milliseconds leave_patience{10000};
    // Outlives the loop; may be null.
    PeerWaits* waits = nullptr;
  };

  // `links` by rank, with nothing at our own; `abort` outlives the loop.
  ProgressLoop(std::vector<std::unique_ptr<Link>> links, AbortSignal& abort,
               const Options& options);
  // Finishes what was started, for at most `leave_patience`; then leaves.
  ~ProgressLoop();
  ProgressLoop(const ProgressLoop&) = delete;
  ProgressLoop& operator=(const ProgressLoop&) = delete;

  // Takes over the operation; `state` is finished when it has ended. Fails at once after a failure
  // and in a forked child.
  void Start(std::unique_ptr<Operation> operation, const std::shared_ptr<Work::State>& state);
  // OK until the group has failed.
  Status failure() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Running {
    std::unique_ptr<Operation> operation;
    std::shared_ptr<Work::State> state;
    // By rank: our call is on its way, theirs has come and is equal.
    std::vector<char> call_sent;
    std::vector<char> call_heard;
    // From its start to its end, which the program is told of after.
    PeerWaits::Wait wait;
  };

  struct Peer {
    std::unique_ptr<Link> link;
    // Has said goodbye.
    bool has_left = false;
    // Everything that it sent was read, up to the end of the connection; nothing can be sent any
    // more, though something (a failure's cause) may still be read.
    bool is_broken = false;
    bool is_deaf = false;
    // Its next frame can't be taken now.
    bool is_parked = false;
    // Whose frame is being sent; none for a frame of the loop's own.
    const Running* sender = nullptr;
    // Payloads of the loop's own, while they come.
    std::array<std::byte, kCallBytes> call_bytes{};
    std::string failure_bytes;
  };

  void Run();
  // Moves started operations to the active ones, as far as the order allows.
  void Admit() MUSTER_EXCLUDES(mutex_);
  // Moves bytes of every peer in both directions; false if nothing moved.
  bool Move();
  bool MoveOut(int rank);
  bool StartNextFrame(int rank);
  bool MoveIn(int rank);
  // One frame: true if it was taken.
  bool TakeFrame(int rank, const FrameHeader& header);
  bool TakeCall(int rank);
  bool TakeData(int rank, const FrameHeader& header);
  bool TakeFailure(int rank, const FrameHeader& header);
  // True if the frame is through; notes the end of the connection.
  bool HasReceived(int rank, Link::Outcome outcome);
  void FinishDone();
  bool Needs(const Running& running, int rank) const;
  // Looks for lost peers that are needed, and for the abort signal.
  void JudgeLosses();
  void Wait();

  // Ends every operation with `status`, tells the peers `told`, and closes the links.
  void Fail(const Status& status) { Fail(status, status); }
  void Fail(const Status& status, const Status& told);
  std::vector<Link*> OpenLinks() const;

  const Options options_;
  AbortSignal& abort_;
  std::vector<Peer> peers_;
  std::list<Running> active_;
  // The first peer whose end hurt, and when it is to be blamed.
  int suspect_ = -1;
  std::string suspicion_;
  Clock::time_point blame_at_{};

  bool has_failed_ = false;

  const pid_t owner_;
  const int wake_fd_;
  mutable base::Mutex mutex_;
  std::deque<Running> started_ MUSTER_GUARDED_BY(mutex_);
  Status failure_ MUSTER_GUARDED_BY(mutex_);
  bool is_leaving_ MUSTER_GUARDED_BY(mutex_) = false;
  Clock::time_point leave_by_ MUSTER_GUARDED_BY(mutex_){};
  // unique_ptr: a forked child leaves it alone, there's nothing to join.
  std::unique_ptr<std::thread> thread_;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_PROGRESS_LOOP_H_
