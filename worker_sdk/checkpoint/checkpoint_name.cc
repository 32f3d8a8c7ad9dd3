#include "worker_sdk/checkpoint/checkpoint_name.h"

#include <charconv>

namespace muster {
namespace {

// Takes a decimal number from the front of `text`. Signs and leading zeros are refused later, by
// printing the name back.
template <class Number>
bool TakeNumber(std::string_view& text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool TakeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

std::string CheckpointName::ToString() const {
  return "step-" + std::to_string(step) + ".r" + std::to_string(round.value) + "-" +
         world_id.ToHex();
}

std::optional<CheckpointName> CheckpointName::Parse(std::string_view text) {
  CheckpointName name;
  std::string_view rest = text;
  if (!TakeText(rest, "step-") || !TakeNumber(rest, &name.step) || !TakeText(rest, ".r") ||
      !TakeNumber(rest, &name.round.value) || !TakeText(rest, "-")) {
    return std::nullopt;
  }
  name.world_id = WorldId::FromHex(rest);
  if (name.step < 0 || name.ToString() != text) return std::nullopt;
  return name;
}

std::optional<CheckpointName> CheckpointName::ParseTemporary(std::string_view text) {
  if (!text.ends_with(kTemporarySuffix)) return std::nullopt;
  text.remove_suffix(std::string_view(kTemporarySuffix).size());
  return Parse(text);
}

}  // namespace muster
