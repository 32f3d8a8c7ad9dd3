#!/usr/bin/python3
"""A node that hosts the rendezvous and is refused by its own job: whoever waits, or comes a little later, is told."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

PRELOADED = os.environ.get("HELD_CONNECTS_LIBRARY") or os.path.join(
    process_kit.ROOT, "tests", "integration", "libheld_connects.so")
REASON = "the node that hosts the rendezvous was refused"


class RefusedHost(process_kit.Case):
    def node(self, number, *words, **options):
        return self.start("run", "--rdzv-endpoint=127.0.0.1:%d" % self.port, "--rdzv-id=job",
                          "--local-addr=127.0.0.%d" % number, *words, "--no-python", "true", **options)

    def test_nodes_that_wait_or_come_late_are_told(self):
        self.port = process_kit.free_port()
        # Its rendezvous listens, but its own agent comes after another node has set the terms.
        gate = os.path.join(self.work, "gate")
        host = self.node(1, "--nnodes=2:5", env={"LD_PRELOAD": PRELOADED, "HELD_CONNECTS": gate})
        other = ("--nnodes=2:4", "--rdzv-conf=is_host=0")
        first = self.node(2, *other)
        first.wait_for_output("waiting for 1 more node")
        self.write("gate", "")
        host.wait_for_output("stays for 5 s, to tell nodes that come late")
        self.assert_ends(first, 78, REASON, "2:5")
        late = self.node(3, *other)
        self.assert_ends(late, 78, REASON, "2:5")
        host.signal(signal.SIGINT)
        self.assert_ends(host, 78, "--nnodes 2:5", "with 2:4")


if __name__ == "__main__":
    process_kit.main()
