#!/usr/bin/python3
"""From a fault to the first line of every new worker: muster, torchrun, mpirun, a bare fork and exec.

A worker is killed; a whole node is killed; a whole node is stopped; a node is added; the rendezvous
is killed and started again; a worker of real training is killed (to its next step, split at its first
line). Nodes are launchers on this machine with workers of their own. The launchers take turns within
each run, so that a busy moment of the machine hits them alike.
"""
import argparse
import random
import shlex
import signal
import sys
import time

import clusters
import launchers
import results
import training

# Where nothing has happened by then, nothing is expected to.
PATIENCE = 60
# Every agent must know, and the workers have settled, before a fault is worth measuring.
SETTLE = 0.5


def bare(workers):
    """From the start of a bare fork and exec of this many workers to the last one's first line."""
    log = clusters.Log()
    began = clusters.now()
    log.run([launchers.ROOT + "/bazel-bin/tools/peers/floor", str(workers), clusters.WORKER])
    formed = log.wait_formed(workers, PATIENCE)
    log.close()
    return formed - began


def settle(variant):
    # torchrun looks at its workers at intervals: the fault falls anywhere in one.
    spread = clusters.VARIANTS[variant].get("monitor", 0.1)
    time.sleep(SETTLE + random.uniform(0, spread))


def after_fault(cluster, size, began):
    formed = cluster.wait_formed(size, PATIENCE, began)
    return formed - began if formed else None


def worker_killed(variant):
    """2 nodes of 4 workers; one worker is killed."""
    if variant == "mpirun":
        return mpirun_worker_killed(8)
    cluster = clusters.Cluster(variant, 2, 4)
    cluster.add_all(2)
    settle(variant)
    began = clusters.now()
    clusters.kill(cluster.workers_of(cluster.nodes[1])[0], signal.SIGKILL)
    took = after_fault(cluster, 8, began)
    cluster.close()
    return took


def mpirun_worker_killed(size):
    """mpirun ends a job that loses a process: somebody starts it again, here at once."""
    log = clusters.Log()
    words = shlex.split(launchers.LAUNCHERS["mpirun"].replace("{cmd}", "").format(n=size))
    first = log.run(words + [clusters.WORKER])
    log.must_form(size)
    time.sleep(SETTLE)
    began = clusters.now()
    clusters.kill(log.starts()[0].pid, signal.SIGKILL)
    first.wait(PATIENCE)
    log.run(words + [clusters.WORKER])
    formed = log.wait_formed(size, PATIENCE, began)
    log.close()
    return formed - began if formed else None


def node_struck(variant, number):
    """3 nodes of 2 workers; the third one, which isn't the rendezvous' host, gets a signal."""
    cluster = clusters.Cluster(variant, "1:3", 2, "--notices-peers")
    cluster.add()
    time.sleep(0.2)  # it becomes the host
    cluster.add()
    cluster.add()
    cluster.must_form(6)
    settle(variant)
    took = after_fault(cluster, 4, cluster.signal_node(cluster.nodes[2], number))
    cluster.close()
    return took


def node_killed(variant):
    return node_struck(variant, signal.SIGKILL)


def node_stopped(variant):
    return node_struck(variant, signal.SIGSTOP)


def node_added(variant):
    """Two nodes of 2 workers run; a third one comes."""
    cluster = clusters.Cluster(variant, "1:3", 2, "--notices-peers")
    cluster.add()
    time.sleep(0.2)
    cluster.add()
    cluster.must_form(4)
    settle(variant)
    began = clusters.now()
    cluster.add()
    took = after_fault(cluster, 6, began)
    cluster.close()
    return took


STORE = """
import sys, time
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", int(sys.argv[1]), is_master=True, wait_for_workers=False)
print("listens", flush=True)
time.sleep(600)
"""


def rendezvous_restarted(variant):
    """How many of 4 workers (2 nodes) have ended or been replaced 10 s after it was killed.

    Both launchers get a rendezvous process of their own: `muster rendezvous`, and the store that
    torchrun's c10d backend uses.
    """
    cluster = clusters.Cluster(variant, 2, 2, conf="" if variant == "muster" else ",is_host=0")
    if variant == "muster":
        words = [clusters.MUSTER, "rendezvous", "--listen=127.0.0.1:%d" % cluster.port]
    else:
        words = ["/usr/bin/python3", "-c", STORE, str(cluster.port)]

    def start():
        before = cluster.said().count("listens")
        process = cluster.run(words)
        if not clusters.wait_for(lambda: cluster.said().count("listens") > before, PATIENCE):
            raise SystemExit("bench: the rendezvous doesn't start:\n" + cluster.said())
        return process

    rendezvous = start()
    cluster.add_all(2)
    settle(variant)
    before = [s.pid for s in cluster.starts()]
    rendezvous.kill()
    rendezvous.wait()
    time.sleep(0.5)
    start()
    # An end before that is seen early; all must stay alive for the whole time.
    clusters.wait_for(lambda: not any(map(clusters.is_alive, before)), 10)
    touched = sum(not clusters.is_alive(pid) for pid in before)
    cluster.close()
    return touched


# name, what is printed, unit, what measures it, peers, what measures the limit, budget from the limit.
CASES = [
    ("worker", "worker SIGKILL -> 2 x 4 new workers", "s", worker_killed,
     ["mpirun", "torchrun", "torchrun_default"], lambda: bare(8), lambda limit: 2 * limit + 0.020),
    ("node", "node SIGKILL -> 2 x 2 of the smaller world", "s", node_killed,
     ["torchrun", "torchrun_default"], lambda: bare(4), lambda limit: 0.200),
    ("frozen", "node SIGSTOP (lease 3 s) -> 2 x 2 of the smaller world", "s", node_stopped,
     ["torchrun", "torchrun_default"], lambda: bare(4), lambda limit: 3.200),
    ("added", "new node -> 3 x 2 of the larger world", "s", node_added,
     ["torchrun", "torchrun_default"], lambda: bare(6), lambda limit: None),
    ("rendezvous", "rendezvous killed and restarted: workers touched of 4", "workers",
     rendezvous_restarted, ["torchrun"], None, lambda limit: 0),
    ("training", "worker SIGKILL -> next step of 1 x 2 training PyTorch", "s", training.worker_killed,
     ["by_hand", "torchrun", "torchrun_default"], None, lambda limit: None),
    ("preload", "the same with --preload", "s", training.worker_killed_warm, [], None, lambda limit: training.WANTED),
]
TORCH_CASES = {"training", "preload"}
# Case: (what is printed, budget) of what its measurements are split into. They are tuples: the whole, then its parts.
PARTS = {"training": training.PARTS, "preload": training.PARTS}


def measure(case, runs, few, here):
    """The rows of one case: its own, and one for each of its parts."""
    key, title, unit, fault, peers, limit, budget = case
    samples = {name: [] for name in ["muster"] + [p for p in peers if p in here]}
    notes = {}
    if limit:
        samples["limit"] = []
    for run in range(runs):
        for name in samples:
            if name == "limit":
                samples[name].append((limit(),))
                continue
            # Who hasn't noticed once within a minute needn't be asked again.
            slow = name == "torchrun_default" or (fault is rendezvous_restarted and name != "muster")
            if name in notes or (few and slow and run >= 1):
                continue
            took = fault(name)
            if took is None and name == "muster":
                sys.exit("bench: muster did nothing within %d s: %s" % (PATIENCE, title))
            if took is None:
                notes[name] = "not in %d s" % PATIENCE
            else:
                samples[name].append(took if isinstance(took, tuple) else (took,))
            print("# %s: %s %s" % (title, name, notes.get(name, took)), file=sys.stderr)
    rows = []
    for i, (text, most) in enumerate([(title, None), *PARTS.get(key, [])]):
        row = results.row(text, unit, {name: [took[i] for took in all_took] for name, all_took in samples.items()})
        row["budget"] = budget(row["limit"]) if i == 0 else most
        row["notes"] = notes
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true",
                        help="what torchrun takes long for once, not as often as the rest")
    parser.add_argument("--runs", type=int, default=5, help="how many runs (default 5)")
    parser.add_argument("--cases", default=",".join(case[0] for case in CASES),
                        help="comma list (default: all)")
    parser.add_argument("--without-peers", action="store_true", help="muster and the limit alone")
    args = parser.parse_args()
    here = set() if args.without_peers else {"by_hand"}
    for name in ("mpirun", "torchrun"):
        problem = "not asked for" if args.without_peers else launchers.is_here(name)
        if problem:
            print("# without %s: %s" % (name, problem), file=sys.stderr)
        else:
            here |= {name, name + "_default"}
    wanted = args.cases.split(",")
    unknown = set(wanted) - {case[0] for case in CASES}
    if unknown:
        parser.error("no case %s; there are: %s" %
                     (", ".join(sorted(unknown)), ", ".join(case[0] for case in CASES)))
    # They train with Debian's PyTorch, which torchrun comes with.
    problem = launchers.is_here("torchrun")
    if problem and TORCH_CASES & set(wanted):
        print("# without training: " + problem, file=sys.stderr)
        wanted = [name for name in wanted if name not in TORCH_CASES]
    results.show("restart", [row for case in CASES if case[0] in wanted
                             for row in measure(case, args.runs, args.quick, here)])


if __name__ == "__main__":
    main()
