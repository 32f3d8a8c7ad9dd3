// One proven connection to a peer, as frames in both directions without ever blocking. Owned and
// used by the progress loop's thread.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_CPU_LINK_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_CPU_LINK_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "worker_sdk/collectives/cpu/socket.h"
#include "worker_sdk/collectives/cpu/wire.h"

namespace muster::cpu {

class Link {
 public:
  enum class Outcome {
    kDone,     // the frame is through
    kBlocked,  // wait for the socket
    kBroken,   // the connection has ended; problem() says how
  };

  explicit Link(Socket socket) : socket_(std::move(socket)), peer_host_(PeerHost(socket_.fd())) {}

  int fd() const { return socket_.fd(); }
  bool IsOpen() const { return socket_.IsOpen(); }
  void Close() { socket_.Close(); }
  // Tells the peer that nothing follows; what was sent still arrives.
  void ShutDownSending();
  // Bytes that the peer's machine hasn't acknowledged.
  int UnacknowledgedBytes() const;
  const std::string& problem() const { return problem_; }
  // The peer's address, for messages.
  const std::string& peer_host() const { return peer_host_; }

  // ---- sending: one frame at a time ----
  bool IsSending() const { return !out_prefix_.empty() || !out_payload_.empty(); }
  // Begin a frame, not while IsSending(). A payload must stay until the frame is through. A call
  // takes its first data frame along, if there is one.
  void StartCall(const Call& call, const std::optional<FrameHeader>& data_header,
                 std::span<const std::byte> data);
  void StartFrame(const FrameHeader& header, std::span<const std::byte> payload);
  // Goes on with the frame.
  Outcome Send();
  // The caller's memory is no longer to be touched: zeros take the place of the rest of the frame.
  void ReplacePayloadByZeros();

  // ---- receiving: header, then all of its payload ----
  // The header of the next frame, once it is there; stays the same until the payload was taken.
  Outcome PeekHeader(FrameHeader& header);
  // Receives the payload of that frame to `to`, which must be the same in every call of one frame.
  Outcome ReceivePayload(std::byte* to);
  // Throws away what has come, without a look. False at the end of the connection.
  bool DiscardInput();

 private:
  static constexpr size_t kStagingBytes = 16u << 10;

  // Received bytes that aren't consumed.
  bool HasStaged() const { return staged_begin_ < staged_end_; }
  Outcome Broken(std::string problem);
  Outcome Receive(std::span<iovec> parts, size_t& received);

  Socket socket_;
  const std::string peer_host_;
  std::string problem_;

  // Header, or call and header; at most two headers and a call.
  std::array<std::byte, 2 * kFrameHeaderBytes + kCallBytes> out_prefix_bytes_{};
  std::span<const std::byte> out_prefix_;
  std::span<const std::byte> out_payload_;
  std::vector<std::byte> zeros_;

  std::vector<std::byte> staging_ = std::vector<std::byte>(kStagingBytes);
  size_t staged_begin_ = 0;
  size_t staged_end_ = 0;
  std::optional<FrameHeader> in_header_;
  size_t in_payload_got_ = 0;
};

}  // namespace muster::cpu

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_CPU_LINK_H_
