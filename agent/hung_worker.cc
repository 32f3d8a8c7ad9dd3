#include "agent/hung_worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <vector>

#include "agent/core/process_status.h"
#include "agent/guardian/process_tree.h"

namespace muster::agent {
namespace {

// A loader of data has dozens of processes, a training program hundreds of threads.
constexpr size_t kMostProcesses = 16;
constexpr size_t kMostThreads = 128;
constexpr size_t kMostBytesOfAFile = 8192;

std::string ReadSome(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text(kMostBytesOfAFile, '\0');
  ssize_t got = 0;
  do {
    got = read(fd, text.data(), text.size());
  } while (got < 0 && errno == EINTR);
  close(fd);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::vector<int> ThreadsOf(const std::string& process) {
  std::vector<int> threads;
  std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir((process + "/task").c_str()), closedir);
  if (tasks == nullptr) return threads;
  while (const dirent* entry = readdir(tasks.get())) {
    int thread = std::atoi(entry->d_name);
    if (thread > 0) threads.push_back(thread);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

// "thread 12 (python3): waits in the kernel at pipe_read (S)", its system call and kernel stack.
std::string ThreadText(const std::string& folder, int thread) {
  ProcessStatus status = ParseProcessStatus(ReadSome(folder + "/status"));
  std::string text = "  thread " + std::to_string(thread) + " (" + status.name +
                     "): " + StateText(status.state, ReadSome(folder + "/wchan")) + "\n";
  std::string call = ReadSome(folder + "/syscall");
  if (!call.empty()) text += "    system call: " + call + "\n";
  std::string stack = ReadSome(folder + "/stack");
  for (size_t at = 0; at < stack.size();) {
    size_t end = std::min(stack.find('\n', at), stack.size());
    text += "    " + stack.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace

HungLook LookAtHungProcesses(int64_t pid, int signal) {
  HungLook look;
  std::vector<Process> processes = ProcessesOfSession(static_cast<pid_t>(pid));
  size_t threads_shown = 0;
  std::vector<Process> catchers;
  for (size_t i = 0; i < processes.size() && i < kMostProcesses; ++i) {
    const Process& process = processes[i];
    std::string folder = "/proc/" + std::to_string(process.pid);
    ProcessStatus status = ParseProcessStatus(ReadSome(folder + "/status"));
    std::string state = StateText(status.state, ReadSome(folder + "/wchan"));
    if (process.pid == pid) look.state = state;
    // Who is stopped would act on it only when it goes on.
    if (status.Catches(signal) && !status.IsStopped()) catchers.push_back(process);
    look.stacks +=
        "process " + std::to_string(process.pid) + " (" + status.name + "): " + state + "\n";
    for (int thread : ThreadsOf(folder)) {
      if (++threads_shown > kMostThreads) break;
      look.stacks += ThreadText(folder + "/task/" + std::to_string(thread), thread);
    }
  }
  if (processes.size() > kMostProcesses) {
    look.stacks += "and " + std::to_string(processes.size() - kMostProcesses) +
                   " more processes of this worker\n";
  }
  if (threads_shown > kMostThreads) look.stacks += "more threads aren't shown\n";
  for (const Process& process : catchers) {
    look.was_signalled = SignalProcess(process, signal) || look.was_signalled;
  }
  if (look.was_signalled) poll(nullptr, 0, kStackPatienceMs);
  return look;
}

}  // namespace muster::agent
