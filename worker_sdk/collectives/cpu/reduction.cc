#include "worker_sdk/collectives/cpu/reduction.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace muster::cpu {
namespace {

// Bytes that are reduced over all inputs before the next: the running result stays in the first
// cache level.
constexpr size_t kBlockBytes = 8192;

// Signed overflow is undefined in C++; unsigned arithmetic has the same bits and wraps.
template <class T>
auto Wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else {
    return value;
  }
}

template <class T>
bool IsNan(T value) {
  return value != value;  // NOLINT(misc-redundant-expression): true of a NaN, and of integers never
}

template <ReduceOp kOp, class T>
T Combine(T first, T next) {
  if constexpr (kOp == ReduceOp::kProd) {
    return static_cast<T>(Wrapping(first) * Wrapping(next));
  } else if constexpr (kOp == ReduceOp::kMin) {
    return (next < first) || IsNan(next) ? next : first;
  } else if constexpr (kOp == ReduceOp::kMax) {
    return (first < next) || IsNan(next) ? next : first;
  } else {
    return static_cast<T>(Wrapping(first) + Wrapping(next));
  }
}

// The loops load by memcpy, since a caller's pointer needs no alignment; the compiler makes vector
// loads of it.
template <class T>
T Load(const std::byte* from, size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}

template <ReduceOp kOp, class T>
void Reduce(std::span<const std::byte* const> inputs, std::byte* output, size_t count,
            int divisor) {
  constexpr size_t kBlock = kBlockBytes / sizeof(T);
  std::array<T, kBlock> block;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    size_t size = std::min(kBlock, count - begin);
    std::memcpy(block.data(), inputs[0] + begin * sizeof(T), size * sizeof(T));
    for (const std::byte* input : inputs.subspan(1)) {
      const std::byte* from = input + begin * sizeof(T);
      for (size_t i = 0; i < size; ++i) block[i] = Combine<kOp, T>(block[i], Load<T>(from, i));
    }
    if constexpr (kOp == ReduceOp::kAvg && std::is_floating_point_v<T>) {
      for (size_t i = 0; i < size; ++i) block[i] /= static_cast<T>(divisor);
    }
    std::memcpy(output + begin * sizeof(T), block.data(), size * sizeof(T));
  }
}

template <class T>
void ReduceTyped(const Reduction& reduction, std::span<const std::byte* const> inputs,
                 std::byte* output, size_t count) {
  switch (reduction.op) {
    case ReduceOp::kSum:
      return Reduce<ReduceOp::kSum, T>(inputs, output, count, 1);
    case ReduceOp::kProd:
      return Reduce<ReduceOp::kProd, T>(inputs, output, count, 1);
    case ReduceOp::kMin:
      return Reduce<ReduceOp::kMin, T>(inputs, output, count, 1);
    case ReduceOp::kMax:
      return Reduce<ReduceOp::kMax, T>(inputs, output, count, 1);
    case ReduceOp::kAvg:
      return Reduce<ReduceOp::kAvg, T>(inputs, output, count, reduction.divisor);
  }
}

}  // namespace

void ReduceInOrder(const Reduction& reduction, std::span<const std::byte* const> inputs,
                   std::byte* output, size_t count) {
  MUSTER_CHECK(!inputs.empty());
  if (count == 0) return;
  switch (reduction.type) {
    case DataType::kU8:
      return ReduceTyped<uint8_t>(reduction, inputs, output, count);
    case DataType::kI32:
      return ReduceTyped<int32_t>(reduction, inputs, output, count);
    case DataType::kI64:
      return ReduceTyped<int64_t>(reduction, inputs, output, count);
    case DataType::kF32:
      return ReduceTyped<float>(reduction, inputs, output, count);
    case DataType::kF64:
      return ReduceTyped<double>(reduction, inputs, output, count);
  }
}

}  // namespace muster::cpu
