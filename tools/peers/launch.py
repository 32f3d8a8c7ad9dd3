#!/usr/bin/python3
"""Launch and exit of 1, 2, 4 and 8 trivial workers: muster, a bare fork and exec, torchrun, mpirun.

All launchers take turns within each run, so that a busy moment of the machine hits them alike.
"""
import argparse
import sys

import launchers
import results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 runs in place of 7")
    parser.add_argument("--runs", type=int, help="how many runs")
    parser.add_argument("--workers", default="1,2,4,8", help="comma list of worker counts")
    args = parser.parse_args()
    runs = args.runs or (3 if args.quick else 7)

    names = ["floor", "muster", "mpirun", "torchrun"]
    for name in list(names):
        problem = launchers.is_here(name)
        if problem:
            print("# without %s: %s" % (name, problem), file=sys.stderr)
            names.remove(name)
    rows = []
    for n in [int(x) for x in args.workers.split(",")]:
        samples = {name: [] for name in names}
        for name in names:
            launchers.seconds(name, n, ["/bin/true"])  # once unmeasured: caches
        for _ in range(runs):
            for name in names:
                samples[name].append(launchers.seconds(name, n, ["/bin/true"]))
        samples["limit"] = samples.pop("floor")
        middle = results.row("", "s", samples)["limit"]
        rows.append(results.row("%d workers, true" % n, "s", samples, budget=2 * middle + 0.010))
    results.show("launch", rows)


if __name__ == "__main__":
    main()
