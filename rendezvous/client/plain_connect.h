// One plain TCP connection to one address, opened and dropped: what the kernel of that host answers
// tells whether anybody listens there, without a word to whoever does. Blocks for at most
// `timeout`; thread-safe.
#ifndef MUSTER_RENDEZVOUS_CLIENT_PLAIN_CONNECT_H_
#define MUSTER_RENDEZVOUS_CLIENT_PLAIN_CONNECT_H_

#include <cstdint>
#include <string>

#include "base/instant.h"

namespace muster::rendezvous {

enum class ConnectAnswer {
  // Somebody listens; a process that stands still does, too.
  kAccepted,
  // ECONNREFUSED: the host is there, and nobody listens.
  kRefused,
  // No answer in time, no way there, or no socket to ask with.
  kNothing,
};

// `address` is in digits, without brackets.
ConnectAnswer PlainConnect(const std::string& address, uint16_t port, Duration timeout);

}  // namespace muster::rendezvous

#endif  // MUSTER_RENDEZVOUS_CLIENT_PLAIN_CONNECT_H_
