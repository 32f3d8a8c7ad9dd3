#!/usr/bin/python3
"""Runs the table under this machine's torchrun, beside what was recorded of it.

  live.py                       compares; ends with 1 if an answer is another one than recorded
  live.py --record              writes torchrun_MAJOR_MINOR.json anew (with --only: those lines of it)
      --python=PROGRAM          the Python whose torchrun it is (default /usr/bin/python3)
      --only=REGEX              only cases whose names match
      --jobs=N                  so many at once (default 2)

Two torchruns on one machine share ports, so each job runs in a network of its own; where the system refuses
that, one runs at a time.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contenders
import facts
import recorded
import run_case
import table

CLONE_NEWNET = 0x40000000
LAUNCHER = None


def own_network():
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def can_unshare():
    return subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def answer(name):
    case = table.BY_NAME[name]
    return name, run_case.run_case(case, LAUNCHER, lambda raw: facts.facts_of(case, raw))


def answers(names, jobs):
    is_apart = can_unshare()
    with concurrent.futures.ProcessPoolExecutor(
            jobs if is_apart else 1, initializer=own_network if is_apart else None) as pool:
        for name, found in pool.map(answer, names):
            print(".", end="", file=sys.stderr, flush=True)
            # As it comes back from a file: keys are text, tuples are lists.
            yield name, json.loads(json.dumps(found))
    print(file=sys.stderr)


def main():
    global LAUNCHER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--python", default=contenders.PYTHON)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    try:
        LAUNCHER = contenders.Torchrun(args.python)
    except LookupError as error:
        sys.exit("live: %s" % error)
    print(LAUNCHER.about())
    path = recorded.path_of(LAUNCHER.version)
    if not args.record and not os.path.exists(path):
        sys.exit("live: nothing is recorded of torchrun %s: --record makes %s" % (
            LAUNCHER.text, os.path.basename(path)))
    names = [case.name for case in table.ALL if case.since <= LAUNCHER.version and re.search(args.only, case.name)]
    if not names:
        sys.exit("live: no case that torchrun %s knows matches --only=%s" % (LAUNCHER.text, args.only))
    found = dict(answers(names, args.jobs))
    if args.record:
        recorded.write(path, LAUNCHER, found, keep=bool(args.only))
        print("%d cases recorded in %s" % (len(found), os.path.basename(path)))
        return
    known = recorded.read(path)
    others = 0
    for name in names:
        for fact, value in found[name].items():
            if fact not in table.BY_NAME[name].unsteady and known.get(name, {}).get(fact) != value:
                others += 1
                print("%s: %s\n  recorded: %s\n  now:      %s" % (
                    name, fact, json.dumps(known.get(name, {}).get(fact)), json.dumps(value)))
    print("%d cases, %d facts are other ones than recorded" % (len(names), others))
    sys.exit(others > 0)


if __name__ == "__main__":
    main()
