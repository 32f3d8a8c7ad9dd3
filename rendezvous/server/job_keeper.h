// Keeps the jobs' records in a JobStore in the background: a disk takes milliseconds to make one
// durable, and may not answer at all. Records of a job that follow each other faster than the disk
// takes are kept by the last of them. Who must not go on before a record is durable is called when
// it is.
//
// Thread-safe. A disk that refuses is said in the log, once until it says something else.
#ifndef MUSTER_RENDEZVOUS_SERVER_JOB_KEEPER_H_
#define MUSTER_RENDEZVOUS_SERVER_JOB_KEEPER_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/core/job_record.h"
#include "rendezvous/server/job_store.h"

namespace muster::rendezvous {

class JobKeeper {
 public:
  explicit JobKeeper(std::unique_ptr<JobStore> store);
  // Returns when all is durable or refused, and all were called who wait for it; says so where the
  // disk takes long, for nothing can end a process that waits for its disk.
  ~JobKeeper();
  JobKeeper(const JobKeeper&) = delete;
  JobKeeper& operator=(const JobKeeper&) = delete;

  // The last record of the job, durable or not yet; of round 0 if there is none.
  JobRecord RecordOf(const std::string& run_id) const;
  std::vector<std::string> RunIds() const;
  // `kept`, if not empty, is called by the keeper's own thread when the record, or a later one, is
  // durable or refused: the job goes on without the disk.
  void Keep(const std::string& run_id, const JobRecord& record, std::function<void()> kept = {});
  // The job is over and forgotten.
  void Forget(const std::string& run_id);

 private:
  struct Change {
    // None: to be forgotten.
    std::optional<JobRecord> record;
    std::vector<std::function<void()>> waiting;
  };

  void Add(const std::string& run_id, std::optional<JobRecord> record, std::function<void()> kept);
  void Run();
  void Write(const std::string& run_id, const Change& change);

  // The thread's own.
  const std::unique_ptr<JobStore> store_;
  std::string last_problem_;

  mutable base::Mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, JobRecord> records_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Change> pending_ MUSTER_GUARDED_BY(mutex_);
  bool stopping_ MUSTER_GUARDED_BY(mutex_) = false;
  bool has_ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_JOB_KEEPER_H_
