#!/usr/bin/python3
"""The load programs at a small size: every node gets its place once, and nothing is left of them."""
import os
import sys
import time
import unittest

ROOT = os.environ.get("TEST_SRCDIR") and os.path.join(
    os.environ["TEST_SRCDIR"], os.environ.get("TEST_WORKSPACE", "muster")) or os.getcwd()
sys.path.insert(0, os.path.join(ROOT, "tests", "load"))
from crowd_trial import Trial, TrialError  # noqa: E402

BINARIES = {"muster": os.path.join(ROOT, "launcher", "muster"),
            "crowd": os.path.join(ROOT, "tests", "load", "crowd"),
            "bare_rendezvous": os.path.join(ROOT, "tests", "load", "bare_rendezvous")}
NODES = 50
# A machine that builds something else at the same time stops for seconds.
LEASE = 30


class LoadTest(unittest.TestCase):
    def trial(self, kind, nodes=NODES, losses=2, **options):
        return Trial(kind, nodes, losses, BINARIES, lease=LEASE, **options)

    def test_forms_and_forms_again_after_losses(self):
        for kind in ("muster", "bare"):
            with self.subTest(kind), self.trial(kind) as trial:
                # Each of these fails unless the ranks are 0..n-1 on all n living nodes.
                self.assertGreater(trial.form(), 0)
                for _ in range(2):
                    total, from_first_stop = trial.lose()
                    self.assertGreater(from_first_stop, 0)
                    self.assertGreater(total, from_first_stop)
                self.assertEqual((trial.round, trial.living), (3, NODES - 2))
                self.assertEqual(trial.disturbed, [])
                self.assertGreater(trial.peak_memory(), 1 << 20)
                self.assertGreater(trial.bytes(), NODES * 200)
                self.assertGreaterEqual(trial.cpu_seconds(), 0)
                pids = [process.pid for process in trial.processes]
            for pid in pids:
                self.assertFalse(os.path.exists("/proc/%d" % pid))

    def test_the_last_to_join_starts_the_round(self):
        for kind in ("muster", "bare"):
            with self.subTest(kind), self.trial(kind) as trial:
                self.assertGreater(trial.join_last(), 0)
                self.assertEqual((trial.round, trial.living), (1, NODES))

    def test_too_few_nodes_are_named(self):
        with self.assertRaisesRegex(TrialError, "3 nodes are too few"):
            self.trial("bare", nodes=3)

    def test_a_server_that_ends_is_said(self):
        with self.assertRaisesRegex(TrialError, "didn't say where it listens|ended by itself"):
            with Trial("muster", NODES, 2, dict(BINARIES, muster="/bin/false")):
                self.fail("it has begun")
        with self.assertRaisesRegex(TrialError, "ended by itself"):
            with Trial("bare", NODES, 2, dict(BINARIES, bare_rendezvous="/bin/false")):
                self.fail("it has begun")

    def test_nodes_that_are_missing_end_in_time(self):
        with self.trial("muster", deadline=1.0) as trial:
            trial.losses += 1  # one is never started
            trial.victims.pop()
            began = time.monotonic()
            with self.assertRaisesRegex(TrialError, "no 'started' within 1 s"):
                trial.form()
            self.assertLess(time.monotonic() - began, 30)

    def test_a_crowd_refuses_what_it_does_not_understand(self):
        with self.trial("bare") as trial:
            crowd = trial.crowds[0]
            crowd.tell("take 5\n")
            self.assertEqual(crowd.popen.wait(30), 64)


if __name__ == "__main__":
    unittest.main()
