#include "agent/guardian/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/env.h"

namespace muster::agent {
namespace {

// More than any environment that exec accepts (3/4 of _STK_LIM).
constexpr size_t kMaxEnvironmentBytes = 8 << 20;

// At most `limit` bytes of a file in /proc; empty if it can't be read.
std::string ReadProcFile(pid_t pid, const char* name, size_t limit) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char chunk[4096];
  while (text.size() < limit) {
    ssize_t got = read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

std::vector<Process> AllProcesses() {
  std::vector<Process> all;
  std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    auto process = ReadProcess(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
    if (process) all.push_back(*process);
  }
  return all;
}

bool HasWorkerId(const std::string& environment, std::string_view prefix) {
  std::string wanted = std::string(env::kWorkerId) + "=" + std::string(prefix);
  for (size_t at = environment.find(wanted); at != std::string::npos;
       at = environment.find(wanted, at + 1)) {
    if (at == 0 || environment[at - 1] == '\0') return true;
  }
  return false;
}

}  // namespace

std::optional<Process> ReadProcess(pid_t pid) {
  std::string stat = ReadProcFile(pid, "stat", 4096);
  // The name, in parentheses, may hold anything, parentheses too.
  size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  Process process{.pid = pid};
  int fields = std::sscanf(stat.c_str() + name_end + 1,
                           " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                           "%*d %" SCNu64,
                           &process.state, &process.parent, &process.session, &process.start_time);
  if (fields != 4) return std::nullopt;
  return process;
}

std::vector<Process> DescendantsOf(pid_t root) {
  std::unordered_multimap<pid_t, Process> children;
  for (const Process& process : AllProcesses()) children.emplace(process.parent, process);
  std::vector<Process> found;
  std::vector<pid_t> parents{root};
  while (!parents.empty()) {
    pid_t parent = parents.back();
    parents.pop_back();
    auto [first, last] = children.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      parents.push_back(it->second.pid);
      if (it->second.state != 'Z' && it->second.state != 'X') found.push_back(it->second);
    }
    // Also ends on a ring, which a snapshot taken while pids are reused could show.
    children.erase(parent);
  }
  return found;
}

std::vector<Process> ProcessesOfWorkers(std::string_view prefix) {
  std::vector<Process> found;
  pid_t self = getpid();
  for (const Process& process : AllProcesses()) {
    if (process.pid == self || process.state == 'Z' || process.state == 'X') continue;
    if (HasWorkerId(ReadProcFile(process.pid, "environ", kMaxEnvironmentBytes), prefix)) {
      found.push_back(process);
    }
  }
  return found;
}

std::vector<Process> ProcessesOfSession(pid_t leader) {
  std::vector<Process> found;
  for (const Process& process : AllProcesses()) {
    if (process.session != leader || process.state == 'Z' || process.state == 'X') continue;
    found.insert(process.pid == leader ? found.begin() : found.end(), process);
  }
  return found;
}

bool SignalProcess(const Process& process, int signal) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (fd < 0 && errno == ESRCH) return false;
  auto now = ReadProcess(process.pid);
  bool is_same = now && now->start_time == process.start_time;
  bool was_sent = false;
  if (is_same && fd >= 0) {
    was_sent = syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) == 0;
  } else if (is_same) {
    // No pidfd here (an old kernel, a filter): the gap between check and kill is some microseconds.
    was_sent = kill(process.pid, signal) == 0;
  }
  if (fd >= 0) close(fd);
  return was_sent;
}

}  // namespace muster::agent
