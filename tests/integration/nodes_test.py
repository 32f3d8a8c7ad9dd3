#!/usr/bin/python3
"""Several agents on one machine, on 127.0.0.N: layouts, restarts, losses, disagreements."""
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

SDK_WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "sdk_worker")
PLACE = ("echo \"$RANK of $WORLD_SIZE, node $GROUP_RANK of $GROUP_WORLD_SIZE, "
         "attempt $TORCHELASTIC_RESTART_COUNT\"")


class Cluster(process_kit.Case):
    def setUp(self):
        super().setUp()
        self.port = process_kit.free_port()

    def static(self, rank, *words, nodes=2):
        return self.start("run", "--nnodes=%d" % nodes, "--node-rank=%d" % rank,
                          "--master-addr=127.0.0.1", "--master-port=%d" % self.port,
                          "--local-addr=127.0.0.%d" % (rank + 1), *words)

    def elastic(self, number, *words, nnodes="2"):
        return self.start("run", "--nnodes=" + nnodes,
                          "--rdzv-endpoint=127.0.0.1:%d" % self.port, "--rdzv-id=job",
                          "--local-addr=127.0.0.%d" % number, *words)


class Layouts(Cluster):
    def test_static_ranks_follow_node_ranks(self):
        # The second node is there first: it has to wait for its rendezvous.
        second = self.static(1, "--nproc-per-node=2", "--no-python", "sh", "-c", PLACE)
        first = self.static(0, "--nproc-per-node=1", "--no-python", "sh", "-c", PLACE)
        self.assert_ends(first, 0)
        self.assert_ends(second, 0)
        self.assertIn("0 of 3, node 0 of 2, attempt 0\n", first.out)
        self.assertIn("1 of 3, node 1 of 2, attempt 0\n", second.out)
        self.assertIn("2 of 3, node 1 of 2, attempt 0\n", second.out)

    def test_elastic_nodes_race_for_one_endpoint(self):
        nodes = [self.elastic(i, "--no-python", "sh", "-c", PLACE, nnodes="3") for i in (1, 2, 3)]
        for node in nodes:
            self.assert_ends(node, 0)
        ranks = sorted(node.out[0] for node in nodes)
        self.assertEqual(ranks, ["0", "1", "2"], [node.out for node in nodes])

    def test_a_rendezvous_of_its_own(self):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        daemon.wait_for_output("listens at")
        watcher = self.start("status", "--watch", "--rdzv-endpoint=127.0.0.1:%d" % self.port)
        watcher.wait_for_output("no jobs")
        nodes = [self.elastic(i, "--no-python", "sh", "-c", PLACE) for i in (1, 2)]
        for node in nodes:
            self.assert_ends(node, 0)
        watcher.wait_for_output("succeeded")
        watcher.signal(signal.SIGINT)
        self.assertEqual(watcher.wait(), -signal.SIGINT)
        status = self.run_to_end("status", "--rdzv-endpoint=127.0.0.1:%d" % self.port)
        self.assert_ends(status, 0)
        self.assertRegex(status.out, r"job +succeeded")
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_a_node_that_comes_after_the_end_is_told_so(self):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        daemon.wait_for_output("listens at")
        first = self.elastic(1, "--no-python", "sh", "-c", "exit 7", nnodes="1")
        self.assert_ends(first, 7)
        late = self.elastic(2, "--no-python", "sh", "-c", PLACE, nnodes="1")
        self.assert_ends(late, 7, "job job had already failed (exit code 7)", "another --rdzv-id",
                         "\njob job FAILED\n")
        self.assertEqual(late.out, "")
        other = self.elastic(3, "--no-python", "true", nnodes="1")
        self.assert_ends(other, 7, "\njob job FAILED\n")
        self.assertNotIn("true", other.err)
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_a_node_that_cannot_start_is_named_to_those_who_wait(self):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        daemon.wait_for_output("listens at")
        first = self.elastic(1, "--no-python", "sh", "-c", PLACE)
        first.wait_for_output("waiting for 1 more node (1 of 2 nodes is here)")
        broken = self.elastic(2, "--no-python", "./no-such-program")
        self.assert_ends(broken, 127, 'the program "./no-such-program" does not exist')
        first.wait_for_output('(127.0.0.2) could not start: the program "./no-such-program" does '
                              "not exist; check the path")
        self.assertTrue(first.is_running())
        second = self.elastic(2, "--no-python", "sh", "-c", PLACE)
        for node in (first, second):
            self.assert_ends(node, 0)
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_a_frozen_rendezvous_is_told_from_none(self):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        daemon.wait_for_output("listens at")
        daemon.signal(signal.SIGSTOP)
        endpoint = "--rdzv-endpoint=127.0.0.1:%d" % self.port
        for words, more in ((["status"], ""), (["drain", "n"], ""),
                            (["drain", "n", "--wait"], ", or ask again: an order that was given "
                                                       "stands")):
            asked = self.run_to_end(*words, endpoint)
            self.assert_ends(asked, 69)
            self.assertEqual(
                asked.err, "muster: no muster rendezvous answers at 127.0.0.1:%d: no answer came "
                "within 5 s, so its process may be stopped (SIGSTOP) or overloaded, or its host "
                "cut off; look at it, or name another one with --rdzv-endpoint%s\n" % (self.port, more))
        daemon.signal(signal.SIGCONT)
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_a_watch_goes_on_over_a_restart_of_the_rendezvous(self):
        listen = "--listen=127.0.0.1:%d" % self.port
        daemon = self.start("rendezvous", listen)
        daemon.wait_for_output("listens at")
        watcher = self.start("status", "--watch", "--rdzv-endpoint=127.0.0.1:%d" % self.port)
        watcher.wait_for_output("no jobs")
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        watcher.wait_for_output("lost the rendezvous at 127.0.0.1:%d; trying to reach it again for "
                                "60 s" % self.port)
        daemon = self.start("rendezvous", listen)
        daemon.wait_for_output("listens at")
        watcher.wait_for_output("reached the rendezvous at 127.0.0.1:%d again" % self.port)
        wait_for(lambda: watcher.out.count("no jobs") == 2, "the table anew")
        node = self.elastic(1, "--no-python", "sh", "-c", PLACE, nnodes="1")
        self.assert_ends(node, 0)
        watcher.wait_for_output("succeeded")
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)
        self.assert_ends(watcher, 0, "has ended, and what it did is over")

    def test_a_watch_notices_a_rendezvous_that_is_silent(self):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        daemon.wait_for_output("listens at")
        watcher = self.start("status", "--watch", "--rdzv-endpoint=127.0.0.1:%d" % self.port)
        watcher.wait_for_output("no jobs")
        daemon.signal(signal.SIGSTOP)
        watcher.wait_for_output("lost the rendezvous at 127.0.0.1:%d; trying to reach it again for "
                                "60 s" % self.port)
        daemon.signal(signal.SIGCONT)
        watcher.wait_for_output("reached the rendezvous at 127.0.0.1:%d again" % self.port)
        node = self.elastic(1, "--no-python", "sh", "-c", PLACE, nnodes="1")
        self.assert_ends(node, 0)
        watcher.wait_for_output("succeeded")
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)
        self.assert_ends(watcher, 0, "has ended, and what it did is over")

    def test_status_without_a_rendezvous(self):
        status = self.run_to_end("status", "--rdzv-endpoint=127.0.0.1:%d" % self.port)
        self.assert_ends(status, 69, "127.0.0.1:%d" % self.port)


class Daemon(Cluster):
    """What `muster rendezvous` refuses."""

    def test_an_exposed_address_without_authentication(self):
        self.assert_ends(self.run_to_end("rendezvous", "--listen=0.0.0.0:0"), 64, "--insecure")
        daemon = self.start("rendezvous", "--listen=:0", "--insecure")
        daemon.wait_for_output("listens at")
        daemon.signal(signal.SIGINT)
        self.assert_ends(daemon, 0)

    def test_a_busy_port(self):
        first = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        first.wait_for_output("listens at")
        second = self.run_to_end("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        self.assert_ends(second, 69, "port %d" % self.port, "process %d" % first.pid)
        first.signal(signal.SIGTERM)
        first.wait()

    def test_bad_words(self):
        for words, sentence in ((["--listen=h:x"], "--listen"), ([], "--listen"),
                                (["--listen=127.0.0.1:0", "now"], '"now"'),
                                (["--listen=127.0.0.1:0", "--lease=x"], "--lease"),
                                (["--listen=127.0.0.1:0", "--state-dir="], "--state-dir"),
                                (["--listen=192.0.2.1:0", "--insecure"], "192.0.2.1"),
                                (["--listn=127.0.0.1:0"], "--listen")):
            with self.subTest(words=words):
                self.assert_ends(self.run_to_end("rendezvous", *words), 64, sentence)

    def test_a_state_directory_that_can_not_be_used(self):
        listen = "--listen=127.0.0.1:0"
        self.assert_ends(self.run_to_end("rendezvous", listen, "--state-dir=/proc/none"), 73,
                         "--state-dir: can't make the state directory /proc/none")
        first = self.start("rendezvous", listen, "--state-dir=" + self.work)
        first.wait_for_output("listens at")
        self.assert_ends(self.run_to_end("rendezvous", listen, "--state-dir=" + self.work), 73,
                         "in use by another rendezvous (process %d)" % first.pid)
        first.signal(signal.SIGTERM)
        self.assert_ends(first, 0)
        # What another one wrote is told, and left as it was.
        path = self.write("job.1", "something else\n")
        self.assert_ends(self.run_to_end("rendezvous", listen, "--state-dir=" + self.work), 73,
                         path + " isn't a file of muster's")
        self.assertEqual(process_kit.read(path), b"something else\n")


class Restarts(Cluster):
    def test_within_the_budget_on_every_node(self):
        script = PLACE + "; " + process_kit.ALL_ARE_UP + \
            "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 600"
        nodes = [self.static(i, "--max-restarts=2", "--no-python", "sh", "-c", script)
                 for i in (0, 1)]
        for i, node in enumerate(nodes):
            self.assert_ends(node, 0)
            self.assertEqual(node.out, "".join(
                "%d of 2, node %d of 2, attempt %d\n" % (i, i, n) for n in range(3)))

    def test_beyond_the_budget_on_every_node(self):
        script = '[ $RANK = 1 ] && { echo "it broke" >&2; exit 9; }; exec sleep 600'
        nodes = [self.static(i, "--max-restarts=1", "--no-python", "sh", "-c", script)
                 for i in (0, 1)]
        for node in nodes:
            self.assert_ends(node, 9, "rank      : 1 (local_rank: 0)", "exitcode  : 9", "it broke")

    def test_single_node_counts_attempts(self):
        process = self.standalone("--max-restarts=2", "--no-python", "sh", "-c",
                                  "echo $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS "
                                  "$MUSTER_RESTARTS_CHARGED; exit 4")
        self.assert_ends(process, 4)
        self.assertEqual(process.out, "0 2 0\n1 2 1\n2 2 2\n")


class Losses(Cluster):
    WORKER = PLACE + "; until [ -e finish ]; do sleep 0.05; done"

    def start_three(self):
        nodes = [self.elastic(i, "--rdzv-conf=last_call_timeout=1", "--no-python", "sh", "-c",
                              self.WORKER, nnodes="2:3") for i in (1, 2, 3)]
        for node in nodes:
            node.wait_for_output(" of 3, ")
        return nodes

    def finish(self, nodes):
        for node in nodes:
            node.wait_for_output(" of 2, ")
            self.assertIn("attempt 1\n", node.out)
        self.write("finish", "")
        for node in nodes:
            self.assert_ends(node, 0)

    def host_of(self, nodes):
        """The one that hosts the rendezvous: it listens on the port."""
        inode = None
        for line in process_kit.read("/proc/net/tcp").decode().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(":%04X" % self.port) and fields[3] == "0A":
                inode = fields[9]
        for node in nodes:
            folder = "/proc/%d/fd" % node.pid
            for name in os.listdir(folder):
                try:
                    if os.readlink(os.path.join(folder, name)) == "socket:[%s]" % inode:
                        return node
                except OSError:
                    pass
        raise AssertionError("nobody listens on port %d" % self.port)

    def test_two_go_on_without_a_killed_agent(self):
        nodes = self.start_three()
        host = self.host_of(nodes)
        victim = [node for node in nodes if node is not host][0]
        victim.signal(signal.SIGKILL)
        self.finish([node for node in nodes if node is not victim])

    def test_two_go_on_without_a_node_that_leaves(self):
        nodes = self.start_three()
        host = self.host_of(nodes)
        leaver = [node for node in nodes if node is not host][0]
        leaver.signal(signal.SIGTERM)
        self.assert_ends(leaver, 143)
        self.finish([node for node in nodes if node is not leaver])

    def test_the_host_that_leaves_serves_the_others_to_the_end(self):
        nodes = self.start_three()
        host = self.host_of(nodes)
        host.signal(signal.SIGTERM)
        host.wait_for_output("hosts the rendezvous")
        self.finish([node for node in nodes if node is not host])
        self.assert_ends(host, 143)


class RendezvousGone(Cluster):
    def daemon(self, *words):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port, *words)
        daemon.wait_for_output("listens at")
        return daemon

    def test_workers_outlive_an_absence_longer_than_the_lease(self):
        daemon = self.daemon("--lease=1")
        nodes = [self.elastic(i, "--no-python", "sh", "-c", Losses.WORKER) for i in (1, 2)]
        for node in nodes:
            node.wait_for_output(" of 2, ")
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        for node in nodes:
            node.wait_for_output("lost contact")
        # Nothing tells that time has passed but time: the agents' own line would end the wait early.
        end = time.monotonic() + 3
        wait_for(lambda: time.monotonic() > end or
                 any("are killed" in node.err for node in nodes), "3 s without a rendezvous")
        daemon = self.daemon("--lease=1")
        for node in nodes:
            node.wait_for_output("again")
        self.write("finish", "")
        for node in nodes:
            self.assert_ends(node, 0)
            self.assertEqual(node.out.count("attempt"), 1, node.said())
            self.assertNotIn("are killed", node.err)
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_workers_that_look_for_each_other_outlive_its_restarts(self):
        daemon = self.daemon()
        nodes = [self.elastic(i, "--no-python", SDK_WORKER, "meeting") for i in (1, 2)]
        for node in nodes:
            node.wait_for_output(" of 2\n")
        for times in range(1, 4):
            daemon.signal(signal.SIGKILL)
            daemon.wait()
            for node in nodes:
                wait_for(lambda: node.err.count("lost contact") >= times, "the loss of contact")
            daemon = self.daemon()
            for node in nodes:
                wait_for(lambda: node.err.count("reached the rendezvous") >= times, "contact again")
        self.write("meet", "")
        self.write("finish", "")
        for node in nodes:
            self.assert_ends(node, 0)
            self.assertEqual(node.out.count("runs round"), 1, node.said())
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_an_absence_for_good_ends_the_job(self):
        daemon = self.daemon("--reconnect-timeout=1")
        node = self.start("run", "--nnodes=1:2", "--rdzv-endpoint=127.0.0.1:%d" % self.port,
                          "--rdzv-conf=last_call_timeout=0.1", "--no-python", "sh", "-c", Losses.WORKER)
        node.wait_for_output(" of 1, ")
        daemon.signal(signal.SIGKILL)
        self.assert_ends(node, 69, "127.0.0.1:%d" % self.port)


class Disagreements(Cluster):
    def test_two_nodes_with_one_rank(self):
        waiting = self.static(1, "--no-python", "true", nodes=3)
        first = self.static(0, "--no-python", "true", nodes=3)
        first.wait_for_output("waiting")
        wait_for(lambda: "2 of 3" in first.err or "2 of 3" in waiting.err, "two of three nodes")
        double = self.start("run", "--nnodes=3", "--node-rank=1", "--master-addr=127.0.0.1",
                            "--master-port=%d" % self.port, "--no-python", "true")
        self.assert_ends(double, 78, "--node-rank=1")
        for node in (waiting, first):
            self.assertTrue(node.is_running(), node.said())
            node.signal(signal.SIGINT)
            node.wait()

    def test_two_nodes_with_rank_zero(self):
        first = self.static(0, "--no-python", "true")
        first.wait_for_output("waiting")
        double = self.static(0, "--no-python", "true")
        self.assert_ends(double, 78, "--node-rank=0")
        first.signal(signal.SIGINT)
        self.assert_ends(first, 130)

    def test_different_numbers_of_nodes(self):
        first = self.elastic(1, "--no-python", "true", nnodes="2:3")
        first.wait_for_output("waiting")
        other = self.elastic(2, "--no-python", "true", nnodes="2:4")
        self.assert_ends(other, 78, "2:3", "2:4")
        first.signal(signal.SIGINT)
        self.assert_ends(first, 130)


class Strangers(Cluster):
    def test_other_bytes_are_refused(self):
        first = self.static(0, "--no-python", "true")
        first.wait_for_output("waiting")
        with socket.create_connection(("127.0.0.1", self.port), 10) as stranger:
            stranger.sendall(b"\x3c\x85\xf7\xce")
            stranger.settimeout(10)
            try:
                self.assertEqual(stranger.recv(1), b"")
            except ConnectionResetError:
                pass
        second = self.static(1, "--no-python", "true")
        self.assert_ends(first, 0)
        self.assert_ends(second, 0)


if __name__ == "__main__":
    process_kit.main()
