"""What a storm does to a job: a list of faults, and nothing but the seed decides it."""
import collections
import random

# `pause`: seconds after the fault before. `slot`: the node's place; `worker`: a local rank. `length`:
# seconds until a stopped process continues, a partition heals, a rendezvous starts again. `back`:
# seconds until a node that is gone is replaced.
Fault = collections.namedtuple("Fault", "pause kind slot worker length back")

# How often each kind comes.
WEIGHTS = {
    "kill worker": 5,
    "kill starting worker": 3,
    "kill agent": 4,
    "kill guardian": 2,
    "kill node": 3,
    "stop worker": 2,
    "stop agent": 4,
    "stop guardian": 1,
    "stop node": 2,
    "stop rendezvous": 2,
    "restart rendezvous": 3,
}
PARTITION_WEIGHTS = {
    "cut off node": 3,
    "cut node from rendezvous": 2,
    "deafen node": 1,
    "mute node": 1,
    "split in halves": 1,
}


def pause(chance):
    """A fault hits what the one before has begun, a world that has just formed, or a calm one."""
    kind = chance.random()
    if kind < 0.25:
        return chance.uniform(0, 0.03)
    if kind < 0.75:
        return chance.uniform(0.03, 0.5)
    return chance.uniform(0.5, 1.2)


def make(seed, count, slots, workers, with_partitions):
    chance = random.Random("storm %d" % seed)
    weights = dict(WEIGHTS)
    if with_partitions:
        weights.update(PARTITION_WEIGHTS)
    faults = []
    for _ in range(count):
        kind = chance.choices(list(weights), list(weights.values()))[0]
        # Drawn for every kind: a new kind leaves the rest of the plan as it is.
        faults.append(Fault(pause=round(pause(chance), 3), kind=kind,
                            slot=chance.randrange(slots), worker=chance.randrange(workers),
                            length=round(chance.choice([chance.uniform(0.02, 0.25),
                                                        chance.uniform(0.25, 1.2)]), 3),
                            back=round(chance.choice([0.0, chance.uniform(0, 0.8)]), 3)))
    return faults


def text(fault):
    return "%-24s slot %d worker %d, pause %.3f, length %.3f, back %.3f" % (
        fault.kind, fault.slot, fault.worker, fault.pause, fault.length, fault.back)
