// Unguessable bytes for ids and keys, from the kernel. Used by shells only: cores are given ids.
#ifndef MUSTER_BASE_ENTROPY_H_
#define MUSTER_BASE_ENTROPY_H_

#include <cstddef>

namespace muster::base {

// Fills `size` bytes from getrandom(2). Ends the process if the kernel has none (never seen).
void FillRandom(void* bytes, size_t size);

// A random id of any RandomId type: `FreshId<Incarnation>()`.
template <class Id>
Id FreshId() {
  Id id;
  FillRandom(id.bytes.data(), id.bytes.size());
  return id;
}

}  // namespace muster::base

#endif  // MUSTER_BASE_ENTROPY_H_
