// Putting texts together and taking them apart, on std::string_view. (The system's Abseil has a
// string_view of its own, and its string functions don't take ours.) Pure.
#ifndef MUSTER_LAUNCHER_TEXT_H_
#define MUSTER_LAUNCHER_TEXT_H_

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

// All parts, one after the other; whole numbers in decimal.
template <class... Parts>
std::string Cat(const Parts&... parts) {
  std::string text;
  [[maybe_unused]] auto append = [&text](const auto& part) {
    if constexpr (std::integral<std::remove_cvref_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += std::string_view(part);
    }
  };
  (append(parts), ...);
  return text;
}

// At every `separator`; at least one part, empty ones included. The parts point into `text`.
std::vector<std::string_view> Split(std::string_view text, char separator);
// The parts would outlive a text that is only there for the call.
template <class Temporary>
requires std::same_as<Temporary, std::string> std::vector<std::string_view> Split(Temporary&& text,
                                                                                  char separator)
= delete;

// Without blanks at both ends.
std::string_view Strip(std::string_view text);

// In quotes, for a sentence of one line: of a long text the beginning, with its length behind, and
// control characters as \x0a.
std::string InQuotes(std::string_view text);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_TEXT_H_
