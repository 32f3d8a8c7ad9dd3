"""Fashion-MNIST as PyTorch tensors, out of the four gzip'd IDX files that Debian's dataset-fashion-mnist installs."""
import gzip
import os
import sys

import torch

FOLDER = "/usr/share/datasets/fashion-mnist"


def read_idx(path):
    """The bytes of one IDX file, in its shape."""
    with gzip.open(path) as file:
        data = file.read()
    dimensions = data[3]
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(dimensions)]
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).reshape(sizes)


class Images:
    """One part ("train", "t10k"): a batch is made from bytes when it is asked for."""

    def __init__(self, folder, part, limit):
        try:
            pixels = read_idx(os.path.join(folder, part + "-images-idx3-ubyte.gz"))
            labels = read_idx(os.path.join(folder, part + "-labels-idx1-ubyte.gz"))
        except OSError as error:
            sys.exit("train.py: the data set can't be read (%s): install Debian's package dataset-fashion-mnist, or "
                     "name the folder of its four files with --data" % error)
        self.pixels, self.labels = pixels[:limit or None], labels[:limit or None]

    def __len__(self):
        return len(self.labels)

    def batch(self, indices, device):
        """(n x 1 x 28 x 28 in [-1, 1], n labels)."""
        pixels = self.pixels[indices].unsqueeze(1).to(device)
        return pixels.float().div_(127.5).sub_(1), self.labels[indices].to(device, torch.long)
