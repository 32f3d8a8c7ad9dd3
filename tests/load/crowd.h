// Many nodes in one process, each with one TCP connection of its own to one rendezvous: the load
// under which the rendezvous is measured. Members never leave in order; a crowd ends with its
// process, as nodes that are killed do. Not thread-safe.
#ifndef MUSTER_TESTS_LOAD_CROWD_H_
#define MUSTER_TESTS_LOAD_CROWD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tests/load/tally.h"

namespace muster::load {

struct CrowdOptions {
  // On 127.0.0.1.
  uint16_t port = 0;
  // Begins the names of this process' nodes; differs between processes.
  std::string name;
  int min_nodes = 1;
  int max_nodes = 1;
};

class Crowd {
 public:
  virtual ~Crowd() = default;
  // Starts so many more members at once.
  virtual void Add(int count) = 0;
};

// muster's own: the real agent's machine and the real client over gRPC; workers and guardian are
// played, and answer at once. `tally` must outlive the crowd.
std::unique_ptr<Crowd> NewAgentCrowd(const CrowdOptions& options, Tally* tally);

// The limit: a bare gRPC stream that carries messages of the same sizes, for bare_rendezvous.
std::unique_ptr<Crowd> NewBareCrowd(const CrowdOptions& options, Tally* tally);

}  // namespace muster::load

#endif  // MUSTER_TESTS_LOAD_CROWD_H_
