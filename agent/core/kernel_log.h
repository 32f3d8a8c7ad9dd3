// What the kernel's log says of processes that it killed for want of memory. Pure: one record of
// /dev/kmsg goes in.
#ifndef MUSTER_AGENT_CORE_KERNEL_LOG_H_
#define MUSTER_AGENT_CORE_KERNEL_LOG_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::agent {

struct OomKill {
  // As the first pid namespace counts.
  int64_t pid = 0;
  // A cgroup had reached its limit; false: the whole machine had no memory left.
  bool is_of_cgroup = false;
  friend bool operator==(const OomKill&, const OomKill&) = default;
};

// "3,3119,1241512136,-;Memory cgroup out of memory: Killed process 22747 (python3) ...". Nothing
// for any other record, and for what a program wrote into the log.
std::optional<OomKill> ParseOomKill(std::string_view record);

}  // namespace muster::agent

#endif  // MUSTER_AGENT_CORE_KERNEL_LOG_H_
