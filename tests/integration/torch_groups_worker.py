"""A rank of PyTorch that knows nothing of muster: groups of every kind and DDP over gloo."""
import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

# The store is there before anybody asks for it.
if os.environ.get("EXPECT_STORE"):
    socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))).close()

dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, world = dist.get_rank(), dist.get_world_size()
found = {}

total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
found["all_reduce"] = total.item() == world * (world + 1) / 2
dist.barrier()
dist.monitored_barrier(timeout=timedelta(seconds=60))

# Every rank makes every group, also those that it is no member of.
pairs = [sorted({i, (i + 1) % world}) for i in range(world)]
groups = [dist.new_group(pair) for pair in pairs]
found["new_group"] = True
for pair, group in zip(pairs, groups):
    if rank not in pair:
        continue
    mine = torch.tensor([10.0 ** rank])
    dist.all_reduce(mine, group=group)
    found["new_group"] &= mine.item() == sum(10.0 ** member for member in pair)

objects = [None] * world
dist.all_gather_object(objects, {"rank": rank, "text": "x" * (1000 * (rank + 1))})
found["all_gather_object"] = [len(o["text"]) for o in objects] == [1000 * (i + 1) for i in range(world)]
words = ["from rank 0"] if rank == 0 else [None]
dist.broadcast_object_list(words)
found["broadcast_object_list"] = words == ["from rank 0"]

torch.manual_seed(7)
net = torch.nn.Linear(4, 1)
alone = torch.nn.Linear(4, 1)
alone.load_state_dict(net.state_dict())
model = DistributedDataParallel(net)
inputs = [torch.arange(4.0).reshape(1, 4) + i for i in range(world)]
for _ in range(3):
    for one, batch in ((model, inputs[rank]), (alone, torch.cat(inputs))):
        one.zero_grad()
        one(batch).mean().backward()
    with torch.no_grad():
        for a, b in ((net.weight, alone.weight), (net.bias, alone.bias)):
            a -= 0.01 * a.grad
            b -= 0.01 * b.grad
found["ddp"] = torch.allclose(net.weight, alone.weight) and torch.allclose(net.bias, alone.bias)
dist.barrier()
dist.destroy_process_group()
wrong = [name for name, is_right in found.items() if not is_right]
print("rank %d of %d: %s" % (rank, world, "wrong: %s" % wrong if wrong else "all right"))
sys.exit(1 if wrong else 0)
