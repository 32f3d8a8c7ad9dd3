// Questions about network addresses that only this machine can answer: what a name stands for,
// which addresses are its own, which way out leads to another host. Blocks on name resolution only.
// Thread-safe.
#ifndef MUSTER_LAUNCHER_ADDRESSES_H_
#define MUSTER_LAUNCHER_ADDRESSES_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  // In digits, without port and brackets.
  std::string ToString() const;
  bool IsLoopback() const;
};

// What a host name or an address in digits stands for, each once. InvalidArgument: it doesn't
// resolve, in the resolver's words.
absl::StatusOr<std::vector<Address>> Resolve(const std::string& host);

// Whether a socket can be bound to it: nothing is compared by name, so every spelling counts.
bool IsOwnAddress(const Address& address);

// The local end of a connection to `address`, as the kernel would route it; nothing is sent.
// Unavailable: no way leads there.
absl::StatusOr<Address> LocalEndTowards(const Address& address);

// This machine's own addresses that aren't loopback, of interfaces that are up; IPv4 first.
std::vector<Address> OutwardAddresses();

// "10.0.0.1, 10.0.0.2", for messages.
std::string ListOf(const std::vector<Address>& addresses);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_ADDRESSES_H_
