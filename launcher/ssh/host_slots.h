// The hosts that agents are started on over ssh, and how many workers each gets: what mpirun's
// users write after --host and into host files. Pure: texts are arguments.
#ifndef MUSTER_LAUNCHER_SSH_HOST_SLOTS_H_
#define MUSTER_LAUNCHER_SSH_HOST_SLOTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

struct HostSlots {
  // As ssh takes it: "gpu01", "alice@gpu01", an address in digits (IPv6 without brackets).
  std::string name{};
  // Workers there; 0: nothing was said.
  int slots = 0;

  // Without a user's name, as other nodes call it.
  std::string host() const;
  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

// "a,b:4,gpu[01-16]:8,[fe80::1]:2": names in their order. One that comes again adds up, as with
// mpirun, and counts as one worker where it has no number. InvalidArgument: a sentence with `who`
// and the text.
absl::StatusOr<std::vector<HostSlots>> ParseHosts(std::string_view who, std::string_view text);

struct HostFile {
  std::vector<HostSlots> hosts{};
  // The first thing in it that mpirun knows and that has no effect here, as "FILE:3: max_slots=8";
  // empty: none.
  std::string idle{};
};

// Lines "NAME", "NAME slots=N" (Open MPI, also with blanks around the equals sign) and "NAME:N"
// (MPICH), comments behind '#'. What mpirun knows besides (max_slots=N, user=NAME) is taken too;
// the first has no effect. An IPv6 address may stand without brackets here, since its last group is
// never a number of workers then. InvalidArgument: a sentence with the file's name, the line's
// number and the word.
absl::StatusOr<HostFile> ParseHostFile(std::string_view path, std::string_view text);

// mpirun's -np: so many workers in all, filling the hosts in their order. A host of which nothing
// was said takes `slots_unsaid`. Hosts that get none are left out. InvalidArgument: there are fewer
// places.
absl::StatusOr<std::vector<HostSlots>> FillHosts(const std::vector<HostSlots>& hosts, int workers,
                                                 int slots_unsaid);

}  // namespace muster::launcher

#endif  // MUSTER_LAUNCHER_SSH_HOST_SLOTS_H_
