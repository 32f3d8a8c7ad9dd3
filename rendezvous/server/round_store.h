// Keeps (run id, world id, round) of each job on disk (`--state-dir`), so that a rendezvous that
// comes back never reuses the number of a round. One small text file, replaced as a whole: written
// beside it, fsynced and renamed. It blocks; not thread-safe; round_keeper.h owns it.
#ifndef MUSTER_RENDEZVOUS_SERVER_ROUND_STORE_H_
#define MUSTER_RENDEZVOUS_SERVER_ROUND_STORE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/job_types.h"

namespace muster::rendezvous {

class RoundStore {
 public:
  // Makes the directory if it isn't there and reads what an earlier life kept. InvalidArgument: the
  // directory can't be made or written to, or its file isn't one of ours.
  static absl::StatusOr<std::unique_ptr<RoundStore>> Open(const std::string& directory);

  // The last world kept for each job.
  const std::map<std::string, World>& worlds() const { return worlds_; }
  // The last round kept for the job; 0 if none was.
  RoundId HighestRound(const std::string& run_id) const;
  // On return with OK the round is durable. Unavailable: the disk refuses, in its words; what was
  // kept before is still there.
  absl::Status Keep(const std::string& run_id, const World& world);
  // The job is over and forgotten. Codes as Keep().
  absl::Status Forget(const std::string& run_id);

 private:
  explicit RoundStore(std::string directory) : directory_(std::move(directory)) {}
  absl::Status Read();
  absl::Status Write() const;

  const std::string directory_;
  std::map<std::string, World> worlds_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_SERVER_ROUND_STORE_H_
