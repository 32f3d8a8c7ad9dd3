// Runs what touches files on a thread of its own, in order, so that a file server that is dead or
// slow costs output and never the time of whoever writes. Bounded: what a stuck disk can't take is
// refused and the caller counts it. Owned by one object at a time; thread-safe; one thread of its
// own.
//
//   if (!files.Offer(bytes.size(), [file, bytes] { file->Write(bytes); })) lost += bytes.size();
//
// Tasks must hold all that they use (shared): one that is stuck in the kernel outlives this object.
#ifndef MUSTER_AGENT_PROCESS_FILE_THREAD_H_
#define MUSTER_AGENT_PROCESS_FILE_THREAD_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "base/instant.h"

namespace muster::agent {

// What waits for the disk at most; beyond, Offer() refuses. A pipe full of output is 64 KiB.
inline constexpr size_t kFileBacklogBytes = 16 << 20;
inline constexpr size_t kFileBacklogTasks = 1 << 16;
// Half of that is kept for readers that have to be held up first.
inline constexpr size_t kFileHighWaterBytes = kFileBacklogBytes / 2;
inline constexpr size_t kFileHighWaterTasks = kFileBacklogTasks / 2;
// A disk that has finished nothing for this long holds nobody up any more.
inline constexpr Duration kFileStuckAfter = std::chrono::seconds(5);
// How long the destructor waits for a disk that is merely slow.
inline constexpr Duration kFileEndPatience = std::chrono::seconds(60);

class FileThread {
 public:
  // `on_room` is called on the thread whenever it has made room below the high water mark; it must
  // only enqueue, and holds what it uses. May be empty.
  explicit FileThread(std::function<void()> on_room = nullptr);
  // What is queued still goes out, as long as the disk isn't stuck, and for at most
  // kFileEndPatience; then the thread is left alone.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // Queues a task that holds this many bytes. False: the backlog is full and the task was dropped.
  bool Offer(size_t bytes, std::function<void()> task);
  // Queues what ends something begun (a close), whatever waits: as many as were begun.
  void Post(std::function<void()> task);

  // Writers should wait: much is queued, and the disk still makes progress.
  bool HoldsUp(Instant now) const;
  // Until when, if nothing more is finished. Never() if it doesn't.
  Instant HoldsUpUntil() const;
  // When the disk counts as stuck, if nothing more is finished. Never() if nothing is queued.
  Instant StuckAt() const;

 private:
  struct Shared;
  // Shared with the thread, which may be stuck in the kernel for longer than this object lives.
  const std::shared_ptr<Shared> shared_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_PROCESS_FILE_THREAD_H_
