"""A rendezvous of its own and agents around it, each with the address of another node."""
import fcntl
import os
import re
import shutil
import signal
import termios

import process_kit
from process_kit import wait_for

ALLREDUCE = os.path.join(process_kit.ROOT, "examples", "allreduce", "allreduce")
CASE_WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "case_worker")
# Once for each line that a worker prints of itself: "RANK/WORLD attempt N".
PLACE = 'echo "$RANK/$WORLD_SIZE attempt $TORCHELASTIC_RESTART_COUNT"; '
UNTIL_FINISH = "until [ -e finish ]; do sleep 0.05; done"


def is_full():
    """Whether the cases run as often and as long as they were reported (tests/CASES.md)."""
    return os.environ.get("MUSTER_CASES_FULL", "") not in ("", "0")


class Terminal:
    """A terminal of its own, as a login's: what is typed, and what a hang-up does."""

    def __init__(self):
        self.master, self.slave = os.openpty()

    def take(self):
        """In the child: a session of its own on this terminal, as the foreground's."""
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def type(self, text):
        os.write(self.master, text)

    def close(self):
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)
        self.master = self.slave = -1


class Cluster(process_kit.Case):
    def setUp(self):
        super().setUp()
        self.port = process_kit.free_port()
        self.endpoint = "127.0.0.1:%d" % self.port

    def start_daemon(self, *words):
        daemon = self.start("rendezvous", "--listen=" + self.endpoint, *words)
        daemon.wait_for_output("listens at")
        return daemon

    def end_daemon(self, daemon):
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)

    def node(self, number, *words, nnodes="2", job="job", **options):
        """An agent on 127.0.0.<number>; 0: without an address of its own, as on a host of its own."""
        where = ["--local-addr=127.0.0.%d" % number] if number else []
        return self.start("run", "--nnodes=%s" % nnodes, "--rdzv-backend=c10d",
                          "--rdzv-endpoint=" + self.endpoint, "--rdzv-id=" + job, *where, *words,
                          **options)

    def status(self):
        process = self.run_to_end("status", "--rdzv-endpoint=" + self.endpoint)
        self.assert_ends(process, 0)
        return process.out

    def node_rows(self):
        """[name, address, place, stream, age in seconds] of each node of all jobs."""
        found = re.findall(r"^  (\S+) +(\S+) +(\d+|waits|spare) +(attached|away) +(\d+\.\d) s(?:  .*)?$",
                           self.status(), re.MULTILINE)
        return [[*row[:4], float(row[4])] for row in found]

    def finish(self, nodes):
        self.write("finish", "")
        for node in nodes:
            self.assert_ends(node, 0)

    def remove_orphaned_folder(self):
        """The private folder of a node whose agent and guardian were killed in one instant: nobody
        was left to remove it."""
        for name in os.listdir(self.temporary):
            shutil.rmtree(os.path.join(self.temporary, name))

    def wait_for_steps(self, node, prefix, more=3):
        """`more` further lines that begin so."""
        before = node.out.count(prefix)
        wait_for(lambda: node.out.count(prefix) >= before + more or not node.is_running(),
                 "%d more of %r from %s" % (more, prefix, node.argv))
        self.assertGreaterEqual(node.out.count(prefix), before + more, node.said())
