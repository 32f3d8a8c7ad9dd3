"""A rank that asks PyTorch's store with the standard library alone: who is there, and is anything else?"""
import os
import socket
import struct
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def text(words):
    return struct.pack("<Q", len(words)) + words.encode()


store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 60)
# As PyTorch 1.13 does: set, wait for all keys, count them.
store.sendall(b"\0" + text("rank %d" % rank) + text(os.environ["TORCHELASTIC_RESTART_COUNT"]))
store.sendall(b"\5" + struct.pack("<Q", world) + b"".join(text("rank %d" % i) for i in range(world)))
assert store.recv(1) == b"\0"
store.sendall(b"\6")
keys = struct.unpack("<q", store.recv(8, socket.MSG_WAITALL))[0]
print("attempt %s: rank %d of %d found %d keys at %s" % (
    os.environ["TORCHELASTIC_RESTART_COUNT"], rank, world, keys, os.environ["MASTER_ADDR"]), flush=True)
while not os.path.exists("finish"):
    time.sleep(0.02)
