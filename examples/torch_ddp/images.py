"""Fashion-MNIST as PyTorch tensors, out of the four gzip'd IDX files that Debian's dataset-fashion-mnist installs."""
import gzip
import math
import os
import sys

import torch

FOLDER = "/usr/share/datasets/fashion-mnist"


def read_idx(path, limit):
    """The bytes of one IDX file, in its shape; the first `limit` entries of it (0: all)."""
    with gzip.open(path) as file:
        dimensions = file.read(4)[3]
        sizes = [int.from_bytes(file.read(4), "big") for _ in range(dimensions)]
        sizes[0] = min(sizes[0], limit or sizes[0])
        data = file.read(math.prod(sizes))
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).reshape(sizes)


class Images:
    """One part ("train", "t10k"): a batch is made from bytes when it is asked for."""

    def __init__(self, folder, part, limit):
        try:
            self.pixels = read_idx(os.path.join(folder, part + "-images-idx3-ubyte.gz"), limit)
            self.labels = read_idx(os.path.join(folder, part + "-labels-idx1-ubyte.gz"), limit)
        except OSError as error:
            sys.exit("train.py: the data set can't be read (%s): install Debian's package dataset-fashion-mnist, or "
                     "name the folder of its four files with --data" % error)

    def __len__(self):
        return len(self.labels)

    def batch(self, indices, device):
        """(n x 1 x 28 x 28 in [-1, 1], n labels)."""
        pixels = self.pixels[indices].unsqueeze(1).to(device)
        return pixels.float().div_(127.5).sub_(1), self.labels[indices].to(device, torch.long)
