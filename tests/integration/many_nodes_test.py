#!/usr/bin/python3
"""64 nodes on one machine, on 127.0.0.N: they form, lose one, form again without it, and end."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

NODES = 64
# All of this shares one machine, which may have few cores and other things to do.
PATIENCE = 240
# Light: no process wakes up but to see the end.
WORKER = ('echo "runs round $MUSTER_ROUND: $RANK of $WORLD_SIZE" >> said.$GROUP_RANK.$MUSTER_ROUND; '
          "until [ -e finish ]; do sleep 0.5; done")


class ManyNodes(process_kit.Case):
    def worlds(self, number):
        """What the workers of this round said, by rank."""
        said = {}
        for name in os.listdir(self.work):
            if name.startswith("said.") and name.endswith(".%d" % number):
                text = process_kit.read(os.path.join(self.work, name)).decode()
                if text.endswith("\n"):
                    words = text.split()
                    said[int(words[3])] = int(words[5])
        return said

    def wait_for_world(self, number, size, processes):
        def is_complete():
            for process in processes:
                self.assertTrue(process.is_running(), process.said())
            return self.worlds(number) == dict.fromkeys(range(size), size)
        wait_for(is_complete, "round %d of %d workers" % (number, size), PATIENCE)

    def test_sixty_four_nodes(self):
        daemon = self.start("rendezvous", "--listen=127.0.0.1:0", "--lease=10")
        daemon.wait_for_output("listens at")
        endpoint = daemon.err.split("listens at ")[1].split()[0]
        nodes = [self.start("run", "--nnodes=%d:%d" % (NODES - 1, NODES),
                            "--rdzv-endpoint=" + endpoint, "--rdzv-id=job",
                            "--rdzv-conf=last_call_timeout=%d,lease=10" % PATIENCE,
                            "--local-addr=127.0.0.%d" % (i + 1), "--no-python", "sh", "-c", WORKER)
                 for i in range(NODES)]
        self.wait_for_world(1, NODES, nodes)
        lost = nodes.pop(NODES // 2)
        lost.signal(signal.SIGKILL)
        lost.wait()
        self.wait_for_world(2, NODES - 1, nodes)
        self.write("finish", "")
        for node in nodes:
            self.assertEqual(node.wait(PATIENCE), 0, node.said())
        daemon.signal(signal.SIGTERM)
        self.assert_ends(daemon, 0)


if __name__ == "__main__":
    process_kit.main()
