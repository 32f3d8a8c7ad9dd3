#!/usr/bin/python3
"""The shell examples, as the README runs them: from the root of the repository."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit


class Examples(process_kit.Case):
    def run_example(self, name):
        process = process_kit.Process(self, [os.path.join("examples", name)], cwd=process_kit.ROOT,
                                      env={"MUSTER_BINARY": process_kit.MUSTER})
        self.assert_ends(process, 0)
        return process

    def test_hello_ranks(self):
        lines = self.run_example("hello_ranks.sh").out.splitlines()
        self.assertEqual(len(lines), 4, lines)
        for i in range(4):
            self.assertTrue(any("hello from rank %d of 4" % i in line for line in lines), lines)

    def test_multi_node(self):
        process = self.run_example("multi_node.sh")
        self.assertRegex(process.out.splitlines()[-1],
                         r"^multi_node: ok world=3,2 nodes_lost=1 restarts_charged=0 "
                         r"reformed_ms=\d+$")
        self.assertEqual(process.err, "")


if __name__ == "__main__":
    process_kit.main()
