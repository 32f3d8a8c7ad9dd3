#include "base/visible_text.h"

namespace muster {
namespace {

// How many bytes follow this one in a character of UTF-8.
int FollowersOf(unsigned char first) {
  if (first >= 0xF0) return 3;
  if (first >= 0xE0) return 2;
  return first >= 0xC2 ? 1 : 0;
}

bool IsFollower(unsigned char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

std::string VisibleText(std::string_view text, std::string_view kept) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string shown;
  int followers = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_ascii_control =
        (byte < 0x20 || byte == 0x7f) && kept.find(text[i]) == std::string_view::npos;
    const bool is_stray = IsFollower(byte) && followers == 0 && byte < 0xA0;
    const bool begins_control = byte == 0xC2 && i + 1 < text.size() && IsFollower(text[i + 1]) &&
                                static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_ascii_control || is_stray || begins_control) {
      shown += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
      followers = 0;
      continue;
    }
    followers = IsFollower(byte) ? followers - (followers > 0) : FollowersOf(byte);
    shown += text[i];
  }
  return shown;
}

}  // namespace muster
