"""A rank with many clients of the store, each of which meets all others there."""
import os
import sys
from datetime import timedelta

import torch.distributed as dist

CLIENTS = int(sys.argv[1])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
clients = [dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), None, False,
                         timedelta(seconds=120), wait_for_workers=False) for _ in range(CLIENTS)]
for i, store in enumerate(clients):
    store.set("%d/%d" % (rank, i), "%d by %d" % (rank, i))
seen = 0
for i, store in enumerate(clients):
    other = (rank + 1) % world
    seen += store.get("%d/%d" % (other, i)) == b"%d by %d" % (other, i)
arrived = [store.add("arrived", 1) for store in clients][-1]
print("rank %d: %d clients saw the others, %d have come so far" % (rank, seen, arrived))
clients[0].set("rank %d is done" % rank, "")
clients[0].wait(["rank %d is done" % i for i in range(world)])
right = seen == CLIENTS and int(clients[0].get("arrived")) == CLIENTS * world
sys.exit(0 if right else 1)
