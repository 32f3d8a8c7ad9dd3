// Finds the name that a mistyped word was probably meant to be. Pure; thread-safe.
#ifndef MUSTER_LAUNCHER_NEAREST_NAME_H_
#define MUSTER_LAUNCHER_NEAREST_NAME_H_

#include <span>
#include <string_view>

namespace muster::launcher {

// The one of `names` that `word` is the beginning of, or else the one with the fewest edits
// (insert, delete, replace, swap neighbours) between; empty only when `names` is.
std::string_view NearestName(std::string_view word, std::span<const std::string_view> names);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_NEAREST_NAME_H_
