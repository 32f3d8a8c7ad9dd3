#!/usr/bin/python3
"""Storms, one seed after the other. Run by tools/storm.sh."""
import argparse
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import storm


class OneSeed(storm.Case):
    seed = 0
    faults = 0

    def runTest(self):
        self.storm(self.seed, self.faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds (default 20)")
    parser.add_argument("--faults", type=int, default=200, help="faults of each (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default 1)")
    args = parser.parse_args()
    failed = []
    for seed in range(args.seed, args.seed + args.seeds):
        OneSeed.seed, OneSeed.faults = seed, args.faults
        result = unittest.TextTestRunner(stream=open(os.devnull, "w")).run(OneSeed())
        for _, said in result.failures + result.errors:
            failed.append(seed)
            print("storm: seed %d:\n%s" % (seed, said), flush=True)
    print("storm: %d of %d seeds ended well%s" % (
        args.seeds - len(set(failed)), args.seeds,
        "" if not failed else "; again: tools/storm.sh --seeds 1 --faults %d --seed %d" % (
            args.faults, failed[0])))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
