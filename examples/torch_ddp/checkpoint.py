"""A checkpoint that is there whole or not at all, whenever the program is killed."""
import os

import torch
import torch.distributed as dist

NAME = "checkpoint.pt"


def save(folder, state):
    """To be called by one rank: written aside, onto the disk, and only then given its name."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, NAME)
    with open(path + ".part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(folder):
    """What rank 0 finds, for all ranks: they can't disagree, and only its node needs the folder. None: nothing."""
    found = [None]
    if dist.get_rank() == 0:
        path = os.path.join(folder, NAME)
        if os.path.exists(path):
            found = [torch.load(path, map_location="cpu")]
    dist.broadcast_object_list(found, src=0)
    return found[0]
