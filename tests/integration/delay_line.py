#!/usr/bin/python3
"""A long cable: frames that come out of one tap device go into another one some time later.

    delay_line.py NEAR FAR SECONDS

makes both devices in the network namespace that it runs in and says "ready". It forwards both ways,
in order, until it is killed; the devices go with it. For kernels without netem.
"""
import collections
import fcntl
import os
import selectors
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
# More than the largest Ethernet frame: the devices take no segmentation off the kernel.
LARGEST_FRAME = 65536
# What a long cable holds at most, each way; a real one also loses what is too much.
MOST_FRAMES = 20000


def open_tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def deliver(device, frame):
    try:
        os.write(device, frame)
    except OSError:
        # The device is down, or full: frames get lost in such places.
        pass


def forward(near, far, delay):
    other = {near: far, far: near}
    under_way = collections.deque()  # (due, device, frame): one delay for all, so in order
    selector = selectors.DefaultSelector()
    for device in other:
        selector.register(device, selectors.EVENT_READ)
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for key, _ in selector.select(wait):
            try:
                frame = os.read(key.fd, LARGEST_FRAME)
            except OSError:
                continue
            if len(under_way) < MOST_FRAMES:
                under_way.append((time.monotonic() + delay, other[key.fd], frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, device, frame = under_way.popleft()
            deliver(device, frame)


def main():
    near, far, delay = sys.argv[1:]
    devices = open_tap(near), open_tap(far)
    print("ready", flush=True)
    forward(*devices, float(delay))


if __name__ == "__main__":
    main()
