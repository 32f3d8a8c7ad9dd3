#!/usr/bin/python3
"""PyTorch's store as the agent serves it, with PyTorch's own clients as judges.

Each class runs with Debian's PyTorch, and again with the newest where `tools/setup.sh --with-torch`
has installed it.
"""
import os
import re
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
import torch_kit

HERE = os.path.join(process_kit.ROOT, "tests", "integration")


def script(name):
    return os.path.join(HERE, name)


class Torch(torch_kit.WithTorch, process_kit.Case):
    def two_nodes(self, *words, port=None):
        """Two nodes of the static layout, which know one port."""
        port = port or process_kit.free_port()
        return port, [self.start("run", "--nnodes=2", "--node-rank=%d" % i,
                                 "--master-port=%d" % port, "--prefix=never", *words)
                      for i in (0, 1)]

    def assert_all_right(self, processes, world):
        for process in processes:
            self.assert_ends(process, 0)
        lines = sorted("".join(process.out for process in processes).splitlines())
        self.assertEqual(lines, ["rank %d of %d: all right" % (i, world) for i in range(world)])


class Answers(Torch):
    def check(self, processes):
        for process in processes:
            self.assert_ends(process, 0)
        said = "".join(process.out for process in processes)
        self.assertEqual(len(re.findall(r"^rank [01]: \d{2} answers, 0 differ$", said, re.MULTILINE)),
                         2, said)

    def test_are_those_of_pytorchs_own_server(self):
        self.check([self.start("run", "--standalone", "--nproc-per-node=2", "--prefix=never",
                               script("torch_store_worker.py"))])

    def test_are_the_same_at_a_port_that_is_shared_with_grpc(self):
        self.check(self.two_nodes(script("torch_store_worker.py"))[1])


class Groups(Torch):
    def setUp(self):
        super().setUp()
        self.environment["EXPECT_STORE"] = "1"

    def test_of_one_node(self):
        self.assert_all_right([self.start("run", "--standalone", "--nproc-per-node=2",
                                          "--prefix=never", script("torch_groups_worker.py"))], 2)

    def test_of_two_nodes_with_a_fixed_port(self):
        self.assert_all_right(self.two_nodes(script("torch_groups_worker.py"))[1], 2)

    def test_of_two_elastic_nodes(self):
        where = "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port()
        self.assert_all_right([self.start("run", "--nnodes=2", "--rdzv-backend=c10d",
                                          "--rdzv-id=job", where, script("torch_groups_worker.py"))
                               for _ in (0, 1)], 2)

    def test_whose_rank_0_hosts_the_store_itself(self):
        del self.environment["EXPECT_STORE"]
        self.assert_all_right([self.start("run", "--standalone", "--nproc-per-node=2",
                                          "--master-store=worker", "--prefix=never",
                                          script("torch_groups_worker.py"))], 2)


class Rounds(Torch):
    def check(self, processes, ports):
        for process in processes:
            self.assert_ends(process, 0)
        said = "".join(process.out for process in processes)
        found = re.findall(r"^attempt (\d) rank (\d) of 2 at port (\d+): alone$", said, re.MULTILINE)
        self.assertEqual(sorted((int(a), int(r)) for a, r, _ in found),
                         [(a, r) for a in range(3) for r in range(2)], said)
        self.assertEqual(len({port for _, _, port in found}), ports, said)

    def test_have_a_store_and_a_port_each(self):
        self.check([self.start("run", "--standalone", "--nproc-per-node=2", "--max-restarts=2",
                               "--prefix=never", script("torch_rounds_worker.py"))], 3)

    def test_at_a_fixed_port_find_nothing_of_the_round_before(self):
        self.check(self.two_nodes("--max-restarts=2", script("torch_rounds_worker.py"))[1], 1)


class Crowd(Torch):
    def test_of_a_thousand_clients(self):
        process = self.start("run", "--standalone", "--nproc-per-node=4", "--prefix=never",
                             script("torch_crowd_worker.py"), 250)
        self.assert_ends(process, 0)
        self.assertEqual(process.out.count("250 clients saw the others"), 4, process.said())


def again_with_the_newest(case):
    return type(case.__name__ + "OfTheNewest", (case,), {"PYTHON": torch_kit.newest()})


AnswersOfTheNewest, GroupsOfTheNewest, RoundsOfTheNewest, CrowdOfTheNewest = map(
    again_with_the_newest, (Answers, Groups, Rounds, Crowd))


class Strangers(process_kit.Case):
    """At a port that gRPC and the store share; the workers are no Python."""

    def test_do_no_harm(self):
        port = process_kit.free_port()
        job = self.start("run", "--master-port=%d" % port, "--no-python", "sh", "-c",
                         "echo up at $MASTER_ADDR:$MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE; "
                         "until [ -e finish ]; do sleep 0.05; done")
        job.wait_for_output("up at 127.0.0.1:%d True" % port)

        def connect():
            connection = socket.create_connection(("127.0.0.1", port))
            connection.settimeout(60)
            return connection

        def text(words):
            return struct.pack("<Q", len(words)) + words

        greeting = b"\x00" + struct.pack("<I", 0x3C85F7CE)
        good = connect()
        good.sendall(greeting + b"\x01" + text(b"k") + text(b"v") + b"\x07")
        self.assertEqual(good.recv(8, socket.MSG_WAITALL), struct.pack("<q", 1))
        for bad in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, greeting + b"\x63",
                    greeting + b"\x01" + struct.pack("<Q", 1 << 40),
                    greeting + b"\x06" + struct.pack("<Q", 1 << 40), b"PRI * is no HTTP"):
            stranger = connect()
            stranger.sendall(bad)
            try:
                while stranger.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            stranger.close()
        # Half a request, and then nobody.
        half = connect()
        half.sendall(greeting + b"\x01" + text(b"k") + struct.pack("<Q", 100) + b"half")
        half.close()
        # Somebody who only listens isn't sent away.
        silent = connect()
        good.sendall(b"\x03" + text(b"k"))
        self.assertEqual(good.recv(9, socket.MSG_WAITALL), text(b"v"))
        silent.sendall(greeting + b"\x03" + text(b"k"))
        self.assertEqual(silent.recv(9, socket.MSG_WAITALL), text(b"v"))
        self.write("finish", "")
        self.assert_ends(job, 0, "PyTorch's store closed the connection of 127.0.0.1:")
        self.assertLessEqual(job.err.count("PyTorch's store"), 4, job.err)

    def test_a_program_of_ones_own_has_the_port_with_the_old_way(self):
        job = self.standalone("--master-store=worker", "--no-python", "python3", "-c",
                              "import os, socket; s = socket.socket(); "
                              "s.bind((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))); "
                              "print(os.environ['TORCHELASTIC_USE_AGENT_STORE'])")
        self.assert_ends(job, 0)
        self.assertEqual(job.out, "False\n")


class Nodes(cluster_kit.Cluster):
    def test_a_store_moves_on_when_its_node_is_lost(self):
        daemon = self.start_daemon()
        nodes = [self.node(i, script("plain_store_worker.py"), nnodes="2:3") for i in (1, 2, 3)]

        def found(attempt, world):
            """The addresses of the store, one for each rank that has found exactly all ranks."""
            return re.findall(r"^attempt %d: rank \d of %d found %d keys at (\S+)$" %
                              (attempt, world, world), "".join(n.out for n in nodes), re.MULTILINE)
        first = process_kit.wait_for(lambda: len(found(0, 3)) == 3 and found(0, 3), "the first round")
        self.assertEqual(len(set(first)), 1, first)
        lost = nodes[int(first[0].rsplit(".", 1)[1]) - 1]
        lost.signal(signal.SIGKILL)
        second = process_kit.wait_for(lambda: len(found(1, 2)) == 2 and found(1, 2), "a second round")
        self.assertEqual(len(set(second)), 1, second)
        self.assertNotEqual(second[0], first[0])
        self.finish([node for node in nodes if node is not lost])
        self.end_daemon(daemon)
        lost.wait()


if __name__ == "__main__":
    process_kit.main()
