// Keeps what a rendezvous must know of each job in its next life (rendezvous/core/job_record.h) on
// disk (`--state-dir`). One small text file (proto/stored_jobs.proto), replaced as a whole: written
// beside it, fsynced and renamed. It blocks; not thread-safe; job_keeper.h owns it.
#ifndef MUSTER_RENDEZVOUS_SERVER_JOB_STORE_H_
#define MUSTER_RENDEZVOUS_SERVER_JOB_STORE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/core/job_record.h"

namespace muster::rendezvous {

class JobStore {
 public:
  // Makes the directory if it isn't there, takes it for this process alone, and reads what an
  // earlier life kept. FailedPrecondition: the directory can't be made, read or written to, another
  // process has it, or its file isn't one of ours.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(const std::string& directory);
  ~JobStore();
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;

  // The last record of each job, by its run id.
  const std::map<std::string, JobRecord>& jobs() const { return jobs_; }
  // On return with OK the record is durable. Unavailable: the disk refuses, in its words; what was
  // kept before is still there.
  absl::Status Keep(const std::string& run_id, const JobRecord& record);
  // The job is over and forgotten. Codes as Keep().
  absl::Status Forget(const std::string& run_id);

 private:
  explicit JobStore(std::string directory) : directory_(std::move(directory)) {}
  absl::Status Lock();
  absl::Status Read();
  absl::Status Write() const;

  const std::string directory_;
  int lock_ = -1;
  std::map<std::string, JobRecord> jobs_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_JOB_STORE_H_
