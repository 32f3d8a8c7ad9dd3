#!/usr/bin/python3
"""Prints where muster's answers differ from what was recorded of torchrun, rules and reasons applied.

  compare.py --muster=BINARY [--only=REGEX] [--gaps]     --gaps: also what gaps.py lists
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contenders
import differences
import facts
import gaps
import recorded
import run_case
import table

ABSENT = "(none)"


def plain(value):
    """As it comes back from a file: keys are text, tuples are lists."""
    return json.loads(json.dumps(value))


def answer_of_muster(case, binary):
    """(facts, exit codes, what is left, what was said) of the case under muster."""
    def use(raw):
        said = b"\n".join(raw.out + raw.err).decode(errors="replace")
        return plain(facts.facts_of(case, raw)), raw.codes, raw.what_is_left(), said[-6000:]
    return run_case.run_case(case, contenders.Muster(binary), use)


def without_variables(facts, names):
    environment = {worker: {k: v for k, v in variables.items() if k not in names}
                   for worker, variables in facts.get("environment", {}).items()}
    return {**facts, "environment": environment} if "environment" in facts else facts


def differing(case, ours, theirs, version, used=None, but=gaps.VARIABLES):
    """{fact: (what muster has to answer, what it answers)}; of the environment all `but` these variables."""
    wanted = without_variables(plain(differences.expected(case, theirs, version, used)), but)
    ours = without_variables(ours, but)
    return {fact: (wanted[fact], ours.get(fact)) for fact in wanted if wanted[fact] != ours.get(fact)}


def where(wanted, found, path=""):
    """Only the leaves that differ, a line each."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            yield from where(wanted.get(key, ABSENT), found.get(key, ABSENT), "%s/%s" % (path, key))
    elif wanted != found:
        yield "    %s\n      expected %s\n      found    %s" % (path or "/", json.dumps(wanted), json.dumps(found))


def is_right_code(case, codes):
    """The job's own code on every node, where it fails; nodes that weren't concerned end with 0."""
    return all(c in (0, case.code) for c in codes) and case.code in codes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--gaps", action="store_true")
    args = parser.parse_args()
    answers = {version: recorded.read(recorded.path_of(version)) for version in recorded.versions()}
    count = 0
    for case in table.ALL:
        if not re.search(args.only, case.name):
            continue
        ours, codes, left, _ = answer_of_muster(case, args.muster)
        if left:
            print("%s: left behind: %s" % (case.name, left))
        if not is_right_code(case, codes):
            print("%s: exit codes %s, expected %d" % (case.name, codes, case.code))
        for version, cases in answers.items():
            if case.name not in cases:
                continue
            for fact, (wanted, found) in differing(
                    case, ours, cases[case.name], version, but=() if args.gaps else gaps.VARIABLES).items():
                if fact in gaps.GAPS.get(case.name, {}) and not args.gaps:
                    continue
                count += 1
                print("%s, %d.%d: %s" % (case.name, *version, fact))
                print("\n".join(where(wanted, found))[:2500])
    print("%d differences" % count)


if __name__ == "__main__":
    main()
