#!/usr/bin/python3
"""One rendezvous under 100 to 10,000 nodes: muster beside a bare gRPC program of the same shape.

Each node is the real agent's machine and the real client over a TCP connection of its own; its workers
are played and answer at once. All nodes and the server share this machine. Both programs take turns
within each run, so that a busy moment hits them alike. The lease is 30 s, except in the row of the
heartbeats: with thousands of nodes on one machine the nodes' own heartbeats would be measured.
"""
import argparse
import os
import sys
import time

import results

sys.path.insert(0, os.path.join(results.ROOT, "tests", "load"))
from crowd_trial import Trial, TrialError  # noqa: E402

BIN = os.path.join(results.ROOT, "bazel-bin")
BINARIES = {"muster": os.path.join(BIN, "launcher", "muster"),
            "crowd": os.path.join(BIN, "tests", "load", "crowd"),
            "bare_rendezvous": os.path.join(BIN, "tests", "load", "bare_rendezvous")}
LOSSES = 3
LEASE = 30
DEFAULT_LEASE = 3
# Between losses; not a whole second, at which timers of gRPC's own hold messages up.
SETTLE = 1.3
# Of DESIGN's budgets; other sizes are shown without one.
BUDGETED = (1000, 10000)
# More nodes than this can't keep a lease of 3 s beside their rendezvous on one small machine.
MOST_AT_DEFAULT_LEASE = 3000

CASES = (("form", "nothing to all informed", "s"), ("join", "last join to all informed", "s"),
         ("lose", "loss to all informed again", "s"),
         ("stop", "first stop to all informed again", "s"),
         ("memory", "server's peak memory", "MB"),
         ("cpu form", "server's CPU to form", "s"),
         ("cpu lose", "server's CPU to form again", "s"),
         ("bytes form", "bytes a node to form", "B"),
         ("bytes lose", "bytes a node to form again", "B"))
WITH_BUDGET = ("form", "join", "lose", "stop", "memory")


def measure(kind, nodes):
    """One run of one program: {case: [samples]}."""
    out = {case: [] for case, _, _ in CASES}
    with Trial(kind, nodes, LOSSES, BINARIES, lease=LEASE) as trial:
        cpu = trial.cpu_seconds()
        out["form"].append(trial.form())
        out["cpu form"].append(trial.cpu_seconds() - cpu)
        sent = trial.bytes()
        out["bytes form"].append(sent / nodes)
        for _ in range(LOSSES):
            time.sleep(SETTLE)
            cpu = trial.cpu_seconds()
            total, from_first_stop = trial.lose()
            out["lose"].append(total)
            out["stop"].append(from_first_stop)
            out["cpu lose"].append(trial.cpu_seconds() - cpu)
        out["bytes lose"].append((trial.bytes() - sent) / LOSSES / nodes)
        out["memory"].append(trial.peak_memory() / 1e6)
        report(trial)
    with Trial(kind, nodes, LOSSES, BINARIES, lease=LEASE) as trial:
        out["join"].append(trial.join_last())
        report(trial)
    return out


def report(trial):
    if trial.disturbed:
        print("# %s, %d nodes: %d were disturbed: %s" % (
            trial.kind, trial.nodes, len(trial.disturbed), trial.disturbed[0]), file=sys.stderr)


def heartbeats(nodes, seconds=5.0):
    """The server's CPU seconds in one second of heartbeats at the default lease."""
    with Trial("muster", nodes, LOSSES, BINARIES, lease=DEFAULT_LEASE) as trial:
        trial.form()
        time.sleep(SETTLE)
        cpu, began = trial.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        return (trial.cpu_seconds() - cpu) / (time.monotonic() - began)


def rows_of(nodes, runs):
    samples = {case: {"muster": [], "limit": []} for case, _, _ in CASES}
    for _ in range(runs):
        for kind, column in (("bare", "limit"), ("muster", "muster")):
            for case, values in measure(kind, nodes).items():
                samples[case][column] += values
    rows = []
    for case, words, unit in CASES:
        row = results.row("%d nodes: %s" % (nodes, words), unit, samples[case])
        if nodes in BUDGETED and case in WITH_BUDGET:
            row["budget"] = 2 * row["limit"]
        rows.append(row)
    if nodes <= MOST_AT_DEFAULT_LEASE:
        beats = [heartbeats(nodes) for _ in range(runs)]
        rows.append(results.row("%d nodes: server's CPU a second, heartbeats" % nodes, "s",
                                {"muster": beats}))
    return rows


def growth(rows):
    """From the smaller to the larger budgeted size: at most 15 times."""
    small, large = BUDGETED
    found = {row["case"]: row for row in rows}
    out = []
    for case, words, _ in CASES:
        a, b = (found.get("%d nodes: %s" % (n, words)) for n in (small, large))
        if not a or not b or case not in WITH_BUDGET:
            continue
        row = results.row("%d to %d nodes: %s" % (small, large, words), "x",
                          {"muster": [b["muster"] / a["muster"]],
                           "limit": [b["limit"] / a["limit"]]}, budget=15)
        out.append(row)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100, 300 and 1,000 nodes, one run")
    parser.add_argument("--runs", type=int, help="how many runs (3)")
    parser.add_argument("--nodes", help="comma list of node counts")
    args = parser.parse_args()
    runs = args.runs or (1 if args.quick else 3)
    sizes = args.nodes or ("100,300,1000" if args.quick else "100,300,1000,3000,10000")
    rows = []
    try:
        for nodes in [int(x) for x in sizes.split(",")]:
            rows += rows_of(nodes, runs)
    except TrialError as error:
        sys.exit("scale: %s" % error)
    results.show("scale", rows + growth(rows))


if __name__ == "__main__":
    main()
