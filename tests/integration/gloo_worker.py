"""A rank of PyTorch that knows nothing of muster: an all-reduce and a barrier over gloo."""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
dist.barrier()
print("rank %d of %d: sum %g" % (rank, world, total.item()))
dist.destroy_process_group()
right = rank == int(os.environ["RANK"]) and total.item() == world * (world + 1) / 2
sys.exit(0 if right else 1)
