// A wall clock that a test sets, for one program: preloaded (LD_PRELOAD), it is off by as many
// seconds as the file in $WALL_CLOCK_OFFSET says, eight bytes in the machine's order, at any
// moment. The machine's own clock, and all other clocks, are left alone; so are waits until a wall
// time, which a jump therefore makes too long or too short, and that is what a test is to find.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

std::atomic<int64_t>* Offset() {
  static std::atomic<int64_t>* const offset = [] {
    static std::atomic<int64_t> none{0};
    const char* path = std::getenv("WALL_CLOCK_OFFSET");
    int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return &none;
    void* mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED ? &none : static_cast<std::atomic<int64_t>*>(mapped);
  }();
  return offset;
}

bool IsWall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (failed == 0 && IsWall(clock)) now->tv_sec += Offset()->load(std::memory_order_relaxed);
  return static_cast<int>(failed);
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
