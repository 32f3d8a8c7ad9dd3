// A 64-bit hash of bytes (XXH3), fed in pieces: what checkpoints are verified by, and a short way
// to ask whether two runs ended with the same parameters. Finds damage, not forgery. One thread at
// a time.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_FINGERPRINT_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster {

class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  void Add(const void* bytes, size_t size);
  // Of all bytes added so far, however they were cut into pieces.
  uint64_t value() const;
  // The value as 16 lower-case hexadecimal digits.
  std::string ToHex() const { return Hex(value()); }

  static uint64_t Of(const void* bytes, size_t size);
  static std::string Hex(uint64_t value);
  // The reverse of Hex(); false if `hex` isn't exactly that.
  static bool ParseHex(std::string_view hex, uint64_t* value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_FINGERPRINT_H_
