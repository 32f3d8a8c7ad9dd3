#!/usr/bin/python3
"""The cases of the area FINISH (tests/CASES.md): how a good job ends on every node."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit

RUNS = 200 if cluster_kit.is_full() else 25
# Each of these waits a second for agents of an earlier rendezvous.
HOSTED_RUNS = 200 if cluster_kit.is_full() else 3
NODES = 3
WHILE_IT_WAITS = ("waiting for", "nodes are here", "other nodes are told")


class GoodEnds(cluster_kit.Cluster):
    """BL-15: nobody's exit status depends on a peer process that is still there."""

    def run_once(self, job, script, *words):
        nodes = [self.node(i + 1, "--nproc-per-node=2", *words, "--no-python", "sh", "-c",
                           script, nnodes=str(NODES), job=job) for i in range(NODES)]
        for node in nodes:
            self.assert_ends(node, 0)
            # What it may say while it waits for the others isn't an error.
            said = [line for line in node.err.splitlines()
                    if not any(words in line for words in WHILE_IT_WAITS)]
            self.assertEqual(said, [])

    def nap(self):
        return "sleep 0.0%d" % random.randrange(9)

    def test_bl15_every_agent_ends_with_0_beside_a_rendezvous_of_its_own(self):
        daemon = self.start_daemon()
        for i in range(RUNS):
            with self.subTest(run=i):
                self.run_once("f%d" % i, self.nap())
        self.end_daemon(daemon)

    def test_bl15_every_agent_ends_with_0_where_one_of_them_hosts(self):
        for i in range(HOSTED_RUNS):
            with self.subTest(run=i):
                self.run_once("f%d" % i, self.nap())

    def test_bl15_nodes_that_finish_at_very_different_times(self):
        # The first to finish hosts the rendezvous, or not: either way it stays as long as needed.
        for slow in range(NODES):
            with self.subTest(slow=slow):
                self.run_once("s%d" % slow, "[ $GROUP_RANK = %d ] && sleep 0.5; exit 0" % slow)

    def test_bl15_who_comes_late_gets_the_result(self):
        daemon = self.start_daemon()
        self.run_once("good", "true")
        late = self.node(1, "--no-python", "sh", "-c", "echo started", nnodes=str(NODES),
                         job="good")
        self.assert_ends(late, 0, "job good had already succeeded (exit code 0) when this node "
                         "came", "another --rdzv-id")
        self.assertEqual(late.out, "")
        self.assertEqual(late.err.count("\n"), 1, late.err)
        self.end_daemon(daemon)

    def test_bl15_who_comes_late_to_a_failed_job_gets_its_verdict(self):
        daemon = self.start_daemon()
        first = self.node(1, "--no-python", "sh", "-c", "echo why >&2; exit 7", nnodes="1")
        self.assert_ends(first, 7)
        late = self.node(2, "--no-python", "sh", "-c", "echo started", nnodes="1")
        self.assert_ends(late, 7, "job job had already failed (exit code 7)",
                         "Root Cause (first observed failure):", "exitcode  : 7", "    why")
        self.assertEqual(late.out, "")
        self.end_daemon(daemon)


if __name__ == "__main__":
    process_kit.main()
