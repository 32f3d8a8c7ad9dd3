// The values of flags from their text. Each returns InvalidArgument with one sentence that names
// the flag as `who`, the text, and what is allowed. Pure.
#ifndef MUSTER_LAUNCHER_FLAG_VALUE_H_
#define MUSTER_LAUNCHER_FLAG_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/instant.h"

namespace muster::launcher {

// `--nnodes: "abc" is not valid; allowed: ...`; of a long text the beginning.
absl::Status BadValue(std::string_view who, std::string_view text, std::string_view allowed);

struct WholeRange {
  int64_t min = 0;
  int64_t max = 0;
  // What the sentence says is allowed: "a whole number of at least 1".
  std::string_view allowed;
};

// A whole number above `max`, however many digits it has.
bool IsTooLarge(std::string_view text, int64_t max);
// `--nnodes: "2000000" is too large, the most is 1000000; allowed: ...`
absl::Status TooLarge(std::string_view who, std::string_view text, const WholeRange& range);

absl::StatusOr<int> WholeNumber(std::string_view who, std::string_view text,
                                const WholeRange& range);
absl::StatusOr<uint16_t> PortNumber(std::string_view who, std::string_view text);
// Seconds, with decimals, at least 0 and at most a year.
absl::StatusOr<Duration> Seconds(std::string_view who, std::string_view text);
// 1, 0, true, false, yes, no, and as torchrun any other whole number for true.
absl::StatusOr<bool> Truth(std::string_view who, std::string_view text);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_FLAG_VALUE_H_
