// Where a rendezvous listens, as people write it: `host:port`, `host`, `[v6]:port`, `v6`. A value.
#ifndef MUSTER_LAUNCHER_ENDPOINT_H_
#define MUSTER_LAUNCHER_ENDPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::launcher {

struct Endpoint {
  // A name or an address, without brackets.
  std::string host;
  uint16_t port = 0;

  // "host:port", with brackets around an IPv6 address.
  std::string ToString() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Nothing if `text` isn't an endpoint: empty host, blanks, or a port that isn't 0..65535.
std::optional<Endpoint> ParseEndpoint(std::string_view text, uint16_t default_port);

// A whole number in decimal digits, 0..65535, or nothing.
std::optional<uint16_t> ParsePort(std::string_view text);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_ENDPOINT_H_
