"""Nodes with networks of their own on one machine, and the faults that real networks have.

Each node has its own network, mount and host name namespace: an address 10.77.x.y on a link of its
own, its own /etc/hosts and host name. Their cables meet in one more namespace, the switch, where a
bridge joins them and where frames are lost, delayed and slowed down. Nothing of it has a name
outside: a namespace lives as long as the process that holds it, and that one dies with the test.

    class Mine(net_kit.Case):
        def test_it(self):
            net = self.network(3)
            agents = [node.run("--nnodes=3", ..., "true") for node in net.nodes]
            net.lose(source=net.nodes[1])        # node 1 is heard no more, but still hears
            net.heal()

A test is skipped, with the reason, where namespaces are refused. Standard library only.
"""
import ctypes
import ipaddress
import os
import signal
import subprocess
import sys
import time

import process_kit

PYTHON = "/usr/bin/python3"
DELAY_LINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "delay_line.py")
BRIDGE = "br0"
# What these tests do to a namespace of their own, in the order in which a refusal is plainest.
PROBE = """set -e
ip link add br0 type bridge
ip link add port0 type veth peer name eth0
ip tuntap add tap0 mode tap
tc qdisc add dev port0 root tbf rate 1mbit burst 10kb latency 50ms
nft add table bridge probe
mount --make-rprivate /
"""
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_probed = []


def why_not():
    """Why networks can't be made here, in one line; empty where they can."""
    if not _probed:
        result = subprocess.run(["unshare", "-n", "-m", "-u", "sh", "-c", PROBE], check=False,
                                env=_environment({}), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=process_kit.DEADLINE)
        said = result.stdout.decode(errors="replace").strip().splitlines()
        _probed.append((said or ["exit code %d" % result.returncode])[-1]
                       if result.returncode else "")
    return _probed[0]


def _environment(own):
    # ip, tc and nft are in sbin, which a test's PATH may lack.
    path = own.get("PATH") or os.environ.get("PATH", "/usr/bin:/bin")
    return dict(own, PATH=path + ":/usr/sbin:/sbin")


def _die_with_the_test():
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Namespace:
    """Namespaces and the process that holds them."""

    def __init__(self, case, setup):
        self.case = case
        self.holder = process_kit.Process(
            case, ["unshare", "-n", "-m", "-u", "sh", "-c",
                   "set -e\n" + setup + "\necho ready\nexec sleep infinity"],
            env=_environment(case.environment), preexec=_die_with_the_test)
        case.addCleanup(self.end)
        case.namespaces.append(self)

    def wait_until_ready(self):
        self.holder.wait_for_output("ready")

    def command(self, *argv):
        """These words as a command line that runs in here; its pid is the program's own."""
        # Entering a mount namespace leads to its root otherwise.
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "-u", "--wdns=" + self.case.work,
                *map(str, argv)]

    def call(self, script, text=""):
        """Runs lines of shell, with `text` as standard input; fails with what they said."""
        result = subprocess.run(
            self.command("sh", "-e", "-c", script), input=text.encode(), check=False,
            env=_environment(self.case.environment), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=process_kit.DEADLINE)
        said = result.stdout.decode(errors="replace")
        if result.returncode:
            raise AssertionError("%s\nended with %d and said:\n%s\n%s" %
                                 (script, result.returncode, said, text))
        return said

    def start(self, *argv, **options):
        """Any program in here, as a process_kit.Process."""
        options.setdefault("preexec", _die_with_the_test)
        return process_kit.Process(self.case, self.command(*argv), **options)

    def tool(self, *argv, **options):
        """A program of the test's own, which the test's end ends: what start() runs has to end by
        itself."""
        process = self.start(*argv, **options)
        self.case.tools.append(process)
        return process

    def end(self):
        _end(self.holder)


class Node(Namespace):
    """One node: what runs in it sees its own address, host name and /etc/hosts."""

    def __init__(self, net, index, name, address, link, hosts):
        self.net = net
        self.index = index
        self.name = name
        self.address = address
        self.link = link
        self.port = "port%d" % index
        path = net.case.write("hosts.%d" % index, "127.0.0.1 localhost\n" + hosts)
        super().__init__(net.case, "mount --make-rprivate /\nmount --bind '%s' /etc/hosts\n"
                                   "hostname '%s'\nip link set lo up" % (path, name))

    def cable(self):
        """Lines for the switch that connect this node to it."""
        return ("ip link add %s type veth peer name %s netns %d\n"
                "ip link set %s master %s up\n" %
                (self.port, self.link, self.holder.pid, self.port, BRIDGE))

    def configure(self):
        self.call("ip address add %s/16 dev %s\nip link set %s up" %
                  (self.address, self.link, self.link))

    def run(self, *words, **options):
        """`muster run` with these words in this node."""
        return self.start(process_kit.MUSTER, "run", *words, **options)

    def muster(self, *words, **options):
        """`muster` with these words in this node."""
        return self.start(process_kit.MUSTER, *words, **options)

    # ---- faults of its link -----------------------------------------------------------------

    def unplug(self):
        """Pulls the cable: the node sees that its link is dead."""
        self.net.switch.call("ip link set %s down" % self.port)

    def plug_in(self):
        self.net.switch.call("ip link set %s up" % self.port)

    def link_down(self):
        """Takes the interface down inside: whatever is sent is refused on the spot."""
        self.call("ip link set %s down" % self.link)

    def link_up(self):
        self.call("ip link set %s up" % self.link)

    def change_address(self, address):
        self.call("ip address del %s/16 dev %s\nip address add %s/16 dev %s" %
                  (self.address, self.link, address, self.link))
        self.address = address

    def limit_rate(self, rate):
        """Both ways, in the words of tc(8): "256kbit"."""
        shape = "tc qdisc replace dev %s root tbf rate " + rate + " burst 16kb latency 400ms"
        self.call(shape % self.link)
        self.net.switch.call(shape % self.port)

    def delay(self, seconds):
        """Both ways: a round trip takes twice as long. For as long as the test runs."""
        near, far = "near%d" % self.index, "far%d" % self.index
        line = self.net.switch.tool(PYTHON, DELAY_LINE, near, far, "%g" % seconds)
        line.wait_for_output("ready")
        # Frames enter and leave the bridge here from now on.
        port, self.port = self.port, near
        self.net.switch.call(
            "ip link add side%d type bridge\nip link set side%d up\nip link set %s master %s up\n"
            "ip link set %s master side%d up\nip link set %s master side%d" %
            (self.index, self.index, near, BRIDGE, far, self.index, port, self.index))

    # ---- connections ------------------------------------------------------------------------

    def connections_to(self, port):
        """Local ports of this node's established connections to this port."""
        found = []
        # Programs may well use sockets of IPv6 for addresses of IPv4.
        for table in ("tcp", "tcp6"):
            text = process_kit.read("/proc/%d/net/%s" % (self.holder.pid, table)).decode()
            for row in text.splitlines()[1:]:
                local, remote, state = row.split()[1:4]
                if state == "01" and int(remote.split(":")[1], 16) == port:
                    found.append(int(local.split(":")[1], 16))
        return found

    def reset_connections(self, port):
        """A middlebox forgets the flows to this port and answers what either end sends on them by a
        reset. New flows are let through. Returns the forgotten ones' local ports."""
        flows = self.connections_to(port)
        if not flows:
            raise AssertionError("%s has no connection to port %d" % (self.name, port))
        ports = "{ %s }" % ", ".join(map(str, flows))
        self.call("nft -f -", "table inet middlebox {\n"
                  " chain input {\n  type filter hook input priority 0\n"
                  "  tcp sport %d tcp dport %s tcp flags & rst == 0 reject with tcp reset\n }\n"
                  " chain output {\n  type filter hook output priority 0\n"
                  "  tcp dport %d tcp sport %s tcp flags & rst == 0 reject with tcp reset\n }\n}\n" %
                  (port, ports, port, ports))
        return flows


class Network:
    """The nodes and the switch between them."""

    def __init__(self, case, count, names=(), links=(), hosts=None):
        """Node i is called names[i] and its interface links[i]; "node-i" and "eth0" by default.
        `hosts(i)` is the rest of its /etc/hosts; all nodes by their names by default."""
        self.case = case
        self._faults = []
        names = list(names) + ["node-%d" % i for i in range(len(names), count)]
        links = list(links) + ["eth0"] * (count - len(links))
        addresses = [address_of(i) for i in range(count)]
        everybody = "".join("%s %s\n" % pair for pair in zip(addresses, names))
        self.switch = Namespace(case, "ip link add %s type bridge\nip link set %s up" %
                                (BRIDGE, BRIDGE))
        self.nodes = [Node(self, i, names[i], addresses[i], links[i],
                           hosts(i) if hosts else everybody) for i in range(count)]
        for namespace in [self.switch, *self.nodes]:
            namespace.wait_until_ready()
        self.switch.call("".join(node.cable() for node in self.nodes))
        for node in self.nodes:
            node.configure()

    def lose(self, source=None, target=None, share=1.0):
        """Frames from `source` to `target` (nodes; everyone by default) are lost from now on: this
        share of them, at random. One way; what was asked for before stays."""
        match = ""
        if source is not None:
            match += 'iifname "%s" ' % source.port
        if target is not None:
            match += 'oifname "%s" ' % target.port
        if share < 1.0:
            match += "numgen random mod 1000 < %d " % round(share * 1000)
        self._faults.append(match + "drop")
        self._apply()

    def partition(self, *groups):
        """Nodes of different groups (lists of nodes) hear each other no more."""
        for group in groups:
            for other in groups:
                if group is other:
                    continue
                self._faults.append("iifname { %s } oifname { %s } drop" % tuple(
                    ", ".join('"%s"' % node.port for node in side)
                    for side in (group, other)))
        self._apply()

    def heal(self):
        """Ends all that lose() and partition() asked for."""
        self._faults = []
        self._apply()

    def _apply(self):
        # The declaration in front makes the deletion valid the first time too; one transaction.
        self.switch.call("nft -f -", "table bridge faults\ndelete table bridge faults\n"
                         "table bridge faults {\n chain forward {\n"
                         "  type filter hook forward priority 0; policy accept\n  %s\n }\n}\n" %
                         "\n  ".join(self._faults))


def address_of(index):
    """Of node `index`, as Network gives them out."""
    return str(ipaddress.ip_address("10.77.0.1") + index)


class Case(process_kit.Case):
    """A test with networks; skipped, with the reason, where they can't be made."""

    def setUp(self):
        reason = why_not()
        if reason:
            self.skipTest("networks can't be made here: " + reason)
        self.namespaces = []
        self.tools = []
        self._frozen = set()
        super().setUp()

    def tearDown(self):
        for pid in self._frozen:
            _send(pid, signal.SIGCONT)
        for tool in self.tools:
            _end(tool)
        for namespace in self.namespaces:
            namespace.end()
        super().tearDown()

    def network(self, count, **options):
        return Network(self, count, **options)

    def freeze(self, pid):
        """SIGSTOP, and waits until it stands still."""
        os.kill(pid, signal.SIGSTOP)
        self._frozen.add(pid)
        process_kit.wait_for(lambda: process_kit.state_of(pid) in ("T", "t"),
                             "process %d to stand still" % pid)

    def thaw(self, pid):
        self._frozen.discard(pid)
        os.kill(pid, signal.SIGCONT)

    def let_pass(self, seconds, unless=lambda: None):
        """Nothing tells that time has passed but time. `unless` may raise to end the wait early."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            unless()
            time.sleep(0.02)


def _end(process):
    if process.is_running():
        process.signal(signal.SIGKILL)
        process.popen.wait()


def _send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    sys.exit("net_kit.py holds no tests; net_kit_test.py does")
