// What clients of PyTorch's store put on the wire, for tests: built here from nothing but the
// protocol's description, so that a test doesn't believe the code it tests.
#ifndef MUSTER_AGENT_TORCH_STORE_WIRE_BYTES_H_
#define MUSTER_AGENT_TORCH_STORE_WIRE_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::agent::torch_store {

inline std::string Eight(uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return out;
}

inline std::string Text(std::string_view text) { return Eight(text.size()) + std::string(text); }

inline std::string Byte(int value) { return std::string(1, static_cast<char>(value)); }

// What a client of PyTorch 2.2 or newer begins with.
inline std::string Greeting() { return std::string("\x00\xce\xf7\x85\x3c", 5); }

}  // namespace muster::agent::torch_store

#endif  // MUSTER_AGENT_TORCH_STORE_WIRE_BYTES_H_
