#include "agent/process/line_filter.h"

#include <algorithm>
#include <utility>

namespace muster::agent {

LineFilter::LineFilter(std::string prefix, std::vector<std::string> texts)
    : prefix_(std::move(prefix)), texts_(std::move(texts)) {}

void LineFilter::Feed(std::string_view bytes, std::string* out) {
  while (!bytes.empty()) {
    size_t newline = bytes.find('\n');
    std::string_view piece = bytes.substr(0, newline);
    line_ += piece.substr(0, kMaxFilteredLine - std::min(kMaxFilteredLine, line_.size()));
    if (newline == std::string_view::npos) return;
    TakeLine(out);
    bytes.remove_prefix(newline + 1);
  }
}

void LineFilter::End(std::string* out) {
  if (!line_.empty()) TakeLine(out);
}

void LineFilter::TakeLine(std::string* out) {
  bool is_kept = std::ranges::any_of(
      texts_, [this](const std::string& text) { return line_.find(text) != std::string::npos; });
  if (is_kept) {
    *out += prefix_;
    *out += line_;
    out->push_back('\n');
  }
  line_.clear();
}

}  // namespace muster::agent
