// CHECK(condition): a broken invariant of our own ends the process, in release too. Never for what
// the outside can cause (bad input, dead peers, lost messages): those are ordinary events.
#ifndef MUSTER_BASE_CHECK_H_
#define MUSTER_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define MUSTER_CHECK(condition)                                                           \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      std::fprintf(stderr, "muster: broken invariant at %s:%d: %s\n", __FILE__, __LINE__, \
                   #condition);                                                           \
      std::abort();                                                                       \
    }                                                                                     \
  } while (0)

#endif  // MUSTER_BASE_CHECK_H_
