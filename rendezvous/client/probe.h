// Asks who listens at an address, for a host whose port is taken: a muster rendezvous is joined,
// one that doesn't answer yet is waited for, anything else is named to the user. Blocks for at most
// `timeout` beyond the resolver's time; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_PROBE_H_
#define MUSTER_RENDEZVOUS_CLIENT_PROBE_H_

#include <cstdint>
#include <string>

#include "base/instant.h"

namespace muster::rendezvous {

enum class ProbeAnswer {
  kMuster,
  // Somebody answers, but not as a rendezvous does.
  kSomethingElse,
  // Somebody listens and says nothing in time: a rendezvous that stands still or is overloaded, or
  // something else that waits for us to speak its language.
  kSilent,
  // No connection is accepted there.
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
