#!/usr/bin/python3
"""Two nodes with addresses and host names of their own, in network and mount namespaces.

Skipped, with the reason, where namespaces can't be made. All that is made goes with its processes.
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

IP = "/sbin/ip"
SHOW = "echo $RANK of $WORLD_SIZE, master $MASTER_ADDR"


def call(*argv, **options):
    subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                   timeout=process_kit.DEADLINE, **options)


def why_not():
    if not os.path.exists(IP):
        return "there is no " + IP
    result = subprocess.run(["unshare", "-n", "-m", "-u", IP, "link", "add", "probe0", "type",
                             "veth", "peer", "name", "probe1"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    return result.stdout.decode().strip() if result.returncode else ""


REASON = why_not()


class Node:
    """A process that holds the namespaces of one node."""

    def __init__(self, case, name, address, hosts):
        path = case.write("hosts." + name, "127.0.0.1 localhost\n" + hosts)
        setup = ("mount --bind %s /etc/hosts && hostname %s && %s link set lo up && echo ready && "
                 "exec sleep 600" % (path, name, IP))
        self.case = case
        self.address = address
        self.holder = process_kit.Process(case, ["unshare", "-n", "-m", "-u", "sh", "-c", setup])
        self.holder.wait_for_output("ready")

    def enter(self, *argv):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "-u", *argv]

    def plug_in(self, link):
        call(*self.enter(IP, "address", "add", self.address + "/24", "dev", link))
        call(*self.enter(IP, "link", "set", link, "up"))

    def run(self, *words):
        return process_kit.Process(self.case, self.enter(process_kit.MUSTER, "run", *words))


class TwoHosts(process_kit.Case):
    def setUp(self):
        if REASON:
            self.skipTest("namespaces can't be made here: " + REASON)
        super().setUp()

    def tearDown(self):
        for node in getattr(self, "nodes", []):
            node.holder.signal(signal.SIGKILL)
        super().tearDown()

    def connect(self, hosts_of_a, hosts_of_b):
        a = Node(self, "node-a", "10.77.0.1", hosts_of_a)
        b = Node(self, "node-b", "10.77.0.2", hosts_of_b)
        self.nodes = [a, b]
        # Interfaces have different names on the two.
        call(*a.enter(IP, "link", "add", "ethA", "type", "veth", "peer", "name", "ethB", "netns",
                      str(b.holder.pid)))
        a.plug_in("ethA")
        b.plug_in("ethB")
        return a, b

    def check(self, processes, masters):
        for process in processes:
            self.assert_ends(process, 0)
        lines = [process.out.strip() for process in processes]
        self.assertEqual(sorted(line[:6] for line in lines), ["0 of 2", "1 of 2"], lines)
        self.assertEqual(lines[0].split()[-1], lines[1].split()[-1], lines)
        self.assertIn(lines[0].split()[-1], masters)

    def test_own_name_stands_for_loopback(self):
        # Debian's default: a host's own name is 127.0.1.1, where no other node could come.
        a, b = self.connect("127.0.1.1 node-a\n10.77.0.2 node-b\n",
                            "127.0.1.1 node-b\n10.77.0.1 node-a\n")
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node-a:29400",
                 "--no-python", "sh", "-c", SHOW]
        first = a.run(*words)
        first.wait_for_output("other nodes are told 10.77.0.1")
        self.check([first, b.run(*words)], ["10.77.0.1", "10.77.0.2"])

    def test_the_endpoint_has_another_name_for_its_host(self):
        # Whether the names are alike doesn't matter: the address is node-a's.
        hosts = "10.77.0.1 node-a.svc.cluster service\n10.77.0.2 node-b\n"
        a, b = self.connect(hosts, hosts)
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=service:29400",
                 "--no-python", "sh", "-c", SHOW]
        self.check([b.run(*words), a.run(*words)], ["10.77.0.1", "10.77.0.2"])

    def test_static_layout(self):
        a, b = self.connect("127.0.1.1 node-a\n", "10.77.0.1 node-a\n")
        words = ["--nnodes=2", "--master-addr=node-a", "--master-port=29555"]
        program = ["--no-python", "sh", "-c", SHOW]
        second = b.run(*words, "--node-rank=1", *program)
        self.check([a.run(*words, "--node-rank=0", *program), second], ["node-a"])

    def test_nobody_has_the_endpoint(self):
        a, b = self.connect("", "")
        for node in (a, b):
            process = node.run("--nnodes=2", "--rdzv-endpoint=10.77.0.9:29400",
                               "--rdzv-conf=join_timeout=2", "--no-python", "true")
            self.assert_ends(process, 69, "10.77.0.9:29400",
                             "10.77.0.9 is no address of this node (%s)" % node.address)


if __name__ == "__main__":
    process_kit.main()
