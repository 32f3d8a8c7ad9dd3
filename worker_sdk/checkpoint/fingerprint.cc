#include "worker_sdk/checkpoint/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace muster {

// XXH3_state_t is 64-byte aligned, which `new` of C++17 and later respects.
struct Fingerprint::State {
  XXH3_state_t xxh3;
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }

Fingerprint::~Fingerprint() = default;

void Fingerprint::Add(const void* bytes, size_t size) {
  // xxhash takes a null pointer for an error, even with no bytes.
  if (size > 0) XXH3_64bits_update(&state_->xxh3, bytes, size);
}

uint64_t Fingerprint::value() const { return XXH3_64bits_digest(&state_->xxh3); }

uint64_t Fingerprint::Of(const void* bytes, size_t size) {
  return size == 0 ? XXH3_64bits("", 0) : XXH3_64bits(bytes, size);
}

std::string Fingerprint::Hex(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(16, '0');
  for (size_t i = 0; i < hex.size(); ++i) hex[i] = kDigits[value >> (60 - 4 * i) & 15];
  return hex;
}

bool Fingerprint::ParseHex(std::string_view hex, uint64_t* value) {
  if (hex.size() != 16) return false;
  uint64_t parsed = 0;
  for (char c : hex) {
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return false;
    parsed = parsed << 4 | static_cast<uint64_t>(is_letter ? c - 'a' + 10 : c - '0');
  }
  *value = parsed;
  return true;
}

}  // namespace muster
