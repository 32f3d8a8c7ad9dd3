#include "launcher/say.h"

#include <unistd.h>

#include <cerrno>

#include "launcher/text.h"

namespace muster::launcher {
namespace {

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

void Say(std::string_view sentence) {
  // Nobody is left to be told if stderr is gone.
  [[maybe_unused]] bool is_written = WriteAll(STDERR_FILENO, Cat("muster: ", sentence, "\n"));
}

bool Print(std::string_view text) { return WriteAll(STDOUT_FILENO, text); }

}  // namespace muster::launcher
