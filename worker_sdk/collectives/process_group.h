// Collective operations between the workers of a round. All ranks must start the same operations
// with the same types, counts and roots in the same order; a disagreement is an error on every rank
// that names both calls. Operations run in the order in which they were started, so that a
// collective may be given what an earlier operation is still writing; sends and receives that
// follow each other run together.
//
// Buffers are plain host memory and belong to the group from the start of an operation until its
// Work is done. Zero counts are allowed. After an error the group is unusable: every later
// operation fails at once with the first error. Thread-safe, but ranks must agree on the order:
// normally one thread starts operations. In a forked child every operation of a world of more than
// one fails with kFailedPrecondition.
#ifndef MUSTER_WORKER_SDK_COLLECTIVES_PROCESS_GROUP_H_
#define MUSTER_WORKER_SDK_COLLECTIVES_PROCESS_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "worker_sdk/collectives/work.h"
#include "worker_sdk/context/status.h"

namespace muster {

enum class DataType : uint8_t { kU8 = 1, kI32 = 2, kI64 = 3, kF32 = 4, kF64 = 5 };
// kAvg divides the sum by the world size, for floating point only.
enum class ReduceOp : uint8_t { kSum = 1, kProd = 2, kMin = 3, kMax = 4, kAvg = 5 };

size_t SizeOf(DataType type);
const char* DataTypeName(DataType type);  // "f32"
const char* ReduceOpName(ReduceOp op);    // "sum"

// `count` elements of `type` at `data`.
struct Buffer {
  void* data = nullptr;
  size_t count = 0;
  DataType type = DataType::kU8;
  size_t bytes() const { return count * SizeOf(type); }
};
struct ConstBuffer {
  const void* data = nullptr;
  size_t count = 0;
  DataType type = DataType::kU8;
  size_t bytes() const { return count * SizeOf(type); }
};

template <class T>
constexpr DataType DataTypeOf() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, float>) return DataType::kF32;
  if constexpr (std::is_same_v<U, double>) return DataType::kF64;
  if constexpr (std::is_same_v<U, int32_t>) return DataType::kI32;
  if constexpr (std::is_same_v<U, int64_t>) return DataType::kI64;
  static_assert(std::is_same_v<U, float> || std::is_same_v<U, double> ||
                    std::is_same_v<U, int32_t> || std::is_same_v<U, int64_t> ||
                    std::is_same_v<U, uint8_t>,
                "supported: float, double, int32_t, int64_t, uint8_t");
  return DataType::kU8;
}
// `MutableView(vector)` is that vector's elements as a Buffer.
template <class Range>
Buffer MutableView(Range& range) {
  return {std::data(range), std::size(range),
          DataTypeOf<std::remove_pointer_t<decltype(std::data(range))>>()};
}
template <class Range>
ConstBuffer View(const Range& range) {
  return {std::data(range), std::size(range),
          DataTypeOf<std::remove_pointer_t<decltype(std::data(range))>>()};
}

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // Every operation returns at once; its Work ends with OK, kInvalidArgument (this call can't be:
  // average of integers, root out of range, counts that don't fit, buffers that overlap where they
  // may not, a null pointer; only this rank is told, and the group goes on), kFailedPrecondition
  // (ranks disagree on the call), or kAborted (PeerLost). On an error the contents of output
  // buffers are undefined.

  // Done when all ranks have started it.
  virtual Work Barrier() = 0;
  // `data` of `root` replaces `data` of all.
  virtual Work Broadcast(Buffer data, int root) = 0;
  // Element-wise over ranks, in place; the same bits on every rank, in every run.
  virtual Work AllReduce(Buffer data, ReduceOp op) = 0;
  // Rank r's `input` becomes elements [r*count, (r+1)*count) of everybody's `output`, which has
  // world_size() * input.count elements and may not overlap `input` unless that slice is it.
  virtual Work AllGather(ConstBuffer input, Buffer output) = 0;
  // Reduces `input` (world_size() * output.count elements) and leaves slice r at rank r. `output`
  // may not overlap `input` unless it is that slice of it.
  virtual Work ReduceScatter(ConstBuffer input, Buffer output, ReduceOp op) = 0;
  // Point to point; matched in order between each pair of ranks. To oneself: kInvalidArgument.
  virtual Work Send(ConstBuffer data, int to) = 0;
  virtual Work Receive(Buffer data, int from) = 0;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COLLECTIVES_PROCESS_GROUP_H_
