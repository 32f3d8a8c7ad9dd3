// Asks a rendezvous about its jobs, for `muster status` and the like: the wire stays in here.
// Blocks; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_ADMIN_CLIENT_H_
#define MUSTER_RENDEZVOUS_CLIENT_ADMIN_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/instant.h"

namespace muster::rendezvous {

struct NodeReport {
  std::string node_name;
  std::string address;
  // None for spares and for nodes that wait.
  std::optional<int> group_rank;
  // Whether the agent's stream is open.
  bool attached = false;
  // Lost too often: waits until it is needed or forgiven.
  bool is_set_aside = false;
  // Until it may take part whatever comes.
  Duration set_aside_left{0};
  bool hosts_rendezvous = false;
  // Why it is to leave; none if it isn't.
  std::optional<std::string> leaves_because;
  Duration since_last_message{0};
};

struct JobReport {
  std::string run_id;
  // "gathering", "closing", "running", "stopping", "recovering", "succeeded" or "failed".
  std::string state;
  uint64_t round = 0;
  int attempt = 0;
  int restarts_charged = 0;
  int max_restarts = 0;
  std::optional<int64_t> committed_step;
  // Once the job has ended.
  std::optional<int> exit_code;
  std::vector<NodeReport> nodes;
  // A node whose workers have left, but whose process hosts the rendezvous until the job ends.
  std::optional<std::string> departed_host;
};

struct DrainReport {
  // How many agents were told, or had been before.
  int agents = 0;
  // One of them hosts the rendezvous, so its process stays until the jobs have ended.
  bool host_stays = false;
};

struct JobEventReport {
  std::string run_id;
  // One line.
  std::string text;
  // JobReport::state after it; empty from an older rendezvous.
  std::string state;
};

class AdminClient {
 public:
  // Nothing is sent yet.
  AdminClient(std::string host, uint16_t port);
  ~AdminClient();
  AdminClient(const AdminClient&) = delete;
  AdminClient& operator=(const AdminClient&) = delete;

  // The jobs of the rendezvous, or the one of `run_id`. NotFound: it knows no such job. Unavailable
  // and the other codes of grpc_rendezvous_client.h: no muster rendezvous answered within
  // `patience`.
  absl::StatusOr<std::vector<JobReport>> Jobs(const std::optional<std::string>& run_id,
                                              Duration patience);

  // Lets the node leave that job, or all its jobs; with a `wait` it answers when the node is gone.
  // NotFound: the message names the nodes there are;
  // DeadlineExceeded: told, but still here after `wait`; others as Jobs().
  struct DrainOrder {
    std::optional<std::string> run_id;
    std::string node;
    Duration wait{0};
  };
  absl::StatusOr<DrainReport> Drain(const DrainOrder& order, Duration patience);

  // Lets those who wait for this node in the job know why it doesn't come. NotFound: it knows no
  // such job, or not yet; others as Jobs().
  struct FailedStart {
    std::string run_id;
    std::string node_name;
    std::string reason;
  };
  absl::Status CannotStart(const FailedStart& failed, Duration patience);

  // Calls `on_event` for every change of state after `on_begun` was called, until the rendezvous
  // ends, doesn't answer for 15 s (both Unavailable), or one of them says false (OK). Where the
  // watch fails from the start `on_begun` is called, too.
  using BegunCallback = std::function<bool()>;
  using EventCallback = std::function<bool(const JobEventReport& event)>;
  absl::Status Watch(const std::optional<std::string>& run_id, const BegunCallback& on_begun,
                     const EventCallback& on_event);

 private:
  class Wire;
  std::unique_ptr<Wire> wire_;
};

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_ADMIN_CLIENT_H_
