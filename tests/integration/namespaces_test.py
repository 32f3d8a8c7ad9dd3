#!/usr/bin/python3
"""Where two nodes with addresses and host names of their own find each other."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import net_kit
import process_kit

SHOW = "echo $RANK of $WORLD_SIZE, master $MASTER_ADDR"


class TwoHosts(net_kit.Case):
    def connect(self, hosts_of_a, hosts_of_b):
        # Interfaces have different names on the two.
        return self.network(2, names=["node-a", "node-b"], links=["ethA", "ethB"],
                            hosts=[hosts_of_a, hosts_of_b].__getitem__).nodes

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
