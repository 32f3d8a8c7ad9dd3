#include "agent/guardian/guardian_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace muster::agent::guardian {
namespace {

constexpr size_t kHeaderBytes = sizeof(uint32_t) + 2;
constexpr size_t kMaxFrameFds = 200;  // The kernel's limit for one message is 253.
constexpr size_t kReadBytes = 64 << 10;

}  // namespace

GuardianChannel::GuardianChannel(int socket) : socket_(socket) {}

GuardianChannel::~GuardianChannel() {
  Fail();
  for (int fd : incoming_fds_) close(fd);
  close(socket_);
}

void GuardianChannel::Fail() {
  is_dead_ = true;
  for (Outgoing& frame : outgoing_) {
    for (int fd : frame.fds) close(fd);
  }
  outgoing_.clear();
  backlog_bytes_ = 0;
}

void GuardianChannel::Send(Frame frame) {
  MUSTER_CHECK(frame.body.size() <= kMaxFrameBytes && frame.fds.size() <= kMaxFrameFds);
  Outgoing out;
  out.fds = std::move(frame.fds);
  uint32_t length = static_cast<uint32_t>(frame.body.size()) + 2;
  out.bytes.reserve(kHeaderBytes + frame.body.size());
  out.bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
  out.bytes.push_back(static_cast<char>(frame.kind));
  out.bytes.push_back(static_cast<char>(out.fds.size()));
  out.bytes += frame.body;
  backlog_bytes_ += out.bytes.size();
  outgoing_.push_back(std::move(out));
  if (is_dead_ || backlog_bytes_ > kMaxBacklogBytes) {
    Fail();
    return;
  }
  Flush();
}

void GuardianChannel::Flush() {
  while (!outgoing_.empty()) {
    Outgoing& out = outgoing_.front();
    iovec piece{out.bytes.data() + out.sent, out.bytes.size() - out.sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFrameFds * sizeof(int))];
    if (!out.fds.empty()) {
      size_t bytes = out.fds.size() * sizeof(int);
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(bytes);
      std::memset(control, 0, message.msg_controllen);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(header), out.fds.data(), bytes);
    }
    ssize_t sent = sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    // Too many descriptors are in flight: the other end takes them in a moment.
    if (sent < 0 && errno == ETOOMANYREFS) return;
    if (sent < 0) {
      Fail();
      return;
    }
    // They went with the first byte.
    for (int fd : out.fds) close(fd);
    out.fds.clear();
    out.sent += static_cast<size_t>(sent);
    backlog_bytes_ -= static_cast<size_t>(sent);
    if (out.sent == out.bytes.size()) outgoing_.pop_front();
  }
}

bool GuardianChannel::Receive() {
  while (ReceiveSome()) {
  }
  return !is_dead_;
}

bool GuardianChannel::ReceiveSome() {
  if (taken_ > 0) {
    incoming_.erase(0, taken_);
    taken_ = 0;
  }
  size_t had = incoming_.size();
  // More than two whole frames unread: the reader should take them first.
  if (had > 2 * kMaxFrameBytes) return false;
  incoming_.resize(had + kReadBytes);
  iovec piece{incoming_.data() + had, kReadBytes};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFrameFds * sizeof(int))];
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  incoming_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got <= 0) {
    Fail();
    return false;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      incoming_fds_.push_back(fd);
    }
  }
  return true;
}

std::optional<Frame> GuardianChannel::Next() {
  std::string_view unread = incoming_;
  unread.remove_prefix(taken_);
  if (unread.size() < kHeaderBytes) return std::nullopt;
  uint32_t length = 0;
  std::memcpy(&length, unread.data(), sizeof(length));
  if (length < 2 || length > kMaxFrameBytes + 2) {
    Fail();
    return std::nullopt;
  }
  if (unread.size() < sizeof(length) + length) return std::nullopt;
  Frame frame;
  frame.kind = static_cast<FrameKind>(unread[4]);
  size_t fd_count = static_cast<unsigned char>(unread[5]);
  if (fd_count > incoming_fds_.size()) {
    // The descriptors were lost: this process had no number left for them.
    Fail();
    return std::nullopt;
  }
  frame.body = unread.substr(kHeaderBytes, length - 2);
  for (; fd_count > 0; --fd_count) {
    frame.fds.push_back(incoming_fds_.front());
    incoming_fds_.pop_front();
  }
  taken_ += sizeof(length) + length;
  return frame;
}

BodyWriter& BodyWriter::Int(int64_t value) {
  body_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

BodyWriter& BodyWriter::Text(std::string_view text) {
  Int(static_cast<int64_t>(text.size()));
  body_ += text;
  return *this;
}

BodyWriter& BodyWriter::Ints(const std::vector<int>& values) {
  Int(static_cast<int64_t>(values.size()));
  for (int value : values) Int(value);
  return *this;
}

BodyWriter& BodyWriter::Texts(const std::vector<std::string>& texts) {
  Int(static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) Text(text);
  return *this;
}

int64_t BodyReader::Int() {
  int64_t value = 0;
  if (rest_.size() < sizeof(value)) {
    is_short_ = true;
    return 0;
  }
  std::memcpy(&value, rest_.data(), sizeof(value));
  rest_.remove_prefix(sizeof(value));
  return value;
}

std::string BodyReader::Text() {
  int64_t size = Int();
  if (size < 0 || static_cast<uint64_t>(size) > rest_.size()) {
    is_short_ = true;
    return {};
  }
  std::string text(rest_.substr(0, static_cast<size_t>(size)));
  rest_.remove_prefix(static_cast<size_t>(size));
  return text;
}

std::vector<int> BodyReader::Ints() {
  int64_t count = Int();
  std::vector<int> values;
  for (int64_t i = 0; i < count && !is_short_; ++i) values.push_back(static_cast<int>(Int()));
  return values;
}

std::vector<std::string> BodyReader::Texts() {
  int64_t count = Int();
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count && !is_short_; ++i) texts.push_back(Text());
  return texts;
}

}  // namespace muster::agent::guardian
