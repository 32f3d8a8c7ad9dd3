#include "base/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace muster::base {

void FillRandom(void* bytes, size_t size) {
  auto* next = static_cast<unsigned char*>(bytes);
  while (size > 0) {
    ssize_t got = getrandom(next, size, 0);
    if (got < 0 && errno == EINTR) continue;
    MUSTER_CHECK(got > 0);
    next += got;
    size -= static_cast<size_t>(got);
  }
}

}  // namespace muster::base
