// What this node's workers have asked about checkpoints in the current round: kept so that it can
// be told again after contact was lost, and so that every request is answered exactly once. A
// value; owned by the agent's machine; not thread-safe.
#ifndef MUSTER_AGENT_CORE_COMMIT_REQUESTS_H_
#define MUSTER_AGENT_CORE_COMMIT_REQUESTS_H_

#include <vector>

#include "base/ids.h"
#include "base/job_types.h"
#include "base/session_messages.h"

namespace muster::agent {

class CommitRequests {
 public:
  struct Request {
    Rank rank;
    Commit commit;
    bool is_publish = false;
    bool is_answered = false;
    // What the rendezvous is told: ShardReport or CommitDone.
    AgentMessage message;
  };

  // A shard of rank 0 waits for the grant; another rank's is answered by being noted. False if too
  // many are kept already; `request` is refused then.
  bool Add(const ShardReport& report);
  bool Add(const CommitDone& done);

  // Each returns the requests that are to be answered now.
  std::vector<Request> Granted(const Commit& commit);
  // Commits count in order, so that of an older one is answered too.
  std::vector<Request> Noted(const Commit& commit);
  std::vector<Request> Refused(const Commit& commit);
  // The round is over.
  std::vector<Request> DropAll();

  // All that the rendezvous may not know, oldest first.
  std::vector<AgentMessage> ToRepeat() const;

 private:
  bool Keep(Request request);

  std::vector<Request> requests_;
};

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_COMMIT_REQUESTS_H_
