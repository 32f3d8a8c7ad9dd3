// `muster status --watch`: prints every change of state of a rendezvous' jobs, and goes on over its
// restarts, for which it waits a bounded time each. Blocks; used by one thread.
#ifndef MUSTER_LAUNCHER_STATUS_WATCH_H_
#define MUSTER_LAUNCHER_STATUS_WATCH_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/instant.h"
#include "launcher/endpoint.h"
#include "rendezvous/client/admin_client.h"

namespace muster::launcher {

struct StatusWatchOptions {
  Endpoint endpoint;
  // Absent: all jobs.
  std::optional<std::string> run_id;
  // How long to try to reach a rendezvous that went away: as long as nodes do by default.
  Duration patience = std::chrono::seconds(60);
  // One line for the user, beside what is printed.
  std::function<void(std::string_view)> say;
  // False if it can't be written: the watch ends.
  std::function<bool(std::string_view)> print;
};

class StatusWatch {
 public:
  explicit StatusWatch(StatusWatchOptions options);

  // Prints the jobs, then what happens to them. OK: the rendezvous has ended, and what it did is
  // over (said), or nothing can be printed any more (`could_print`). Unavailable: it hasn't come
  // back; NotFound: it has, but not the job. Both messages are whole sentences. Others as
  // AdminClient::Jobs().
  absl::Status Run();
  bool could_print() const { return could_print_; }

 private:
  struct Job {
    std::string state;
    // It can't be empty before so many further events.
    size_t events_until_empty = 0;
  };

  absl::Status WatchOnce();
  void Begin(const std::vector<rendezvous::JobReport>& jobs);
  void Learn(const rendezvous::JobReport& job);
  void Take(const rendezvous::JobEventReport& event);
  void AskAbout(const std::string& run_id);
  bool AreAllOver() const;
  absl::Status AwaitReturn();
  bool Print(const std::string& text);

  const StatusWatchOptions options_;
  rendezvous::AdminClient client_;
  // What was heard of each in this life of the rendezvous.
  std::map<std::string, Job> jobs_;
  bool could_print_ = true;
};

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_STATUS_WATCH_H_
