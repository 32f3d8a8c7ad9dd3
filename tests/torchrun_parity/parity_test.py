#!/usr/bin/python3
"""The parity table: every case under muster, beside what was recorded of torchrun 1.13 and of the newest one.

A case fails where muster answers otherwise and neither a rule (differences.py) nor the case itself says so with a
reason, or where they say so and it isn't so any more.
"""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("TEST_SRCDIR") and os.path.join(
    os.environ["TEST_SRCDIR"], os.environ.get("TEST_WORKSPACE", "muster")) or os.getcwd()
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration")]
import compare
import contenders
import differences
import gaps
import process_kit
import recorded
import table

ANSWERS = {version: recorded.read(recorded.path_of(version)) for version in recorded.versions()}
HAS_TORCH = subprocess.run([contenders.PYTHON, "-c", "import torch.distributed"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False).returncode == 0


class CaseTest(unittest.TestCase):
    """What is asked of each case; the classes below have a method for each."""
    maxDiff = None
    preload = ""

    def check(self, case):
        if case.needs_torch and not HAS_TORCH:
            self.skipTest("%s has no torch.distributed" % contenders.PYTHON)
        ours, codes, left, said = compare.answer_of_muster(case, process_kit.MUSTER, self.preload)
        known = gaps.GAPS.get(case.name, {})
        answered = 0
        for version, cases in ANSWERS.items():
            theirs = cases.get(case.name)
            if theirs is None:
                self.assertGreater(case.since, version, "record it: live.py --record --only=^%s$" % case.name)
                continue
            answered += 1
            found = {fact: pair for fact, pair in compare.differing(case, ours, theirs, version).items()
                     if fact not in known}
            for fact, (wanted, answer) in found.items():
                self.fail("torchrun %d.%d, %s:\n%s\nmuster said:\n%s" % (
                    *version, fact, "\n".join(compare.where(wanted, answer)), said))
        self.assertGreater(answered, 0, "no torchrun that was recorded knows this")
        self.assertEqual(left, [], said)
        if not {"exit", "ranks"} & set(known):
            self.assertTrue(compare.is_right_code(case, codes), "%s, expected %d:\n%s" % (codes, case.code, said))


def add_cases(area, suits=lambda case: True):
    """Gives the class a test for each case of its area."""
    def decorate(cls):
        for case in filter(suits, table.AREAS[area]):
            def run(self, case=case):
                self.check(case)
            run.__name__ = "test_" + case.name
            setattr(cls, run.__name__, run)
        return cls
    return decorate


@add_cases("Arguments")
class Arguments(CaseTest):
    pass


@add_cases("Environment")
class Environment(CaseTest):
    pass


@add_cases("Ends")
class Ends(CaseTest):
    pass


@add_cases("Output")
class Output(CaseTest):
    pass


@add_cases("Newer")
class Newer(CaseTest):
    pass


# Of --preload: programs that aren't Python's are refused.
def can_be_preloaded(case):
    return "--no-python" not in case.options and ("PET_NO_PYTHON", "1") not in case.environment


@add_cases("Arguments", can_be_preloaded)
class PreloadedArguments(CaseTest):
    preload = "json"


@add_cases("Environment", can_be_preloaded)
class PreloadedEnvironment(CaseTest):
    preload = "json"


@add_cases("Ends", can_be_preloaded)
class PreloadedEnds(CaseTest):
    preload = "json"


@add_cases("Output", can_be_preloaded)
class PreloadedOutput(CaseTest):
    preload = "json"


class Lists(unittest.TestCase):
    """Nothing in the lists of differences may be there for nothing."""

    def test_the_table_is_large_and_recorded(self):
        self.assertGreaterEqual(len(table.ALL), 80)
        for version, cases in ANSWERS.items():
            missing = [c.name for c in table.ALL if c.since <= version and c.name not in cases]
            self.assertEqual(missing, [], "of torchrun %d.%d: run live.py --record" % version)
            self.assertEqual([name for name in cases if name not in table.BY_NAME], [])

    def test_each_rule_is_needed(self):
        used = {}
        for version, cases in ANSWERS.items():
            for name, theirs in cases.items():
                differences.expected(table.BY_NAME[name], theirs, version, used)
        self.assertEqual([rule.name for rule in differences.RULES if rule.name not in used], [])

    def test_each_difference_of_a_case_is_one(self):
        for case in table.ALL:
            for other in (o for o in case.others if o.fact not in case.unsteady):
                with self.subTest(case=case.name, fact=other.fact):
                    answers = [cases[case.name].get(other.fact) for cases in ANSWERS.values() if case.name in cases]
                    self.assertTrue(any(answer != compare.plain(other.ours) for answer in answers),
                                    "torchrun answers that too: take it out of the case")
                    self.assertTrue(other.why)

    def test_gaps_name_cases(self):
        for name, facts in gaps.GAPS.items():
            self.assertIn(name, table.BY_NAME)
            self.assertTrue(all(facts.values()), name)


class Gaps(unittest.TestCase):
    """What muster has learnt leaves the list of gaps."""

    def test_each_gap_is_still_there(self):
        closed = []
        for name, known in gaps.GAPS.items():
            case = table.BY_NAME[name]
            ours, _, _, _ = compare.answer_of_muster(case, process_kit.MUSTER)
            open_facts = {fact for version, cases in ANSWERS.items() if name in cases
                          for fact in compare.differing(case, ours, cases[name], version)}
            closed += ["%s: %s" % (name, fact) for fact in known if fact not in open_facts]
        self.assertEqual(closed, [], "closed: take these lines out of gaps.py")

    def test_each_variable_still_differs(self):
        still = set()
        for name in ("two_static_nodes", "standalone"):
            case = table.BY_NAME[name]
            ours, _, _, _ = compare.answer_of_muster(case, process_kit.MUSTER)
            for cases in ANSWERS.values():
                theirs = cases[name]["environment"]["all"]
                still |= {v for v in gaps.VARIABLES if theirs.get(v) is not None
                          and theirs[v] != ours["environment"]["all"].get(v)}
        self.assertEqual(sorted(set(gaps.VARIABLES) - still), [], "closed: take these lines out of gaps.py")


if __name__ == "__main__":
    process_kit.main()
