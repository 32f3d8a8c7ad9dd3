// Text that came from elsewhere (names, ids and reasons of other nodes), made fit to be shown: a
// terminal would obey control characters in it. A pure function; thread-safe.
#ifndef MUSTER_BASE_VISIBLE_TEXT_H_
#define MUSTER_BASE_VISIBLE_TEXT_H_

#include <string>
#include <string_view>

namespace muster {

// Control characters as \x1b: those of ASCII, and those above it, as UTF-8 (U+0080 to U+009F) or as
// a single byte that belongs to no character. Those in `kept` stay.
std::string VisibleText(std::string_view text, std::string_view kept = {});

}  // namespace muster

#endif  // MUSTER_BASE_VISIBLE_TEXT_H_
