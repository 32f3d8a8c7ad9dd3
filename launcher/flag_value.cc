#include "launcher/flag_value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "launcher/endpoint.h"
#include "launcher/text.h"

namespace muster::launcher {

absl::Status BadValue(std::string_view who, std::string_view text, std::string_view allowed) {
  return absl::InvalidArgumentError(
      Cat(who, ": ", InQuotes(text), " is not valid; allowed: ", allowed));
}

bool IsTooLarge(std::string_view text, int64_t max) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  bool is_positive = !text.empty() && text.front() != '-';
  return is_positive && stop == end &&
         (error == std::errc::result_out_of_range || (error == std::errc() && value > max));
}

absl::Status TooLarge(std::string_view who, std::string_view text, const WholeRange& range) {
  return absl::InvalidArgumentError(Cat(who, ": ", InQuotes(text), " is too large, the most is ",
                                        range.max, "; allowed: ", range.allowed));
}

absl::StatusOr<int> WholeNumber(std::string_view who, std::string_view text,
                                const WholeRange& range) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (IsTooLarge(text, range.max)) return TooLarge(who, text, range);
  if (error != std::errc() || stop != end || value < range.min) {
    return BadValue(who, text, range.allowed);
  }
  return static_cast<int>(value);
}

absl::StatusOr<uint16_t> PortNumber(std::string_view who, std::string_view text) {
  std::optional<uint16_t> port = ParsePort(text);
  if (!port.has_value() || *port == 0) return BadValue(who, text, "a port, 1 to 65535");
  return *port;
}

absl::StatusOr<Duration> Seconds(std::string_view who, std::string_view text) {
  constexpr double kYear = 365.0 * 24 * 3600;
  double seconds = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, seconds);
  constexpr char kAllowed[] = "seconds, 0 or more, such as 30 or 0.5";
  if (error != std::errc() || stop != end || !std::isfinite(seconds) || seconds < 0) {
    return BadValue(who, text, kAllowed);
  }
  if (seconds > kYear) {
    return TooLarge(who, text, {0, static_cast<int64_t>(kYear), kAllowed});
  }
  return Duration(static_cast<int64_t>(seconds * 1e9));
}

absl::StatusOr<bool> Truth(std::string_view who, std::string_view text) {
  const std::string word = absl::AsciiStrToLower(std::string(text));
  if (word == "1" || word == "true" || word == "t" || word == "yes" || word == "y") return true;
  if (word == "0" || word == "false" || word == "f" || word == "no" || word == "n") return false;
  bool is_number = !text.empty() &&
                   std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (is_number) return text.find_first_not_of('0') != std::string_view::npos;
  return BadValue(who, text, "1 or 0");
}

}  // namespace muster::launcher
