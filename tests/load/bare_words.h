// The messages of the bare gRPC program, each of the size that muster's has on the wire for the
// same purpose. Functions; thread-safe.
#ifndef MUSTER_TESTS_LOAD_BARE_WORDS_H_
#define MUSTER_TESTS_LOAD_BARE_WORDS_H_

#include <cstddef>

#include "tests/load/bare.pb.h"

namespace muster::load {

// Bytes of the serialized muster message that a word of this kind stands for.
size_t SizeOf(proto::Word::Kind kind);

// Fills it up to that size.
void FillUp(proto::Word* word);

}  // namespace muster::load

#endif  // MUSTER_TESTS_LOAD_BARE_WORDS_H_
