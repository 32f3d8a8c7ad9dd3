#include "worker_sdk/collectives/cpu/link.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace muster::cpu {

void Link::ShutDownSending() { (void)shutdown(socket_.fd(), SHUT_WR); }

int Link::UnacknowledgedBytes() const {
  int bytes = 0;
  return ioctl(socket_.fd(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

Link::Outcome Link::Broken(std::string problem) {
  problem_ = std::move(problem);
  return Outcome::kBroken;
}

void Link::StartCall(const Call& call, const std::optional<FrameHeader>& data_header,
                     std::span<const std::byte> data) {
  MUSTER_CHECK(!IsSending());
  auto header = EncodeHeader({FrameKind::kCall, 0, kCallBytes});
  auto bytes = EncodeCall(call);
  auto* at = std::ranges::copy(header, out_prefix_bytes_.begin()).out;
  at = std::ranges::copy(bytes, at).out;
  if (data_header) at = std::ranges::copy(EncodeHeader(*data_header), at).out;
  out_prefix_ = {out_prefix_bytes_.data(), static_cast<size_t>(at - out_prefix_bytes_.begin())};
  out_payload_ = data;
}

void Link::StartFrame(const FrameHeader& header, std::span<const std::byte> payload) {
  MUSTER_CHECK(!IsSending() && payload.size() == header.length);
  std::ranges::copy(EncodeHeader(header), out_prefix_bytes_.begin());
  out_prefix_ = {out_prefix_bytes_.data(), kFrameHeaderBytes};
  out_payload_ = payload;
}

Link::Outcome Link::Send() {
  while (IsSending()) {
    // sendmsg() doesn't write to what it is given; iovec has no const form.
    std::array<iovec, 2> parts = {
        iovec{const_cast<std::byte*>(out_prefix_.data()), out_prefix_.size()},
        iovec{const_cast<std::byte*>(out_payload_.data()), out_payload_.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t sent = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Outcome::kBlocked;
      if (errno == EINTR) continue;
      return Broken(std::strerror(errno));
    }
    size_t of_prefix = std::min(static_cast<size_t>(sent), out_prefix_.size());
    out_prefix_ = out_prefix_.subspan(of_prefix);
    out_payload_ = out_payload_.subspan(static_cast<size_t>(sent) - of_prefix);
  }
  return Outcome::kDone;
}

void Link::ReplacePayloadByZeros() {
  zeros_.assign(out_payload_.size(), std::byte{0});
  out_payload_ = zeros_;
}

Link::Outcome Link::Receive(std::span<iovec> parts, size_t& received) {
  for (;;) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t got = recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
    if (got > 0) {
      received = static_cast<size_t>(got);
      return Outcome::kDone;
    }
    if (got == 0) return Broken("end of the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Outcome::kBlocked;
    if (errno != EINTR) return Broken(std::strerror(errno));
  }
}

bool Link::DiscardInput() {
  for (;;) {
    std::array<iovec, 1> parts = {iovec{staging_.data(), staging_.size()}};
    size_t received = 0;
    Outcome outcome = Receive(parts, received);
    if (outcome != Outcome::kDone) return outcome == Outcome::kBlocked;
  }
}

Link::Outcome Link::PeekHeader(FrameHeader& header) {
  while (!in_header_) {
    size_t staged = staged_end_ - staged_begin_;
    std::byte* begin = staging_.data() + staged_begin_;
    if (staged >= kFrameHeaderBytes) {
      in_header_ = DecodeHeader(std::span<const std::byte, kFrameHeaderBytes>(begin, 8));
      if (!in_header_) return Broken("it sends what is no message of muster's");
      staged_begin_ += kFrameHeaderBytes;
      in_payload_got_ = 0;
      break;
    }
    // The beginning of a header at most: to the front with it, the rest behind it.
    std::memmove(staging_.data(), begin, staged);
    staged_begin_ = 0;
    staged_end_ = staged;
    std::array<iovec, 1> parts = {iovec{staging_.data() + staged, staging_.size() - staged}};
    size_t received = 0;
    Outcome outcome = Receive(parts, received);
    if (outcome != Outcome::kDone) return outcome;
    staged_end_ += received;
  }
  header = *in_header_;
  return Outcome::kDone;
}

Link::Outcome Link::ReceivePayload(std::byte* to) {
  MUSTER_CHECK(in_header_.has_value());
  size_t length = in_header_->length;
  while (in_payload_got_ < length) {
    size_t missing = length - in_payload_got_;
    size_t step = 0;
    if (HasStaged()) {
      step = std::min(missing, staged_end_ - staged_begin_);
      std::memcpy(to + in_payload_got_, staging_.data() + staged_begin_, step);
      staged_begin_ += step;
    } else {
      std::array<iovec, 2> parts = {iovec{to + in_payload_got_, missing},
                                    iovec{staging_.data(), staging_.size()}};
      size_t received = 0;
      Outcome outcome = Receive(parts, received);
      if (outcome != Outcome::kDone) return outcome;
      step = std::min(missing, received);
      staged_begin_ = 0;
      staged_end_ = received - step;
    }
    in_payload_got_ += step;
  }
  in_header_.reset();
  return Outcome::kDone;
}

}  // namespace muster::cpu
