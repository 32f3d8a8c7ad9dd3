#include "launcher/endpoint.h"

#include <algorithm>

namespace muster::launcher {

std::string Endpoint::ToString() const {
  bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  if (text.empty() || text.size() > 5) return std::nullopt;
  uint32_t port = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  if (port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

std::optional<Endpoint> ParseEndpoint(std::string_view text, uint16_t default_port) {
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = text.substr(1, close - 1);
    std::string_view after = text.substr(close + 1);
    if (!after.empty() && after[0] != ':') return std::nullopt;
    has_port = !after.empty();
    if (has_port) port = after.substr(1);
  } else if (std::ranges::count(text, ':') == 1) {
    size_t colon = text.find(':');
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
  }
  if (host.empty() || host.find_first_of(" \t\n/[]@") != std::string_view::npos) {
    return std::nullopt;
  }
  Endpoint endpoint{.host = std::string(host), .port = default_port};
  if (has_port) {
    std::optional<uint16_t> parsed = ParsePort(port);
    if (!parsed.has_value()) return std::nullopt;
    endpoint.port = *parsed;
  }
  return endpoint;
}

}  // namespace muster::launcher
