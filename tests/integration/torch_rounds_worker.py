"""A rank that looks for keys of an earlier round in the store, leaves some, and fails in the first rounds."""
import os
import signal
import sys
import time
from datetime import timedelta

import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world, False,
                      timedelta(seconds=60), wait_for_workers=False)


def leave_a_late_word(*_):
    """Told to stop: one more key, as late as can be."""
    dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world, False,
                  timedelta(seconds=5), wait_for_workers=False).set("late of attempt %d" % attempt, "")
    os._exit(0)


# Each rank's key and the two counts of ranks: nothing else may be there.
store.set("rank %d" % rank, str(attempt))
store.add("looked", 0)
store.add("arrived", 1)
store.wait(["rank %d" % i for i in range(world)])
while int(store.get("arrived")) < world:
    time.sleep(0.01)
keys, values = store.num_keys(), [int(store.get("rank %d" % i)) for i in range(world)]
is_right = keys == world + 2 and values == [attempt] * world
print("attempt %d rank %d of %d at port %s: %s" % (
    attempt, rank, world, os.environ["MASTER_PORT"],
    "alone" if is_right else "%d keys, values %s" % (keys, values)), flush=True)
if not is_right:
    sys.exit(3)
store.add("looked", 1)
while int(store.get("looked")) < world:
    time.sleep(0.01)
if attempt < 2:
    signal.signal(signal.SIGTERM, leave_a_late_word)
    store.set("ready %d" % rank, "")
    if rank == attempt:
        store.wait(["ready %d" % i for i in range(world)])
        sys.exit(1)
    time.sleep(600)
