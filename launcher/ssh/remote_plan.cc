#include "launcher/ssh/remote_plan.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr std::string_view kHeader = "muster plan 1 ";
constexpr std::string_view kSignal = "signal ";
constexpr size_t kSizeDigits = 16;
static_assert(kPlanHeaderBytes == kHeader.size() + kSizeDigits + 1);

std::optional<size_t> Number(std::string_view digits) {
  size_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

// "e11:NAME=value\n": what it is, how long, the bytes.
void AddField(char kind, std::string_view bytes, std::string& out) {
  out += Cat(std::string(1, kind), bytes.size(), ":", bytes, "\n");
}

// Of one field; takes it off `rest`.
std::optional<std::pair<char, std::string>> TakeField(std::string_view& rest) {
  const size_t colon = rest.substr(0, 20).find(':');
  if (rest.empty() || colon == std::string_view::npos) return std::nullopt;
  const std::optional<size_t> size = Number(rest.substr(1, colon - 1));
  const char kind = rest.front();
  rest.remove_prefix(colon + 1);
  if (!size || *size >= rest.size() || rest[*size] != '\n') return std::nullopt;
  std::pair<char, std::string> field(kind, rest.substr(0, *size));
  rest.remove_prefix(*size + 1);
  return field;
}

}  // namespace

std::string EncodeRemotePlan(const RemotePlan& plan) {
  std::string bytes;
  AddField('h', plan.host, bytes);
  AddField('m', plan.mark, bytes);
  AddField('f', plan.folder, bytes);
  for (const std::string& entry : plan.environment) AddField('e', entry, bytes);
  for (const std::string& word : plan.words) AddField('w', word, bytes);
  std::string size = std::to_string(bytes.size());
  return Cat(kHeader, std::string(kSizeDigits - size.size(), '0'), size, "\n", bytes);
}

absl::StatusOr<size_t> PlanSize(std::string_view header) {
  std::optional<size_t> size;
  if (header.size() == kPlanHeaderBytes && header.starts_with(kHeader) && header.back() == '\n') {
    size = Number(header.substr(kHeader.size(), kSizeDigits));
  }
  if (size && *size <= kMaxPlanBytes) return *size;
  return absl::InvalidArgumentError(
      "`muster remote` is what `muster run --hosts` starts on other hosts, and reads its plan from "
      "there; it isn't for use by hand");
}

absl::StatusOr<RemotePlan> DecodeRemotePlan(std::string_view bytes) {
  RemotePlan plan;
  while (!bytes.empty()) {
    auto field = TakeField(bytes);
    if (!field) return absl::InvalidArgumentError("the plan from `muster run --hosts` is garbled");
    switch (field->first) {
      case 'h':
        plan.host = field->second;
        break;
      case 'm':
        plan.mark = field->second;
        break;
      case 'f':
        plan.folder = field->second;
        break;
      case 'e':
        plan.environment.push_back(field->second);
        break;
      case 'w':
        plan.words.push_back(field->second);
        break;
      default:
        // Of a newer version; the versions are compared before the job begins.
        break;
    }
  }
  return plan;
}

std::string EncodeSignal(int number) { return Cat(kSignal, number, "\n"); }

std::optional<int> TakeSignal(std::string& received) {
  while (true) {
    const size_t end = received.find('\n');
    if (end == std::string::npos) return std::nullopt;
    const std::string line = received.substr(0, end);
    received.erase(0, end + 1);
    if (!line.starts_with(kSignal)) continue;
    const std::optional<size_t> number = Number(std::string_view(line).substr(kSignal.size()));
    if (number && *number > 0 && *number < 65) return static_cast<int>(*number);
  }
}

}  // namespace muster::launcher
