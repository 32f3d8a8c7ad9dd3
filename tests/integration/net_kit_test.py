#!/usr/bin/python3
"""The network kit itself: each of its faults does what it says, and only that."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import net_kit
import process_kit
from process_kit import wait_for

# Says what it gets as UDP datagrams, one a line.
LISTENER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 5000))
print("listens", flush=True)
while True:
    print(s.recv(2000).decode(), flush=True)
"""
# Sends argv[2] datagrams called argv[3] to argv[1].
SENDER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[2])):
    try:
        s.sendto(sys.argv[3].encode(), (sys.argv[1], 5000))
    except OSError as e:
        print(e)
"""
# Answers each byte of each connection, and also says something by itself now and then with "talk".
ECHO = """
import socket, sys, threading, time
def serve(c):
    try:
        while sys.argv[1:]:
            c.sendall(b".")
            time.sleep(0.05)
        while c.sendall(c.recv(65536) or sys.exit()) is None: pass
    except OSError as e:
        print(e, flush=True)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 6000))
s.listen()
print("listens", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""
# Connects, says so, and sends a byte a line of standard input; measures the round trip.
ASKER = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 6000), 20)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("connected", flush=True)
payload = b"x" * int(sys.argv[2])
for line in sys.stdin:
    begin = time.monotonic()
    try:
        s.sendall(payload)
        left = len(payload)
        while left: left -= len(s.recv(65536)) or sys.exit("closed")
        print("took %.3f" % (time.monotonic() - begin), flush=True)
    except OSError as e:
        print(e, flush=True)
        break
"""


class Kit(net_kit.Case):
    def listener(self, node):
        process = node.tool(net_kit.PYTHON, "-c", LISTENER)
        process.wait_for_output("listens")
        return process

    def send(self, source, target, word, count=1):
        return source.call('%s -c "$(cat)" %s %d %s' %
                           (net_kit.PYTHON, target.address, count, word), SENDER)

    def assert_hears(self, source, target, listener, word):
        def heard():
            self.send(source, target, word)
            return word in listener.out
        wait_for(heard, "%s at %s" % (word, target.name))

    def asker(self, node, target, size=1):
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        process = node.tool(net_kit.PYTHON, "-c", ASKER, target.address, str(size), stdin=reader)
        os.close(reader)
        process.wait_for_output("connected")
        return process, lambda: os.write(writer, b"\n")


class Faults(Kit):
    def test_a_loss_is_one_way(self):
        net = self.network(3)
        a, b, c = net.nodes
        listeners = {node: self.listener(node) for node in net.nodes}
        self.assert_hears(a, b, listeners[b], "before")
        self.assert_hears(b, a, listeners[a], "before")
        net.lose(source=a)
        # What a hears from b proves that b's side of the way works meanwhile.
        self.send(a, b, "lost")
        self.assert_hears(b, a, listeners[a], "while")
        self.assert_hears(b, c, listeners[c], "while")
        self.assertNotIn("lost", listeners[b].out)
        net.heal()
        self.assert_hears(a, b, listeners[b], "after")
        self.assertNotIn("lost", listeners[b].out)

    def test_a_share_is_lost(self):
        net = self.network(2)
        a, b = net.nodes
        listener = self.listener(b)
        self.assert_hears(a, b, listener, "before")
        net.lose(source=a, target=b, share=0.5)
        self.send(a, b, "some", count=200)
        net.heal()
        self.assert_hears(a, b, listener, "after")
        # Further from 100 than 60 is less likely than one in 10^16.
        self.assertTrue(40 < listener.out.count("some") < 160, listener.out.count("some"))

    def test_a_partition_and_its_end(self):
        net = self.network(3)
        a, b, c = net.nodes
        listeners = {node: self.listener(node) for node in net.nodes}
        self.assert_hears(a, c, listeners[c], "before")
        net.partition([a, b], [c])
        self.send(a, c, "lost")
        self.send(c, a, "lost")
        self.assert_hears(a, b, listeners[b], "within")
        net.heal()
        self.assert_hears(c, a, listeners[a], "after")
        self.assert_hears(a, c, listeners[c], "after")
        self.assertNotIn("lost", listeners[a].out + listeners[c].out)

    def test_a_cable_is_pulled(self):
        net = self.network(3)
        a, b, c = net.nodes
        listener = self.listener(b)
        self.assert_hears(a, b, listener, "before")
        a.unplug()
        self.assertIn("NO-CARRIER", a.call("ip link show"))
        # May wait for its neighbour's address and arrive when the cable is back, so no more is said.
        self.send(a, b, "late")
        self.assert_hears(c, b, listener, "while")
        self.assertNotIn("late", listener.out)
        a.plug_in()
        self.assert_hears(a, b, listener, "after")

    def test_a_link_is_taken_down(self):
        net = self.network(2)
        a, b = net.nodes
        listener = self.listener(b)
        self.assert_hears(a, b, listener, "before")
        a.link_down()
        self.assertIn("Network is unreachable", self.send(a, b, "lost"))
        a.link_up()
        self.assert_hears(a, b, listener, "after")
        self.assertNotIn("lost", listener.out)

    def test_an_address_changes(self):
        net = self.network(2)
        a, b = net.nodes
        listener = self.listener(b)
        old = b.address
        self.assert_hears(a, b, listener, "before")
        b.change_address("10.77.1.9")
        self.assertIn("10.77.1.9", b.call("ip -4 address show"))
        self.assertNotIn(old + "/", b.call("ip -4 address show"))
        self.assert_hears(a, b, listener, "after")

    def test_a_delay_and_a_loss_behind_it(self):
        net = self.network(2)
        a, b = net.nodes
        echo = b.tool(net_kit.PYTHON, "-c", ECHO)
        echo.wait_for_output("listens")
        b.delay(0.2)
        asker, ask = self.asker(a, b)
        ask()
        asker.wait_for_output("took")
        self.assertGreaterEqual(float(asker.out.split("took ")[1].split()[0]), 0.4)
        listener = self.listener(b)
        self.assert_hears(a, b, listener, "before")
        net.lose(target=b)
        self.send(a, b, "lost")
        net.heal()
        self.assert_hears(a, b, listener, "after")
        self.assertNotIn("lost", listener.out)

    def test_a_rate_limit(self):
        net = self.network(2)
        a, b = net.nodes
        echo = b.tool(net_kit.PYTHON, "-c", ECHO)
        echo.wait_for_output("listens")
        a.limit_rate("1mbit")
        asker, ask = self.asker(a, b, size=100_000)
        ask()
        asker.wait_for_output("took")
        # 100,000 bytes there and back at 1 Mbit/s: both ways at once at best.
        self.assertGreater(float(asker.out.split("took ")[1].split()[0]), 0.5)

    def test_a_middlebox_resets_the_flows_that_it_knew(self):
        net = self.network(2)
        a, b = net.nodes
        echo = b.tool(net_kit.PYTHON, "-c", ECHO)
        echo.wait_for_output("listens")
        asker, ask = self.asker(a, b)
        ask()
        asker.wait_for_output("took")
        flows = a.reset_connections(6000)
        self.assertEqual(len(flows), 1)
        ask()
        asker.wait_for_output("reset by peer")
        fresh, ask = self.asker(a, b)
        ask()
        fresh.wait_for_output("took")

    def test_a_middlebox_resets_the_server_too(self):
        net = self.network(2)
        a, b = net.nodes
        talker = b.tool(net_kit.PYTHON, "-c", ECHO, "talk")
        talker.wait_for_output("listens")
        self.asker(a, b)
        a.reset_connections(6000)
        talker.wait_for_output("reset by peer")


class Names(Kit):
    def test_each_node_has_its_own(self):
        net = self.network(2, names=["alpha"], links=["ethA", "ethB"],
                           hosts=lambda i: "10.77.0.9 only-%d\n" % i)
        for i, node in enumerate(net.nodes):
            self.assertEqual(node.call("hostname").strip(), ["alpha", "node-1"][i])
            self.assertIn(" only-%d\n" % i, node.call("cat /etc/hosts"))
            self.assertIn(["ethA", "ethB"][i], node.call("ip link show"))
            self.assertEqual(node.address, net_kit.address_of(i))


class Ends(Kit):
    # What a test does that is killed in the middle: it has a network and a program in it.
    VICTIM = """
import sys
sys.path.insert(0, %r)
import net_kit
class Victim(net_kit.Case):
    def runTest(self):
        net = self.network(1)
        net.nodes[0].delay(0.1)
        net.nodes[0].start("sleep", "600")
        print(" ".join(str(p.pid) for p in self.processes), flush=True)
        sys.stdin.read()
Victim().debug()
"""

    def test_nothing_outlives_a_killed_test(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        folder = os.path.dirname(os.path.abspath(__file__))
        victim = process_kit.Process(self, [net_kit.PYTHON, "-c", self.VICTIM % folder],
                                     env={"TEST_TMPDIR": self.folder}, stdin=reader)
        os.close(reader)
        victim.wait_for_output("\n")
        pids = [int(word) for word in victim.out.split()]
        self.assertEqual(len(pids), 4, "the switch, the node, the delay line and the program")
        self.assertTrue(all(process_kit.is_alive(pid) for pid in pids))
        victim.signal(signal.SIGKILL)
        wait_for(lambda: not any(process_kit.is_alive(pid) for pid in pids),
                 "the end of what the test had started")

    def test_a_stopped_process_is_no_obstacle(self):
        process = process_kit.Process(self, ["sleep", "600"])
        self.freeze(process.pid)
        self.assertEqual(process_kit.state_of(process.pid), "T")
        self.thaw(process.pid)
        wait_for(lambda: process_kit.state_of(process.pid) != "T", "the process to go on")
        self.freeze(process.pid)
        process.signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)


if __name__ == "__main__":
    process_kit.main()
