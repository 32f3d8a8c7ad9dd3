// Slurm's way to write many host names: "gpu[01-03,7],login". Pure.
#ifndef MUSTER_LAUNCHER_HOST_LIST_H_
#define MUSTER_LAUNCHER_HOST_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// The names in their order. A name may hold several brackets ("rack[1-2]n[1-8]"), the last varying
// fastest; numbers keep their leading zeros. InvalidArgument, naming the list: brackets that don't
// match, a range that isn't one, an empty name, or more than 100,000 names.
absl::StatusOr<std::vector<std::string>> ExpandHostList(std::string_view list);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_HOST_LIST_H_
