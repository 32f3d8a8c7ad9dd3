#include "examples/fashion_mnist/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace fashion_mnist {
namespace {

using muster::Status;
using muster::StatusCode;

// Far more than any such data set has; a damaged size must not take all memory.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr size_t kMaxDimensions = 4;
constexpr uint8_t kUnsignedBytes = 8;

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

// Reads exactly `size` bytes; false at the end of the file or where it is damaged.
bool ReadExactly(gzFile_s* file, uint8_t* to, uint64_t size) {
  while (size > 0) {
    const auto piece = static_cast<unsigned>(std::min<uint64_t>(size, 1 << 20));
    const int got = gzread(file, to, piece);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

}  // namespace

muster::Result<IdxFile> ReadIdxFile(const std::string& path) {
  const GzipFile file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    char reason[128];
    const int error = errno;
    return Status(error == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable,
                  path + ": " + strerror_r(error, reason, sizeof reason));
  }
  const Status damaged(StatusCode::kDataLoss, path + " is not a whole IDX file of bytes");
  std::array<uint8_t, 4> magic{};
  if (!ReadExactly(file.get(), magic.data(), magic.size())) return damaged;
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedBytes || magic[3] == 0 ||
      magic[3] > kMaxDimensions) {
    return damaged;
  }
  IdxFile idx;
  uint64_t total = 1;
  for (int i = 0; i < magic[3]; ++i) {
    std::array<uint8_t, 4> size{};
    if (!ReadExactly(file.get(), size.data(), size.size())) return damaged;
    idx.sizes.push_back(static_cast<uint32_t>(size[0]) << 24 |
                        static_cast<uint32_t>(size[1]) << 16 | static_cast<uint32_t>(size[2]) << 8 |
                        size[3]);
    total *= idx.sizes.back();
    if (total > kMaxBytes) return damaged;
  }
  idx.bytes.resize(total);
  if (!ReadExactly(file.get(), idx.bytes.data(), total)) return damaged;
  // One more byte, or a checksum that doesn't hold, which zlib finds at the end.
  uint8_t extra = 0;
  if (gzread(file.get(), &extra, 1) != 0) return damaged;
  return idx;
}

}  // namespace fashion_mnist
