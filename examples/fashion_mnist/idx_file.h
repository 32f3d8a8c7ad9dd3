// Reads IDX files, the format of MNIST and Fashion-MNIST: unsigned bytes in up to four dimensions,
// compressed by gzip or not. A function; no state.
#ifndef MUSTER_EXAMPLES_FASHION_MNIST_IDX_FILE_H_
#define MUSTER_EXAMPLES_FASHION_MNIST_IDX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker_sdk/muster.h"

namespace fashion_mnist {

struct IdxFile {
  // For example {60000, 28, 28}.
  std::vector<uint32_t> sizes;
  // The product of `sizes`, the last dimension varies fastest.
  std::vector<uint8_t> bytes;
};

// kNotFound: no such file; kUnavailable: it can't be read; kDataLoss: it isn't a whole IDX file of
// bytes. All name `path` and the reason.
muster::Result<IdxFile> ReadIdxFile(const std::string& path);

}  // namespace fashion_mnist

#endif  // MUSTER_EXAMPLES_FASHION_MNIST_IDX_FILE_H_
