#include "rendezvous/client/channel.h"

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::rendezvous {
namespace {

// As the rendezvous sends at most: verdicts of many failures.
constexpr int kMaxReceivedBytes = 16 << 20;

// gRPC's targets name addresses of one family only.
absl::StatusOr<std::string> Lookup(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    std::string why =
        absl::StrCat("the rendezvous' host \"", host, "\" doesn't resolve: ", gai_strerror(error));
    return error == EAI_AGAIN ? absl::UnavailableError(why) : absl::InvalidArgumentError(why);
  }
  std::vector<std::string> v4, v6;
  for (addrinfo* a = found; a != nullptr; a = a->ai_next) {
    char text[NI_MAXHOST] = "";
    if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    std::vector<std::string>& family = a->ai_family == AF_INET ? v4 : v6;
    std::string address = a->ai_family == AF_INET ? absl::StrCat(text, ":", port)
                                                  : absl::StrCat("[", text, "]:", port);
    if (std::find(family.begin(), family.end(), address) == family.end()) family.push_back(address);
  }
  freeaddrinfo(found);
  if (!v4.empty()) return absl::StrCat("ipv4:", absl::StrJoin(v4, ","));
  if (!v6.empty()) return absl::StrCat("ipv6:", absl::StrJoin(v6, ","));
  return absl::InvalidArgumentError(
      absl::StrCat("the rendezvous' host \"", host, "\" has no address"));
}

// gRPC's callback threads end with the last channel that has used them. If that one goes in one of
// these very threads, as that of a session that has ended does, the thread waits for itself, goes
// on and frees their queue a second time. A channel on which every call fails uses them once and
// stays, so they never end.
void KeepCallbackThreads() {
  struct Call {
    grpc::ClientContext context;
    grpc::Slice nothing;
    grpc::ByteBuffer request{&nothing, 1};
    grpc::ByteBuffer reply;
  };
  // Without credentials a channel leads nowhere.
  [[gnu::used]] static const auto* const kept = [] {
    auto* channel = new std::shared_ptr<grpc::Channel>(grpc::CreateChannel("", nullptr));
    auto call = std::make_shared<Call>();
    grpc::GenericStub(*channel).UnaryCall(&call->context, "/nowhere", {}, &call->request,
                                          &call->reply, [call](const grpc::Status&) {});
    return channel;
  }();
}

}  // namespace

std::string EndpointText(const std::string& host, uint16_t port) {
  if (absl::StrContains(host, ":")) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

bool IsNumericHost(const std::string& host) { return Lookup(host, 1, AI_NUMERICHOST).ok(); }

absl::StatusOr<std::string> ResolveTarget(const std::string& host, uint16_t port) {
  return Lookup(host, port, 0);
}

std::vector<std::string> Addresses(const std::string& target) {
  // "ipv4:10.0.0.1:29400,10.0.0.2:29400" or "ipv6:[::1]:29400".
  std::vector<std::string> addresses = absl::StrSplit(target.substr(target.find(':') + 1), ',');
  for (std::string& address : addresses) {
    address.erase(address.rfind(':'));
    if (address.starts_with('[')) address = address.substr(1, address.size() - 2);
  }
  return addresses;
}

std::string SingleAddress(const std::string& target) {
  std::vector<std::string> addresses = Addresses(target);
  return addresses.size() == 1 ? addresses.front() : "";
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, Duration connect_timeout,
                                           const std::optional<Keepalive>& keepalive) {
  KeepCallbackThreads();
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // No pings that measure the path for large transfers: they double the packets of small messages.
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  // Also how long one attempt to connect may take.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
              static_cast<int>(connect_timeout / std::chrono::milliseconds(1)));
  if (keepalive) {
    args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                static_cast<int>(keepalive->silence / std::chrono::milliseconds(1)));
    args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                static_cast<int>(keepalive->patience / std::chrono::milliseconds(1)));
    // As many as it takes: who only listens sends nothing else.
    args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  args.SetMaxReceiveMessageSize(kMaxReceivedBytes);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), args);
}

bool IsSilence(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         absl::StrContains(absl::AsciiStrToLower(status.error_message()), "keepalive");
}

bool IsTimeout(const grpc::Status& status) {
  const std::string lower = absl::AsciiStrToLower(status.error_message());
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         absl::StrContains(lower, "timeout occurred") || absl::StrContains(lower, "timed out");
}

absl::Status ExplainConnectFailure(const grpc::Status& status, const std::string& endpoint) {
  const std::string& seen = status.error_message();
  const std::string lower = absl::AsciiStrToLower(seen);
  auto says = [&](const char* words) { return absl::StrContains(lower, words); };
  if (says("connection refused"))
    return absl::UnavailableError(
        absl::StrCat("nobody listens at ", endpoint, ": connection refused"));
  // Who listens may be a rendezvous that stands still.
  if (IsTimeout(status))
    return absl::UnavailableError(
        absl::StrCat("what listens at ", endpoint, " doesn't answer in time"));
  if (says("http1.x") || says("settings frame") || says("connect string") ||
      says("unexpected content-type") || says("unexpected http status") ||
      says("http2 status code") || says("too small frame") || says("frame size") ||
      says("unknown frame") || says("failed parsing http/2"))
    return absl::InternalError(absl::StrCat("what answers at ", endpoint,
                                            " is no muster rendezvous: it doesn't speak gRPC"));
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError(absl::StrCat(
          "what answers at ", endpoint, " is no muster rendezvous, but another gRPC server"));
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return absl::UnavailableError(
          absl::StrCat("the rendezvous at ", endpoint, " can't be reached: ", seen));
    default:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat("the rendezvous at ", endpoint, " says: ", seen));
  }
}

}  // namespace muster::rendezvous
