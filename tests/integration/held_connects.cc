// Lets a test say when a program's connections begin: preloaded (LD_PRELOAD), each connect() over
// IP waits until the file in $HELD_CONNECTS is there, for 30 s at most. Others are left alone.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  const char* gate = std::getenv("HELD_CONNECTS");
  const bool is_ip = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  if (gate != nullptr && is_ip) {
    const timespec kPause{0, 10'000'000};
    for (int i = 0; i < 3000 && access(gate, F_OK) != 0; ++i) nanosleep(&kPause, nullptr);
  }
  return static_cast<int>(syscall(SYS_connect, fd, address, size));
}
