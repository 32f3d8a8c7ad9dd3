#include "launcher/ssh/remote_record.h"

#include <algorithm>

#include "launcher/endpoint.h"
#include "launcher/text.h"

namespace muster::launcher {
namespace {

constexpr std::string_view kGreeting = "muster remote 1 ";
constexpr size_t kMaxRestBytes = 1 << 20;

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\\') {
      escaped += "\\\\";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Plain(std::string_view escaped) {
  std::string text;
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '\\' || i + 1 == escaped.size()) {
      text += escaped[i];
      continue;
    }
    ++i;
    text += escaped[i] == 'n' ? '\n' : escaped[i];
  }
  return text;
}

// How many bytes at the end of `text` may be the beginning of `mark`, or hold it.
size_t HeldBack(std::string_view text, std::string_view mark) {
  if (size_t at = text.find(mark); at != std::string_view::npos) return text.size() - at;
  for (size_t size = std::min(mark.size(), text.size()); size > 0; --size) {
    if (mark.starts_with(text.substr(text.size() - size))) return size;
  }
  return 0;
}

}  // namespace

std::string EncodeGreeting(const Greeting& greeting) {
  return Cat(kGreeting, greeting.version, " ", greeting.port, "\n");
}

std::optional<Greeting> ParseGreeting(std::string_view line) {
  if (!line.starts_with(kGreeting)) return std::nullopt;
  line.remove_prefix(kGreeting.size());
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const std::optional<uint16_t> port = ParsePort(line.substr(blank + 1));
  if (!port) return std::nullopt;
  return Greeting{.version = std::string(line.substr(0, blank)), .port = *port};
}

std::string EncodeRecord(std::string_view mark, const Record& record) {
  return Cat(mark, std::string(1, static_cast<char>(record.kind)), Escaped(record.text), "\n");
}

void RecordReader::Feed(std::string_view bytes, std::string& out, const OnRecord& on_record) {
  rest_ += bytes;
  // Records may stand within a line of output, which goes on behind them.
  size_t at = 0;
  while ((at = rest_.find(mark_, at)) != std::string::npos) {
    const size_t begin = at + mark_.size();
    const size_t end = rest_.find('\n', begin);
    if (end == std::string::npos) break;
    if (end > begin) {
      on_record({.kind = static_cast<RecordKind>(rest_[begin]),
                 .text = Plain(std::string_view(rest_).substr(begin + 1, end - begin - 1))});
    }
    rest_.erase(at, end + 1 - at);
  }
  size_t shown = rest_.size() - HeldBack(rest_, mark_);
  const size_t newline = shown == 0 ? std::string::npos : rest_.rfind('\n', shown - 1);
  const size_t whole = newline == std::string::npos ? 0 : newline + 1;
  if (whole_lines_ && shown - whole < kMaxRestBytes) shown = whole;
  out += std::string_view(rest_).substr(0, shown);
  rest_.erase(0, shown);
}

void RecordReader::End(std::string& out) {
  // The connection was lost within a record.
  if (size_t at = rest_.find(mark_); at != std::string::npos) rest_.erase(at);
  out += rest_;
  // The next to write begins a line of its own.
  if (whole_lines_ && !rest_.empty()) out += '\n';
  rest_.clear();
}

}  // namespace muster::launcher
