#!/usr/bin/python3
"""The training example loses a node to a preemption: both nodes save after one step, the preempted one
ends with 75, and the other goes on alone from exactly there to the result that a run by hand has."""
import os
import re
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import ROOT

TRAINER = os.environ.get("FASHION_MNIST") or os.path.join(
    ROOT, "examples", "fashion_mnist", "fashion_mnist")
DATA = "/usr/share/datasets/fashion-mnist"
BATCH = 32
IMAGES = 6000
# Seconds of training: a signal after the first epoch has to find the job at work.
EPOCHS = 16
# No checkpoint but those that are asked for, and the last one.
NEVER = 1000000


@unittest.skipUnless(os.path.isdir(DATA), "dataset-fashion-mnist isn't installed")
class PreemptedTraining(process_kit.Case):
    def command(self, checkpoints, *options, every=NEVER):
        return ["--no-python", TRAINER, "--checkpoint-dir=" + os.path.join(self.work, checkpoints),
                "--checkpoint-every=%d" % every, "--limit=%d" % IMAGES, "--batch=%d" % BATCH,
                "--epochs=%d" % EPOCHS, *options]

    def node(self, number):
        return self.start("run", "--nnodes=1:2", "--rdzv-id=job",
                          "--rdzv-endpoint=127.0.0.1:%d" % self.port,
                          "--rdzv-conf=last_call_timeout=30,join_timeout=60",
                          "--local-addr=127.0.0.%d" % number, *self.command("job"))

    def result(self, process):
        """{name: value} of the line that the program ends with."""
        found = re.search(r"fashion_mnist: (.*)$", process.out, re.MULTILINE)
        self.assertTrue(found, process.said())
        return dict(pair.split("=") for pair in found.group(1).split())

    def test_the_other_node_ends_as_a_run_by_hand_does(self):
        self.port = process_kit.free_port()
        daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        daemon.wait_for_output("listens at")
        nodes = [self.node(1)]
        # The first one has rank 0, which shows how the training goes.
        nodes[0].wait_for_output("1 of 1..2 nodes is here")
        nodes.append(self.node(2))
        nodes[0].wait_for_output("epoch 1/")
        nodes[1].signal(signal.SIGTERM)
        self.assert_ends(nodes[1], 75, "was preempted (SIGTERM) and left after the checkpoint of step")
        self.assert_ends(nodes[0], 0)
        daemon.signal(signal.SIGINT)
        daemon.wait()

        step = int(re.search(r"the checkpoint of step (\d+)", nodes[1].err).group(1))
        result = self.result(nodes[0])
        self.assertEqual((result["world"], result["restarts"], result["resumed_step"]),
                         ("1", "0", str(step)))
        self.assertGreater(float(result["accuracy"]), 0.7)
        # All images of every epoch, each once: so many by two, the others by one.
        by_two = IMAGES // (2 * BATCH) + 1
        epochs, steps = divmod(step, by_two)
        left = max(IMAGES - steps * 2 * BATCH, 0)
        alone = -(-left // BATCH) + (EPOCHS - epochs - 1) * -(-IMAGES // BATCH)
        self.assertIn("checkpoint step=%d\n" % (step + alone), nodes[0].out)

        # The same by hand: two ranks as far as that step, then one from their checkpoint.
        first = self.standalone("--nproc-per-node=2",
                                *self.command("hand", "--stop-after=%d" % step, every=step))
        self.assert_ends(first, 0)
        second = self.standalone(*self.command("hand"))
        self.assert_ends(second, 0)
        self.assertEqual(self.result(second), result)


if __name__ == "__main__":
    process_kit.main()
