// The wire protocol of PyTorch's TCPStore, as its clients speak it: bytes to requests, and answers
// to bytes. Pure: no sockets, no threads. One RequestReader belongs to one connection.
//
//   RequestReader reader;
//   reader.Append(received);
//   while (std::optional<Request> request = reader.Next()) ...
//   if (!reader.refusal().empty()) ...   // malformed: close the connection
//
// Numbers are little-endian; a text is its length in 8 bytes and then itself. A request is one byte
// that names it and then its arguments. The names changed with PyTorch 2.2, whose clients begin
// with request 0 (VALIDATE) and a magic number; before, nothing came before the first request. They
// changed in 2.1 as well, where nothing tells it from what was before: what only 2.1 asks for is
// refused, with what to do.
#ifndef MUSTER_AGENT_TORCH_STORE_STORE_PROTOCOL_H_
#define MUSTER_AGENT_TORCH_STORE_STORE_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/torch_store/store_requests.h"

namespace muster::agent::torch_store {

inline constexpr uint32_t kMagic = 0x3C85F7CE;

// PyTorch's own server takes keys of 8 KiB, values of 8 MiB and 128 Ki keys in a request since 2.2,
// and had no limits before.
inline constexpr size_t kMaxKeyBytes = size_t{64} << 10;
inline constexpr size_t kMaxValueBytes = size_t{64} << 20;
inline constexpr size_t kMaxKeysOfARequest = size_t{128} << 10;
inline constexpr size_t kMaxRequestBytes = size_t{128} << 20;

// What answers a Check: ready or not; and a Wait or Barrier: over or cancelled.
inline constexpr char kReady = 0;
inline constexpr char kNotReady = 1;
inline constexpr char kStopWaiting = 0;
inline constexpr char kWaitCancelled = 1;

class RequestReader {
 public:
  void Append(std::string_view bytes);

  // The next whole request. Nothing if more bytes are needed, or once the bytes are malformed.
  std::optional<Request> Next();

  // Why the bytes are malformed, for people: "a key of 70000 bytes (65536 at most)". Empty: they
  // aren't. Nothing that comes later is looked at.
  const std::string& refusal() const { return refusal_; }

  // Bytes that are kept until their request is whole.
  size_t buffered() const { return buffer_.size() - taken_; }

 private:
  enum class Dialect { kUnknown, kBare, kValidated };

  // False: more bytes are needed.
  bool TellDialect();
  std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }

  Dialect dialect_ = Dialect::kUnknown;
  std::string buffer_;
  size_t taken_ = 0;
  // The request at hand isn't whole with fewer bytes than this.
  size_t wanted_ = 1;
  std::string refusal_;
};

// Puts a number or a text at the end of an answer.
void PutNumber(int64_t value, std::string& out);
void PutNonce(uint32_t value, std::string& out);
void PutText(std::string_view text, std::string& out);

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_STORE_PROTOCOL_H_
