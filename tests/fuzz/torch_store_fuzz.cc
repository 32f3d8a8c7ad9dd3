// What two clients of PyTorch's store may send: any bytes, in pieces of any size, taking turns.
// Nothing may crash, and when both are gone nobody waits.
//   bazel run --config=fuzz //tests/fuzz:torch_store_fuzz -- -max_total_time=60
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/torch_store/store_protocol.h"
#include "agent/torch_store/store_table.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::agent::torch_store;  // NOLINT
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  StoreTable table({.max_total_bytes = 4096, .max_answer_bytes = 1024});
  RequestReader readers[2];
  std::vector<Answer> answers;
  for (size_t turn = 0; !bytes.empty(); ++turn) {
    // The first byte of a piece is its length.
    const auto piece = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    RequestReader& reader = readers[turn % 2];
    reader.Append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min<size_t>(piece, bytes.size()));
    while (std::optional<Request> request = reader.Next()) {
      table.Take(ConnectionId(1 + turn % 2), *std::move(request), answers);
      MUSTER_CHECK(table.total_bytes() <= 4096 + 64);
    }
  }
  table.Closed(ConnectionId(1), answers);
  table.Closed(ConnectionId(2), answers);
  MUSTER_CHECK(table.waiting() == 0);
  table.Clear();
  MUSTER_CHECK(table.total_bytes() == 0);
  return 0;
}
