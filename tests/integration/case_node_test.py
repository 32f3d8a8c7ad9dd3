#!/usr/bin/python3
"""The cases of the area NODE (tests/CASES.md): a node is lost, frozen, replaced. The workers
all-reduce all the time (case_worker.cc). Cut cables are in net_*_test.py."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for

LEASE = 2.0
# The "within the lease and 5 s", and what a busy machine adds to it.
SOON = LEASE + 5 + 10
AWAY = 10.0 if cluster_kit.is_full() else 3.0
LOOP = ("--no-python", cluster_kit.CASE_WORKER, "loop")


class Nodes(cluster_kit.Cluster):
    def start_nodes(self, count, *words, nnodes):
        nodes = [self.node(i + 1, "--rdzv-conf=last_call_timeout=1", *words, *LOOP, nnodes=nnodes)
                 for i in range(count)]
        for node in nodes:
            node.wait_for_output("of %d step" % count)
        return nodes

    def of_group_rank_0(self, nodes):
        return [node for node in nodes if "rank 0 of" in node.out][0]

    def check_world(self, nodes, seconds=SOON):
        """They run on in one new round."""
        before = time.monotonic()
        for node in nodes:
            node.wait_for_output("of %d step" % len(nodes), seconds)
        self.assertLess(time.monotonic() - before, seconds)
        rounds = {self.last_round(node) for node in nodes}
        self.assertEqual(len(rounds), 1, [node.said() for node in nodes])
        for node in nodes:
            self.wait_for_steps(node, "round %s " % self.last_round(node))
        return int(rounds.pop())

    def last_round(self, node):
        return re.findall(r"^round (\d+) ", node.out, re.MULTILINE)[-1]

    def group_of(self, node):
        """The agent, its guardian and its workers."""
        guardian = process_kit.guardian_of(node.pid)
        return [node.pid, guardian] + [pid for pid in process_kit.all_pids()
                                       if process_kit.parent_of(pid) == guardian]


class Node0(Nodes):
    """BL-05: node 0 has no right to be special; the rendezvous' absence is bounded and said."""

    def setUp(self):
        super().setUp()
        self.daemon = self.start_daemon("--lease=%g" % LEASE, "--reconnect-timeout=30")

    def test_bl05_two_go_on_without_node_0(self):
        nodes = self.start_nodes(3, "--max-restarts=3", nnodes="2:3")
        victim = self.of_group_rank_0(nodes)
        victim.signal(signal.SIGKILL)
        victim.wait()
        rest = [node for node in nodes if node is not victim]
        self.check_world(rest)
        self.assertRegex(self.status(), r"job +running +\d+ +\d+ +0 of 3 ")
        self.finish(rest)
        self.end_daemon(self.daemon)

    def test_bl05_workers_do_not_need_the_rendezvous(self):
        nodes = self.start_nodes(3, "--max-restarts=3", nnodes="2:3")
        before = self.last_round(nodes[0])
        self.daemon.signal(signal.SIGKILL)
        self.daemon.wait()
        gone = time.monotonic()
        while time.monotonic() < gone + AWAY:
            self.wait_for_steps(nodes[0], "round %s " % before)
        self.daemon = self.start_daemon("--lease=%g" % LEASE, "--reconnect-timeout=30")
        for node in nodes:
            node.wait_for_output("reached the rendezvous at %s again" % self.endpoint)
            self.wait_for_steps(node, "round %s " % before)
        self.assertRegex(self.status(), r"job +running +%s " % before)
        self.finish(nodes)
        for node in nodes:
            self.assertEqual(set(re.findall(r"^round (\d+) ", node.out, re.MULTILINE)), {before})
        self.end_daemon(self.daemon)

    def kill_both(self, *words):
        nodes = self.start_nodes(3, *words, nnodes="2:3")
        victim = self.of_group_rank_0(nodes)
        self.daemon.signal(signal.SIGKILL)
        victim.signal(signal.SIGKILL)
        for process in (self.daemon, victim):
            process.wait()
        return [node for node in nodes if node is not victim]

    def test_bl05_both_lost_and_the_rendezvous_comes_back(self):
        rest = self.kill_both("--max-restarts=3")
        for node in rest:
            node.wait_for_output("lost contact with the rendezvous at " + self.endpoint)
        daemon = self.start_daemon("--lease=%g" % LEASE, "--reconnect-timeout=3")
        self.check_world(rest)
        # The loss of a node is free, though workers failed of it while nobody could be told.
        self.assertRegex(self.status(), r"job +running +\d+ +\d+ +0 of 3 ")
        self.finish(rest)
        self.end_daemon(daemon)

    def test_bl05_both_lost_for_good(self):
        self.daemon.signal(signal.SIGTERM)
        self.daemon.wait()
        self.daemon = self.start_daemon("--lease=%g" % LEASE, "--reconnect-timeout=2")
        rest = self.kill_both("--max-restarts=3")
        for node in rest:
            self.assert_ends(node, 69, "contact with the rendezvous at %s was lost for 2 s" %
                             self.endpoint, "bring the rendezvous back")
            lines = [line for line in node.err.splitlines() if "lost contact" in line]
            self.assertEqual(len(lines), 1, node.err)


class OtherNode(Nodes):
    """BL-07 on one machine: a node that stands still is fenced. Cables are net_bl07's."""

    def test_bl07_a_frozen_node_is_left_behind_and_comes_back_as_a_newcomer(self):
        daemon = self.start_daemon("--lease=%g" % LEASE)
        a, b = self.start_nodes(2, "--max-restarts=2", nnodes="1:2")
        old_round = self.last_round(a)
        frozen = self.group_of(b)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            # Its workers' collective doesn't end by itself within half an hour.
            lone = self.check_world([a])
            self.assertGreater(lone, int(old_round))
            said_before = b.out.count("round %s " % old_round)
        finally:
            for pid in frozen:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass  # thawed, its guardian has killed it before we come to it
        b.wait_for_output("of 2 step", SOON)
        wait_for(lambda: int(self.last_round(b)) > lone and int(self.last_round(a)) > lone,
                 "a world of two again", SOON)
        for pid in frozen[2:]:
            self.assertFalse(process_kit.is_alive(pid))
        # Not one step of the old round was made after the thaw.
        self.assertLessEqual(b.out.count("round %s " % old_round), said_before + 1, b.said())
        self.assertEqual(self.last_round(a), self.last_round(b))
        self.assertRegex(self.status(), r"job +running +\d+ +\d+ +0 of 2 ")
        self.finish([a, b])
        self.end_daemon(daemon)


class Replacements(cluster_kit.Cluster):
    """BL-09: a replacement with the same host name is a new incarnation."""
    WORKER = cluster_kit.PLACE + "echo charged $MUSTER_RESTARTS_CHARGED; " + \
        cluster_kit.UNTIL_FINISH

    def start_one(self, *words):
        # No address of its own: all have the name and the address of this host.
        return self.node(0, "--max-restarts=3", *words, "--no-python", "sh", "-c", self.WORKER)

    def check_restarted(self, a, b):
        for node in (a, b):
            node.wait_for_output("/2 attempt 1\n")
            wait_for(lambda n=node: n.out.count("charged") == (2 if n is a else 1), "both lines")
        self.assertEqual(sorted(node.out.split("/2 attempt 1")[0][-1] for node in (a, b)),
                         ["0", "1"])
        for node in (a, b):
            self.assertEqual(node.out.split()[-1], "0")  # nothing charged
        self.finish([a, b])

    def test_bl09_a_replacement_comes_after_the_loss(self):
        daemon = self.start_daemon()
        a, b = self.start_one(), self.start_one()
        for node in (a, b):
            node.wait_for_output("/2 attempt 0")
        b.signal(signal.SIGKILL)
        b.wait()
        a.wait_for_output("waiting for 1 more node")
        self.check_restarted(a, self.start_one())
        self.end_daemon(daemon)

    def test_bl09_a_replacement_comes_before_the_loss_is_known(self):
        daemon = self.start_daemon("--lease=%g" % LEASE)
        a, b = self.start_one(), self.start_one()
        for node in (a, b):
            node.wait_for_output("/2 attempt 0")
        b.signal(signal.SIGSTOP)
        replacement = self.start_one()
        self.check_restarted(a, replacement)
        # The frozen one thaws after the end: it starts nothing, and gets the result.
        b.signal(signal.SIGCONT)
        self.assert_ends(b, 0)
        self.assertEqual(b.out.count("attempt"), 1)
        self.end_daemon(daemon)

    def static(self, rank):
        return self.start("run", "--nnodes=2", "--node-rank=%d" % rank, "--max-restarts=3",
                          "--master-addr=127.0.0.1", "--master-port=%d" % self.port,
                          "--no-python", "sh", "-c", self.WORKER)

    def test_bl09_a_replacement_takes_the_same_node_rank(self):
        a, b = self.static(0), self.static(1)
        for node in (a, b):
            node.wait_for_output("/2 attempt 0")
        b.signal(signal.SIGKILL)
        b.wait()
        self.check_restarted(a, self.static(1))


if __name__ == "__main__":
    process_kit.main()
