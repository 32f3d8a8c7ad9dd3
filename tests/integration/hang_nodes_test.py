#!/usr/bin/python3
"""A rank that hangs stops all ranks of all nodes: it is the cause, not the first that is seen to wait."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "stuck_worker")


class HangsOfManyNodes(process_kit.Case):
    def run_nodes(self, *words):
        """Two nodes of two workers each, up to their ends, and what their result files say."""
        port = process_kit.free_port()
        nodes = [self.start("run", "--nnodes=2", "--node-rank=%d" % i, "--nproc-per-node=2",
                            "--master-addr=127.0.0.1", "--master-port=%d" % port,
                            "--local-addr=127.0.0.%d" % (i + 1), "--max-restarts=1",
                            "--hang-timeout=2", "--shutdown-timeout=5", "--log-dir=logs%d" % i,
                            "--result-file=result%d.json" % i, "--no-python", WORKER, *words)
                 for i in (0, 1)]
        results = []
        for i, node in enumerate(nodes):
            self.assert_ends(node, 137)
            with open(os.path.join(self.work, "result%d.json" % i)) as file:
                results.append(json.load(file))
        return nodes, results

    def test_the_rank_in_its_own_code_is_the_cause_on_every_node(self):
        for who in (3, 0):
            with self.subTest(rank=who):
                self.check_own_code(who)

    def check_own_code(self, who):
        nodes, results = self.run_nodes("own-code", who)
        for node, result in zip(nodes, results):
            root, followers = result["failures"][0], result["failures"][1:]
            self.assertEqual((root["rank"], root["hung"], root["only_waited"], root["last_step"]),
                             (who, True, False, 5), node.said())
            self.assertIn("when last asked it had been in its own code, in no collective of the SDK's, for ",
                          root["evidence"])
            self.assertIn("; rank %d waits for others" % (who ^ 1), root["evidence"])
            # The others failed of it, if at all: nobody called them hung.
            self.assertEqual([f for f in followers if f["hung"]], [], node.said())
            self.assertIn("worker rank %d (" % who, result["reason"])
            self.assertIn("hung and was killed", result["reason"])
            self.assertEqual((result["restarts_charged"], result["attempt"]), (1, 1))
            self.assertIn("rank      : %d (local_rank: %d)" % (who, who % 2), node.err)
            with open(os.path.join(self.work, root["stacks_file"])) as file:
                self.assertIn("process %d (stuck_worker): " % root["pid"], file.read())
        self.assertIn("round 1 stops: worker rank %d (" % who, nodes[1 - who // 2].err)

    def test_where_all_wait_nobody_is_called_the_cause(self):
        nodes, results = self.run_nodes("deadlock")
        for node, result in zip(nodes, results):
            root = result["failures"][0]
            self.assertEqual((root["hung"], root["only_waited"]), (True, True), node.said())
            self.assertIn("it waits for other ranks, as does rank %d, and no other node has named one "
                          "that doesn't: they may wait for each other, and which of them is the "
                          "cause can't be told" % (root["rank"] ^ 1), root["evidence"])
            self.assertIn("no rank was found that hangs", result["reason"])
            self.assertEqual((result["restarts_charged"], result["attempt"]), (1, 1))
            self.assertNotIn("hung and was killed", node.err)


if __name__ == "__main__":
    process_kit.main()
