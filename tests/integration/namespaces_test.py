#!/usr/bin/python3
"""Where two nodes with addresses and host names of their own find each other."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import net_kit
import process_kit

ALLREDUCE = os.path.join(process_kit.ROOT, "examples", "allreduce", "allreduce")
STORE_WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "plain_store_worker.py")
# Something that isn't a rendezvous, and says so to everybody.
GREETER = """
import socket, threading
s = socket.socket()
s.bind(("0.0.0.0", 29700))
s.listen()
print("listens", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"220 mail.example ESMTP\\r\\n")
    threading.Thread(target=c.recv, args=(1000,), daemon=True).start()
"""
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

    def test_bl37_bl39_own_name_stands_for_loopback(self):
        # Debian's default: a host's own name is 127.0.1.1, where no other node could come.
        a, b = self.connect("127.0.1.1 node-a\n10.77.0.2 node-b\n",
                            "127.0.1.1 node-b\n10.77.0.1 node-a\n")
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node-a:29400",
                 "--no-python", "sh", "-c", SHOW]
        first = a.run(*words)
        first.wait_for_output("other nodes are told 10.77.0.1")
        self.check([first, b.run(*words)], ["10.77.0.1", "10.77.0.2"])

    def test_bl37_the_endpoint_has_another_name_for_its_host(self):
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

    def test_both_reach_pytorchs_store(self):
        # In the static layout its host knows its own name as loopback.
        a, b = self.connect("127.0.1.1 node-a\n10.77.0.2 node-b\n",
                            "127.0.1.1 node-b\n10.77.0.1 node-a\n")
        # Each ends as soon as it has seen the other's key.
        self.write("finish", "")
        for layout in (["--master-addr=node-a", "--master-port=29556"],
                       ["--rdzv-backend=c10d", "--rdzv-endpoint=node-a:29400"]):
            nodes = [node.run("--nnodes=2", "--node-rank=%d" % i, *layout, "--no-python",
                              "/usr/bin/python3", STORE_WORKER) for i, node in enumerate((a, b))]
            for node in nodes:
                self.assert_ends(node, 0)
            self.assertEqual("".join(node.out for node in nodes).count("of 2 found 2 keys at"), 2,
                             [node.said() for node in nodes])

    def test_bl37_nobody_has_the_endpoint(self):
        a, b = self.connect("", "")
        for node in (a, b):
            process = node.run("--nnodes=2", "--rdzv-endpoint=10.77.0.9:29400",
                               "--rdzv-conf=join_timeout=2", "--no-python", "true")
            self.assert_ends(process, 69, "10.77.0.9:29400",
                             "10.77.0.9 is no address of this node (%s)" % node.address)


    def test_bl37_short_names_and_service_names_are_one_host(self):
        # Each node knows the host by other names, and its own name is yet another one.
        a, b = self.connect("10.77.0.1 pod-0.svc.ns pod-0 pod-0.svc node-a\n",
                            "10.77.0.1 pod-0.svc\n10.77.0.2 node-b\n")
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=pod-0.svc:29400",
                 "--no-python", "sh", "-c", SHOW]
        self.check([a.run(*words), b.run(*words)], ["10.77.0.1", "10.77.0.2"])

    def test_bl37_an_explicit_option_wins(self):
        a, b = self.connect("10.77.0.1 service\n", "10.77.0.1 service\n")
        words = ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=service:29400",
                 "--no-python", "sh", "-c", SHOW]
        # It has the address, and is told not to serve.
        guest = a.run("--rdzv-conf=is_host=0", *words)
        guest.wait_for_output("waiting for the rendezvous at service:29400")
        # It hasn't, and is told to.
        self.assert_ends(b.run("--rdzv-conf=is_host=1", *words), 64, "can't host the rendezvous",
                         "service:29400")
        daemon = a.muster("rendezvous", "--listen=10.77.0.1:29400", "--insecure")
        self.assert_ends(guest, 0)
        self.assertIn("0 of 1", guest.out)
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_bl39_workers_add_up_over_two_nodes_without_any_setting(self):
        # Debian's hosts on both, and interfaces of different names.
        a, b = self.connect("127.0.1.1 node-a\n10.77.0.2 node-b\n",
                            "127.0.1.1 node-b\n10.77.0.1 node-a\n")
        words = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d",
                 "--rdzv-endpoint=node-a:29400", "--no-python", ALLREDUCE]
        nodes = [a.run(*words), b.run(*words)]
        for node in nodes:
            self.assert_ends(node, 0)
        self.assertEqual("".join(node.out for node in nodes).count("of 4: sum 10, right"), 4,
                         [node.said() for node in nodes])

    def test_bl39_a_loopback_address_is_refused_by_name(self):
        a, b = self.connect("", "")
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=10.77.0.1:29400",
                 "--no-python", "true"]
        first = a.run(*words)
        first.wait_for_output("waiting")
        self.assert_ends(b.run("--local-addr=127.0.0.1", *words), 64, "--local-addr=127.0.0.1",
                         "10.77.0.2")
        self.assert_ends(b.run(*words), 0)
        self.assert_ends(first, 0)

    def test_bl39_a_loopback_address_of_the_host_is_refused_by_name(self):
        a, b = self.connect("", "")
        words = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=10.77.0.1:29400",
                 "--no-python", "true"]
        first = a.run("--local-addr=127.0.0.1", *words)
        first.wait_for_output("waiting")
        self.assert_ends(b.run(*words), 78, "10.77.0.2", "127.0.0.1", "give node node-a(127.0.0.1)")
        first.signal(signal.SIGINT)
        self.assert_ends(first, 130)


class TakenPorts(net_kit.Case):
    WORDS = ["--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=10.77.0.1:29400",
             "--rdzv-conf=last_call_timeout=0.1", "--no-python", "true"]

    def test_a_rendezvous_that_stands_still_is_waited_for(self):
        node = self.network(1).nodes[0]
        daemon = node.muster("rendezvous", "--listen=10.77.0.1:29400", "--insecure")
        daemon.wait_for_output("listens at")
        self.freeze(daemon.pid)
        process = node.run(*self.WORDS)
        process.wait_for_output("doesn't answer yet; waiting for it for 600 s (join_timeout)")
        self.assertIn("process %d" % daemon.pid, process.err)
        self.thaw(daemon.pid)
        self.assert_ends(process, 0)
        self.assertEqual(process.err.count("doesn't answer yet"), 1, process.said())
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_the_wait_for_it_can_be_ended(self):
        node = self.network(1).nodes[0]
        daemon = node.muster("rendezvous", "--listen=10.77.0.1:29400", "--insecure")
        daemon.wait_for_output("listens at")
        self.freeze(daemon.pid)
        process = node.run(*self.WORDS)
        process.wait_for_output("doesn't answer yet")
        process.signal(signal.SIGINT)
        self.assert_ends(process, 130, "stopped by SIGINT")
        self.thaw(daemon.pid)
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def test_bl41_a_given_port_that_is_busy_is_named_with_its_holder(self):
        node = self.network(1).nodes[0]
        server = node.tool(net_kit.PYTHON, "-c", GREETER)
        server.wait_for_output("listens")
        words = ["--no-python", "true"]
        self.assert_ends(node.run("--master-port=29700", *words), 69, "port 29700",
                         "process %d" % server.pid, "--master-port")
        self.assert_ends(node.run("--nnodes=1:2", "--rdzv-endpoint=10.77.0.1:29700", *words), 69,
                         "port 29700", "process %d" % server.pid, "no muster rendezvous",
                         "--rdzv-endpoint")


if __name__ == "__main__":
    process_kit.main()
