#!/usr/bin/python3
"""One storm of 40 faults, and what storms are made of. More of them: tools/storm.sh."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_plan
import storm  # makes the next one known
import process_kit


class Plans(unittest.TestCase):
    def test_the_seed_alone_decides(self):
        one = fault_plan.make(7, 200, 4, 2, True)
        self.assertEqual(one, fault_plan.make(7, 200, 4, 2, True))
        self.assertNotEqual(one, fault_plan.make(8, 200, 4, 2, True))

    def test_more_faults_are_the_same_ones_and_more(self):
        self.assertEqual(fault_plan.make(7, 200, 4, 2, True)[:40],
                         fault_plan.make(7, 40, 4, 2, True))

    def test_every_kind_comes_and_partitions_only_where_they_can(self):
        kinds = {fault.kind for fault in fault_plan.make(1, 500, 4, 2, True)}
        self.assertEqual(kinds, {*fault_plan.WEIGHTS, *fault_plan.PARTITION_WEIGHTS})
        kinds = {fault.kind for fault in fault_plan.make(1, 500, 4, 2, False)}
        self.assertEqual(kinds, set(fault_plan.WEIGHTS))
        for kind in {*fault_plan.WEIGHTS, *fault_plan.PARTITION_WEIGHTS}:
            self.assertTrue(hasattr(storm.Storm, kind.replace(" ", "_")), kind)


class Judgement(unittest.TestCase):
    def test_what_is_expected_is_counted_step_by_step(self):
        self.assertEqual(storm.expected(0), (0, 0))
        first = sum((31 + item * 17) % 101 for item in range(64))
        self.assertEqual(storm.expected(1), (first, first))
        second = sum((62 + item * 17) % 101 for item in range(64))
        self.assertEqual(storm.expected(2)[0], first + second)


class OneStorm(storm.Case):
    def test_ends_with_the_exact_count(self):
        self.storm(seed=1, count=40)


if __name__ == "__main__":
    process_kit.main()
