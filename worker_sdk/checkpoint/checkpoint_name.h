// The name of a checkpoint's directory: `step-<n>.r<round>-<world id>`, `….tmp` while it is being
// written. Only names that print back exactly are ours; everything else in the directory is
// foreign and left alone. A value.
#ifndef MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_NAME_H_
#define MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace muster {

struct CheckpointName {
  int64_t step = 0;
  RoundId round;
  WorldId world_id;

  std::string ToString() const;
  // None for every other text.
  static std::optional<CheckpointName> Parse(std::string_view text);
  // The name within `<name>.tmp`; none for every other text.
  static std::optional<CheckpointName> ParseTemporary(std::string_view text);

  friend bool operator==(const CheckpointName&, const CheckpointName&) = default;
};

inline constexpr char kTemporarySuffix[] = ".tmp";
inline constexpr char kManifestFile[] = "manifest.json";

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_CHECKPOINT_CHECKPOINT_NAME_H_
