// Keeps what a rendezvous must know of each job in its next life (rendezvous/core/job_record.h) on
// disk (`--state-dir`). A small text file for each job (proto/stored_job.proto), named job.1, job.2
// and so on, replaced as a whole: written beside it, fsynced and renamed. So what a commit costs
// doesn't depend on how many jobs there are. It blocks; not thread-safe; job_keeper.h owns it.
#ifndef MUSTER_RENDEZVOUS_SERVER_JOB_STORE_H_
#define MUSTER_RENDEZVOUS_SERVER_JOB_STORE_H_

#include <cstdint>
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
  // process has it, or one of its files isn't one of ours.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(const std::string& directory);
  ~JobStore();
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;

  // What an earlier life kept, by run id.
  const std::map<std::string, JobRecord>& found() const { return found_; }
  // On return with OK the record is durable. Unavailable: the disk refuses, in its words; what was
  // kept before is still there.
  absl::Status Keep(const std::string& run_id, const JobRecord& record);
  // The job is over and forgotten. Codes as Keep().
  absl::Status Forget(const std::string& run_id);

 private:
  explicit JobStore(std::string directory) : directory_(std::move(directory)) {}
  absl::Status Lock();
  absl::Status ReadAll();
  absl::Status Read(const std::string& path);
  std::string PathOf(uint64_t file) const;
  absl::Status Write(const std::string& path, const std::string& text) const;
  absl::Status Remove(const std::string& path) const;
  // What was renamed or removed is so after a power failure, too.
  absl::Status SyncDirectory() const;

  const std::string directory_;
  int lock_ = -1;
  std::map<std::string, JobRecord> found_;
  // The number of each job's file, and of the last that was used.
  std::map<std::string, uint64_t> files_;
  uint64_t last_file_ = 0;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_JOB_STORE_H_
