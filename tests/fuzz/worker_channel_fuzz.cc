// What a worker or an agent may receive on the channel between them: any bytes. What decodes must
// encode to the same bytes, and nothing may crash.
//   bazel run --config=fuzz //tests/fuzz:worker_channel_fuzz -- -max_total_time=60
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/worker_channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::worker_channel::Decoded;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Decoded decoded = muster::worker_channel::Decode(bytes);
  if (decoded.kind == Decoded::Kind::kMessage) {
    MUSTER_CHECK(muster::worker_channel::Encode(decoded.message) ==
                 bytes.substr(0, decoded.consumed));
  } else {
    MUSTER_CHECK(decoded.consumed == 0);
  }
  return 0;
}
