#include "launcher/text.h"

#include "base/visible_text.h"

namespace muster::launcher {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view Strip(std::string_view text) {
  constexpr char kBlanks[] = " \t\r\n";
  size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string InQuotes(std::string_view text) {
  // A path or an address is shown whole.
  constexpr size_t kMostShown = 200;
  size_t end = text.size();
  if (end > kMostShown) {
    end = kMostShown / 2;
    // Not within a character of UTF-8, which has at most three further bytes.
    for (int i = 0; i < 3 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; ++i) --end;
  }
  const std::string shown = VisibleText(text.substr(0, end));
  if (end == text.size()) return Cat("\"", shown, "\"");
  return Cat("\"", shown, "...\" (", text.size(), " bytes)");
}

}  // namespace muster::launcher
