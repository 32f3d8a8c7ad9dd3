// Asks who listens at an address, for a host whose port is taken: a muster rendezvous is joined,
// anything else is named to the user. Blocks for at most `timeout`; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_PROBE_H_
#define MUSTER_RENDEZVOUS_CLIENT_PROBE_H_

#include <cstdint>
#include <string>

#include "base/instant.h"

namespace muster::rendezvous {

enum class ProbeAnswer {
  kMuster,
  // Somebody listens, but doesn't answer as a rendezvous does (or doesn't answer in time).
  kSomethingElse,
  kNobody,
};

struct ProbeResult {
  ProbeAnswer answer = ProbeAnswer::kNobody;
  // kMuster: its version. Else one sentence that says what was seen.
  std::string detail;
};

ProbeResult Probe(const std::string& host, uint16_t port,
                  Duration timeout = std::chrono::milliseconds(1500));

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_PROBE_H_
