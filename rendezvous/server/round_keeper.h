// Keeps the jobs' rounds in a RoundStore in the background: a disk takes milliseconds to make a
// round durable, and all nodes would wait for it. Rounds that follow each other faster than the
// disk takes are kept by the last of them. A crash may lose the newest; the agents, which were told
// of it, tell a rendezvous that comes back, so its number is only lost with all of them.
//
// Thread-safe. A disk that refuses is said in the log, once until it says something else.
#ifndef MUSTER_RENDEZVOUS_SERVER_ROUND_KEEPER_H_
#define MUSTER_RENDEZVOUS_SERVER_ROUND_KEEPER_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/ids.h"
#include "base/job_types.h"
#include "base/mutex.h"
#include "rendezvous/server/round_store.h"

namespace muster::rendezvous {

class RoundKeeper {
 public:
  explicit RoundKeeper(std::unique_ptr<RoundStore> store);
  // Returns when all is durable or refused.
  ~RoundKeeper();
  RoundKeeper(const RoundKeeper&) = delete;
  RoundKeeper& operator=(const RoundKeeper&) = delete;

  // The last round that was kept for the job, durable or not yet; 0 if none was.
  RoundId HighestRound(const std::string& run_id) const;
  void Keep(const std::string& run_id, const World& world);
  // The job is over and forgotten.
  void Forget(const std::string& run_id);

 private:
  // None: to be forgotten.
  using Change = std::optional<World>;

  void Add(const std::string& run_id, const Change& change);
  void Run();
  void Write(const std::string& run_id, const Change& change);

  // The thread's own.
  const std::unique_ptr<RoundStore> store_;
  std::string last_problem_;

  mutable base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, RoundId> highest_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Change> pending_ MUSTER_GUARDED_BY(mutex_);
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_ROUND_KEEPER_H_
