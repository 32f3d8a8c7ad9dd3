#include "worker_sdk/collectives/cpu/farewell.h"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace muster::cpu {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How often a leaving group looks whether what it sent was acknowledged; there's no event for it.
constexpr int kAcknowledgedPollMs = 1;

// One last frame on one link.
struct LastFrame {
  Link* link = nullptr;
  bool is_started = false;
  bool is_over = false;

  void GoOn(const FrameHeader& header, std::span<const std::byte> payload) {
    while (!is_over) {
      if (!link->IsSending() && !is_started) {
        link->StartFrame(header, payload);
        is_started = true;
      }
      Link::Outcome outcome = link->Send();
      if (outcome == Link::Outcome::kBlocked) return;
      is_over = outcome == Link::Outcome::kBroken || is_started;
    }
  }
};

// Sends the frame on all links, whatever was half sent before it first.
void SendToAll(const std::vector<Link*>& links, const FrameHeader& header,
               std::span<const std::byte> payload, const AbortSignal* abort,
               SteadyClock::time_point until) {
  std::vector<LastFrame> frames;
  frames.reserve(links.size());
  for (Link* link : links) frames.push_back({link});
  for (;;) {
    std::vector<pollfd> fds;
    if (abort != nullptr) fds.push_back({abort->fd(), POLLIN, 0});
    size_t others = fds.size();
    for (LastFrame& frame : frames) {
      frame.GoOn(header, payload);
      if (!frame.is_over) fds.push_back({frame.link->fd(), POLLOUT, 0});
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    if (fds.size() == others || left <= 0 || (abort != nullptr && abort->IsRaised())) return;
    (void)poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, 1000)));
  }
}

}  // namespace

void SpreadFailure(const std::vector<Link*>& links, const Status& cause,
                   SteadyClock::time_point until) {
  std::string bytes = EncodeFailure(cause);
  SendToAll(links, {FrameKind::kFailure, 0, static_cast<uint32_t>(bytes.size())},
            std::as_bytes(std::span(bytes)), nullptr, until);
}

void SayGoodbye(const std::vector<Link*>& links, const AbortSignal& abort,
                SteadyClock::time_point until) {
  SendToAll(links, {FrameKind::kGoodbye, 0, 0}, {}, &abort, until);
  for (Link* link : links) link->ShutDownSending();
  std::vector<Link*> waiting = links;
  for (;;) {
    std::erase_if(waiting, [](Link* link) {
      return !link->DiscardInput() || link->UnacknowledgedBytes() == 0;
    });
    if (waiting.empty() || abort.IsRaised() || SteadyClock::now() >= until) return;
    pollfd fd{abort.fd(), POLLIN, 0};
    (void)poll(&fd, 1, kAcknowledgedPollMs);
  }
}

}  // namespace muster::cpu
