#!/usr/bin/python3
"""The cases of the area RDZV (tests/CASES.md): who counts while it waits, and Ctrl-C meanwhile."""
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from cluster_kit import PLACE, UNTIL_FINISH
from process_kit import wait_for

LEASE = 3.0


class WaitingRoom(cluster_kit.Cluster):
    """BL-01: presence in the room rests on a live lease, not on having once asked."""

    def setUp(self):
        super().setUp()
        self.daemon = self.start_daemon("--lease=%g" % LEASE)

    def waiter(self, number):
        node = self.node(number, "--no-python", "sh", "-c", PLACE + UNTIL_FINISH)
        node.wait_for_output("waiting for 1 more node")
        return node

    def check_world_of(self, nodes):
        for node in nodes:
            node.wait_for_output("/2 attempt")
        self.assertEqual(sorted(node.out[:3] for node in nodes), ["0/2", "1/2"])
        self.finish(nodes)

    def test_bl01_a_killed_waiter_is_no_member(self):
        ghost = self.waiter(1)
        self.assertEqual([row[2:4] for row in self.node_rows()], [["waits", "attached"]])
        ghost.signal(signal.SIGKILL)
        ghost.wait()
        second = self.waiter(2)
        wait_for(lambda: len(self.node_rows()) == 1, "the ghost's end")
        self.assertEqual(second.out, "")
        third = self.node(3, "--no-python", "sh", "-c", PLACE + UNTIL_FINISH)
        self.check_world_of([second, third])
        self.assertIn("attempt 0", second.out)
        self.end_daemon(self.daemon)

    def test_bl01_a_frozen_waiter_is_one_until_its_lease_ends(self):
        ghost = self.waiter(1)
        ghost.signal(signal.SIGSTOP)
        # A round may be formed with it while its lease lasts; it is dropped when that ends.
        second = self.node(2, "--no-python", "sh", "-c", PLACE + UNTIL_FINISH)
        second.wait_for_output("waiting for 1 more node")
        wait_for(lambda: len(self.node_rows()) == 1, "the end of the ghost's lease")
        third = self.node(3, "--no-python", "sh", "-c", PLACE + UNTIL_FINISH)
        third.wait_for_output("/2 attempt")
        attempt = third.out.split()[-1]
        second.wait_for_output("/2 attempt %s\n" % attempt)
        # What was said to it meanwhile is stale: it starts no worker, and is a spare.
        ghost.signal(signal.SIGCONT)
        ghost.wait_for_output("waits as a spare")
        self.assertEqual(ghost.out, "")
        self.finish([second, third])
        self.assert_ends(ghost, 0)
        self.assertEqual(ghost.out, "")
        self.end_daemon(self.daemon)

    def test_bl01_the_status_shows_the_age_of_each_lease(self):
        frozen = self.node(1, "--no-python", "true", nnodes="3")
        frozen.wait_for_output("waiting for 2 more nodes")
        alive = self.node(2, "--no-python", "true", nnodes="3")
        alive.wait_for_output("waiting for 1 more node")
        frozen.signal(signal.SIGSTOP)

        def ages():
            rows = {row[1]: row for row in self.node_rows()}
            if len(rows) < 2:
                raise AssertionError("the lease ended before its age was seen")
            return rows["127.0.0.1"][4] >= LEASE / 2 and rows["127.0.0.2"][4] < LEASE / 2
        # A heartbeat comes each third of a lease.
        wait_for(ages, "an old lease beside a fresh one")
        frozen.signal(signal.SIGCONT)
        for node in (frozen, alive):
            node.signal(signal.SIGINT)
            self.assert_ends(node, 130)
        self.end_daemon(self.daemon)


class Interrupts(cluster_kit.Cluster):
    """BL-03: every call that blocks at the start can be cancelled."""
    GONE = 2.0

    def check(self, node, number, seen):
        node.wait_for_output(seen)
        before = time.monotonic()
        node.signal(number)
        self.assert_ends(node, 128 + number)
        self.assertLess(time.monotonic() - before, self.GONE)
        self.assertNotIn("Traceback", node.err)
        self.assertLess(node.err.count("\n"), 10, node.err)

    def test_bl03_each_signal_in_each_state(self):
        waiting = "127.0.0.1:%d" % process_kit.free_port()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            for endpoint, seen in ((waiting, "waiting for 1 more node"),
                                   ("192.0.2.1:29400", "no rendezvous answers"),
                                   ("no-such-host.invalid:29400", "does not resolve")):
                with self.subTest(signal=number.name, endpoint=endpoint):
                    node = self.start("run", "--nnodes=2", "--rdzv-backend=c10d",
                                      "--rdzv-endpoint=" + endpoint, "--no-python", "true")
                    self.check(node, number, seen)

    def test_bl03_its_place_is_withdrawn_at_once(self):
        # A lease that wouldn't end within the test.
        daemon = self.start_daemon("--lease=600")
        node = self.node(1, "--no-python", "true")
        self.check(node, signal.SIGINT, "waiting for 1 more node")
        self.assertEqual(self.node_rows(), [])
        follower = self.node(2, "--no-python", "true")
        follower.wait_for_output("waiting for 1 more node (1 of 2 nodes is here)")
        self.assertEqual(len(self.node_rows()), 1)
        self.check(follower, signal.SIGINT, "waiting")
        self.end_daemon(daemon)

    def test_bl03_a_frozen_rendezvous(self):
        daemon = self.start_daemon()
        daemon.signal(signal.SIGSTOP)
        # On its own host, whose port it can't have, and as from another one.
        for words in ([], ["--rdzv-conf=is_host=0"]):
            node = self.node(1, *words, "--no-python", "true")
            self.check(node, signal.SIGINT, "doesn't answer")
        daemon.signal(signal.SIGCONT)
        self.end_daemon(daemon)

    def test_bl03_somebody_who_never_answers(self):
        with socket.create_server(("127.0.0.1", self.port)):
            self.check(self.node(1, "--no-python", "true"), signal.SIGINT, "doesn't answer")


class Resolver(process_kit.Case):
    """BL-03 while a name server doesn't answer. Skipped where namespaces can't be made."""
    ASKED = ("import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53)); "
             "print('ready', flush=True); s.recv(1); print('asked', flush=True); s.recv(1 << 30)")

    def setUp(self):
        reason = subprocess.run(["unshare", "-Urmn", "/sbin/ip", "link", "set", "lo", "up"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                check=False).stdout.decode().strip()
        if reason:
            self.skipTest("namespaces can't be made here: " + reason)
        super().setUp()

    def test_bl03_a_name_server_that_does_not_answer(self):
        resolv = self.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:30\n")
        server = process_kit.Process(self, [
            "unshare", "-Urmn", "sh", "-c",
            "/sbin/ip link set lo up && mount --bind %s /etc/resolv.conf && exec python3 -c \"%s\"" %
            (resolv, self.ASKED)])
        server.wait_for_output("ready")
        node = process_kit.Process(self, [
            "nsenter", "-t", str(server.pid), "-U", "--preserve-credentials", "-m", "-n",
            process_kit.MUSTER, "run", "--nnodes=2", "--rdzv-backend=c10d",
            "--rdzv-endpoint=node-0.example:29400", "--no-python", "true"])
        server.wait_for_output("asked")
        before = time.monotonic()
        node.signal(signal.SIGINT)
        self.assert_ends(node, 130)
        self.assertLess(time.monotonic() - before, Interrupts.GONE)
        server.signal(signal.SIGKILL)
        server.wait()


if __name__ == "__main__":
    process_kit.main()
