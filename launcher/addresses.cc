#include "launcher/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

Address FromRaw(const sockaddr* raw, socklen_t size) {
  Address address;
  std::memcpy(&address.storage, raw, std::min<size_t>(size, sizeof(address.storage)));
  address.size = size;
  return address;
}

// The address in digits, if `host` is one: no resolver is asked then, so nothing can block.
std::vector<Address> FromDigits(const std::string& host) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    return {FromRaw(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4))};
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    return {FromRaw(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6))};
  }
  return {};
}

Address WithPort(Address address, uint16_t port) {
  if (address.storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  }
  return address;
}

// A datagram socket: bind and connect on it decide by addresses alone and send nothing.
class ProbeSocket {
 public:
  explicit ProbeSocket(const Address& address)
      : fd_(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~ProbeSocket() {
    if (fd_ >= 0) close(fd_);
  }
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

const sockaddr* Raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

}  // namespace

std::string Address::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text,
              sizeof(text));
  } else if (storage.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, text,
              sizeof(text));
  }
  return text;
}

bool Address::IsLoopback() const {
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

absl::StatusOr<std::vector<Address>> Resolve(const std::string& host) {
  std::vector<Address> addresses = FromDigits(host);
  if (!addresses.empty()) return addresses;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    const char* why = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
    return absl::InvalidArgumentError(Cat("\"", host, "\" does not resolve: ", why));
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    Address address = FromRaw(entry->ai_addr, entry->ai_addrlen);
    bool is_known = std::ranges::any_of(
        addresses, [&](const Address& known) { return known.ToString() == address.ToString(); });
    if (!is_known) addresses.push_back(address);
  }
  if (!addresses.empty()) return addresses;
  return absl::InvalidArgumentError(Cat("\"", host, "\" has no internet address"));
}

bool IsOwnAddress(const Address& address) {
  ProbeSocket probe(address);
  Address any_port = WithPort(address, 0);
  return probe.fd() >= 0 && bind(probe.fd(), Raw(any_port), any_port.size) == 0;
}

absl::StatusOr<Address> LocalEndTowards(const Address& address) {
  ProbeSocket probe(address);
  // Any port but 0 will do.
  Address target = WithPort(address, 9);
  Address local;
  local.size = sizeof(local.storage);
  if (probe.fd() < 0 || connect(probe.fd(), Raw(target), target.size) != 0 ||
      getsockname(probe.fd(), reinterpret_cast<sockaddr*>(&local.storage), &local.size) != 0) {
    return absl::UnavailableError(
        Cat("no way leads to ", address.ToString(), ": ", std::strerror(errno)));
  }
  return local;
}

std::vector<Address> OutwardAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Address> v4, v6;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      Address address = FromRaw(entry->ifa_addr, sizeof(sockaddr_in));
      if (!address.IsLoopback()) v4.push_back(address);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      Address address = FromRaw(entry->ifa_addr, sizeof(sockaddr_in6));
      const auto* raw = reinterpret_cast<const sockaddr_in6*>(&address.storage);
      // A link-local address is none without its interface, which other nodes name differently.
      if (!address.IsLoopback() && !IN6_IS_ADDR_LINKLOCAL(&raw->sin6_addr)) v6.push_back(address);
    }
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

std::string ListOf(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) {
    if (!text.empty()) text += ", ";
    text += address.ToString();
  }
  return text;
}

}  // namespace muster::launcher
