#include "agent/console_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::agent {

int ConsoleColumns() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  bool is_told = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_told ? size.ws_col : 80;
}

}  // namespace muster::agent
