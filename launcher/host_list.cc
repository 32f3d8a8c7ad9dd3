#include "launcher/host_list.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr size_t kMaxHosts = 100'000;
// A number in a range: leading zeros included.
constexpr size_t kMaxDigits = 18;

std::optional<int64_t> Number(std::string_view digits) {
  int64_t value = 0;
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool is_whole = error == std::errc() && end == digits.data() + digits.size() && value >= 0;
  return is_whole ? std::optional(value) : std::nullopt;
}

std::string Padded(int64_t number, size_t width) {
  std::string text = std::to_string(number);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// What "01-03,7" stands for; nothing if it isn't of that form, or too much.
std::optional<std::vector<std::string>> ExpandRanges(std::string_view ranges) {
  std::vector<std::string> numbers;
  for (std::string_view range : Split(ranges, ',')) {
    std::vector<std::string_view> ends = Split(range, '-');
    std::optional<int64_t> first = Number(ends.front());
    std::optional<int64_t> last = Number(ends.back());
    if (ends.size() > 2 || !first || !last || *last < *first) return std::nullopt;
    if (static_cast<uint64_t>(*last - *first) >= kMaxHosts - numbers.size()) return std::nullopt;
    for (int64_t n = *first; n <= *last; ++n) numbers.push_back(Padded(n, ends.front().size()));
  }
  return numbers;
}

// Of one name with brackets.
std::optional<std::vector<std::string>> ExpandName(std::string_view name) {
  std::vector<std::string> expanded = {""};
  while (!name.empty()) {
    size_t open = name.find('[');
    std::string_view plain = name.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return std::nullopt;
    for (std::string& text : expanded) text += plain;
    if (open == std::string_view::npos) break;
    size_t close = name.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;
    auto numbers = ExpandRanges(name.substr(open + 1, close - open - 1));
    if (!numbers || numbers->size() * expanded.size() > kMaxHosts) return std::nullopt;
    std::vector<std::string> longer;
    longer.reserve(numbers->size() * expanded.size());
    for (const std::string& text : expanded) {
      for (const std::string& number : *numbers) longer.push_back(text + number);
    }
    expanded = std::move(longer);
    name.remove_prefix(close + 1);
  }
  if (expanded.front().empty()) return std::nullopt;
  return expanded;
}

// At commas outside of brackets.
std::vector<std::string_view> Names(std::string_view list) {
  std::vector<std::string_view> names;
  size_t begin = 0;
  bool is_inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') is_inside = true;
    if (list[i] == ']') is_inside = false;
    if (list[i] != ',' || is_inside) continue;
    names.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  names.push_back(list.substr(begin));
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostList(std::string_view list) {
  std::vector<std::string> hosts;
  for (std::string_view name : Names(list)) {
    auto expanded = ExpandName(name);
    if (!expanded || hosts.size() + expanded->size() > kMaxHosts) {
      return absl::InvalidArgumentError(
          Cat(InQuotes(list), " is no list of hosts such as gpu[01-16],login"));
    }
    hosts.insert(hosts.end(), expanded->begin(), expanded->end());
  }
  return hosts;
}

}  // namespace muster::launcher
