"""ResNet-18 for small grey images, and a tiny network of the same make for tests."""
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3 x 3 convolutions, and a way round them."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        self.around = nn.Sequential()
        if stride != 1 or before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + self.around(x))


class ResNet(nn.Module):
    """Stages of `blocks` blocks each; all but the first halve the picture."""

    def __init__(self, widths, blocks, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU())
        layers, before = [], widths[0]
        for stage, width in enumerate(widths):
            for i in range(blocks):
                layers.append(Block(before, width, 2 if stage > 0 and i == 0 else 1))
                before = width
        self.stages = nn.Sequential(*layers)
        self.last = nn.Linear(before, classes)

    def forward(self, x):
        return self.last(torch.flatten(functional.adaptive_avg_pool2d(self.stages(self.stem(x)), 1), 1))


MODELS = {
    "resnet18": lambda: ResNet((64, 128, 256, 512), 2),
    "tiny": lambda: ResNet((4, 8), 1),
}
