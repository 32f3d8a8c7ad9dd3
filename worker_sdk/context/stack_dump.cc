#include "worker_sdk/context/stack_dump.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define MUSTER_HAS_BACKTRACE 1
#else
#define MUSTER_HAS_BACKTRACE 0
#endif

namespace muster {
namespace {

constexpr int kMostFrames = 64;
constexpr size_t kPathBytes = 200;
constexpr size_t kLineBytes = 512;

struct Frame {
  // Of the file that the code came from.
  char path[kPathBytes];
  uintptr_t offset;
};

// Used by the main thread in the signal's function alone, which isn't interrupted by itself.
void* addresses[kMostFrames];
Frame frames[kMostFrames];
char chunk[4096];
char line[kLineBytes];
char base_path[kPathBytes];
uintptr_t base = 0;

class Writer {
 public:
  void Text(std::string_view text) {
    for (char c : text) {
      if (used_ == sizeof buffer_) Flush();
      buffer_[used_++] = c;
    }
  }
  void Number(uint64_t value, int radix) {
    char digits[24];
    auto end = std::to_chars(digits, digits + sizeof digits, value, radix).ptr;
    Text({digits, static_cast<size_t>(end - digits)});
  }
  void Flush() {
    for (size_t sent = 0; sent < used_;) {
      ssize_t put = write(STDERR_FILENO, buffer_ + sent, used_ - sent);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) break;
      sent += static_cast<size_t>(put);
    }
    used_ = 0;
  }

 private:
  char buffer_[512];
  size_t used_ = 0;
};

void CopyPath(std::string_view from, char* to) {
  size_t size = from.size() < kPathBytes ? from.size() : kPathBytes - 1;
  std::memcpy(to, from.data(), size);
  to[size] = '\0';
}

bool TakeHex(std::string_view& text, uintptr_t& value, char after) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  auto used = static_cast<size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != after) return false;
  text.remove_prefix(used + 1);
  return true;
}

// "start-end perms offset device inode   path" of /proc/self/maps.
void TakeMapping(std::string_view text, int count) {
  uintptr_t start = 0;
  uintptr_t end = 0;
  uintptr_t offset = 0;
  if (!TakeHex(text, start, '-') || !TakeHex(text, end, ' ') || text.size() < 5) return;
  text.remove_prefix(5);
  size_t slash = text.find('/');
  if (!TakeHex(text, offset, ' ') || slash == std::string_view::npos) return;
  std::string_view path = text.substr(text.find('/'));
  // A file's first mapping is where its addresses count from.
  if (offset == 0) {
    base = start;
    CopyPath(path, base_path);
  }
  bool is_based = std::string_view(base_path) == path.substr(0, kPathBytes - 1);
  for (int i = 0; i < count; ++i) {
    auto address = reinterpret_cast<uintptr_t>(addresses[i]);
    if (address < start || address >= end) continue;
    CopyPath(path, frames[i].path);
    frames[i].offset = is_based ? address - base : address - start + offset;
  }
}

void FindFiles(int count) {
  int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return;
  size_t used = 0;
  ssize_t got = 0;
  while ((got = read(maps, chunk, sizeof chunk)) > 0) {
    for (ssize_t i = 0; i < got; ++i) {
      if (chunk[i] == '\n') {
        TakeMapping({line, used}, count);
        used = 0;
      } else if (used < kLineBytes) {
        line[used++] = chunk[i];
      }
    }
  }
  close(maps);
}

int CollectAddresses() {
#if MUSTER_HAS_BACKTRACE
  return backtrace(addresses, kMostFrames);
#else
  return 0;
#endif
}

void ShowStack(int signal) {
  int saved_errno = errno;
  // The kernel may pick any thread; the main one is where the training loop usually is.
  if (syscall(SYS_gettid) != getpid()) {
    syscall(SYS_tgkill, getpid(), getpid(), signal);
    errno = saved_errno;
    return;
  }
  int count = CollectAddresses();
  for (int i = 0; i < count; ++i) frames[i].path[0] = '\0';
  base_path[0] = '\0';
  FindFiles(count);
  Writer out;
  out.Text("muster: stack of the main thread of process ");
  out.Number(static_cast<uint64_t>(getpid()), 10);
  out.Text(":\n");
  for (int i = 0; i < count; ++i) {
    out.Text("  #");
    out.Number(static_cast<uint64_t>(i), 10);
    out.Text(" 0x");
    out.Number(reinterpret_cast<uintptr_t>(addresses[i]), 16);
    if (frames[i].path[0] != '\0') {
      out.Text(" ");
      out.Text(frames[i].path);
      out.Text("+0x");
      out.Number(frames[i].offset, 16);
    }
    out.Text("\n");
  }
  out.Flush();
  errno = saved_errno;
}

}  // namespace

bool InstallStackDump(const char* signal) {
  if (signal == nullptr) return false;
  std::string_view text(signal);
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return false;
  struct sigaction current {};
  if (sigaction(number, nullptr, &current) != 0) return false;
  if ((current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == ShowStack) return true;
  if ((current.sa_flags & SA_SIGINFO) != 0 || current.sa_handler != SIG_DFL) return false;
  // The first call loads what it needs, which must not happen within the signal's function.
  (void)CollectAddresses();
  struct sigaction action {};
  action.sa_handler = ShowStack;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(number, &action, nullptr) == 0;
}

}  // namespace muster
