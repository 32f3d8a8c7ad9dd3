// The safetensors format: eight bytes little-endian header size, a JSON header (name -> dtype,
// shape, offsets), the tensors' bytes. Ours is padded so that the data begin at a multiple of 8,
// and readable by the reference implementation. Pure functions over bytes; no file is touched.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_SAFETENSORS_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/collectives/process_group.h"
#include "worker_sdk/context/status.h"

namespace muster::safetensors {

// The reference implementation refuses a larger header.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct TensorEntry {
  std::string name;
  // As in the file: "F32", "I64", "BF16", ...
  std::string dtype;
  std::vector<uint64_t> shape = {};
  // Position of its bytes, from the beginning of the data (not of the file).
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t bytes() const { return end - begin; }
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct Layout {
  // In the order of their bytes.
  std::vector<TensorEntry> tensors;
  // Bytes of size word, header and padding: where the data begin in the file.
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;
};

// "F32" for kF32.
const char* DtypeName(DataType type);

// Gives `tensors` their offsets, larger elements first so that each is aligned in memory, and
// writes the header's bytes to `header`. kInvalidArgument: an unknown dtype, a name that is empty,
// repeated, not UTF-8 or "__metadata__", a header over kMaxHeaderBytes.
Result<Layout> Plan(std::vector<TensorEntry> tensors, std::string* header);

// Reads and checks the header at the beginning of `file`, of which all bytes are given: offsets
// cover the data without holes or overlaps, and agree with dtype and shape. kDataLoss names `path`
// and the tensor.
Result<Layout> Parse(std::span<const std::byte> file, const std::string& path);

}  // namespace muster::safetensors

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_SAFETENSORS_H_
