// A worker that says when it runs its first line, and then waits to be told to stop. It starts in
// about a millisecond, so that the figures are the launcher's. SIGTERM ends it at once.
//
//   event_worker [--notices-peers]
//
// Appends one line to the file $EVENT_LOG: "<ns on CLOCK_MONOTONIC> <pid> <parent> <rank> <world>
// <world's name>\n". With --notices-peers it exits 1 as soon as a worker of the same world is dead,
// as one in a collective would.
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kReadPauseMs = 5;

std::string FirstOf(std::initializer_list<const char*> names, const char* otherwise) {
  for (const char* name : names) {
    if (const char* value = getenv(name)) return value;
  }
  return otherwise;
}

// The pids of a world's workers, as far as they have said that they run.
std::set<int> Members(const std::string& log, const std::string& world) {
  std::set<int> pids;
  std::ifstream file(log);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    long long time = 0;
    int pid = 0, parent = 0, rank = 0, size = 0;
    std::string name;
    if (words >> time >> pid >> parent >> rank >> size >> name && name == world) pids.insert(pid);
  }
  return pids;
}

// Returns once one of the world is dead.
void WaitForADeadPeer(const std::string& log, const std::string& world, size_t size) {
  std::set<int> pids;
  while (pids.size() < size) {
    pids = Members(log, world);
    poll(nullptr, 0, kReadPauseMs);
  }
  std::vector<pollfd> peers;
  for (int pid : pids) {
    int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return;
    peers.push_back({fd, POLLIN, 0});
  }
  poll(peers.data(), peers.size(), -1);
}

}  // namespace

int main(int argc, char** argv) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const char* log = getenv("EVENT_LOG");
  if (log == nullptr) return 98;
  std::string rank = FirstOf({"RANK", "OMPI_COMM_WORLD_RANK"}, "0");
  std::string size = FirstOf({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}, "1");
  // Every round has a port of its own; a job that keeps it counts its attempts.
  std::string world = FirstOf({"MASTER_PORT"}, "-") + "/" +
                      FirstOf({"TORCHELASTIC_RESTART_COUNT"}, "0") + "/" + size;
  char line[256];
  int length = snprintf(line, sizeof(line), "%lld %d %d %s %s %s\n",
                        now.tv_sec * 1'000'000'000LL + now.tv_nsec, getpid(), getppid(),
                        rank.c_str(), size.c_str(), world.c_str());
  int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (write(fd, line, static_cast<size_t>(length)) != length) return 97;
  if (argc > 1 && strcmp(argv[1], "--notices-peers") == 0) {
    WaitForADeadPeer(log, world, strtoul(size.c_str(), nullptr, 10));
    return 1;
  }
  while (true) pause();
}
