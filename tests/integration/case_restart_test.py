#!/usr/bin/python3
"""The cases of the area RESTART (tests/CASES.md): what carries over, and what is worth a retry."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for


class EarlierAttempts(cluster_kit.Cluster):
    """BL-11: one round number for all, and no value of another round."""

    def start_one(self, number):
        return self.node(number, "--max-restarts=9", "--no-python", cluster_kit.CASE_WORKER, "uid")

    def lines(self, node):
        return re.findall(r"^round (\d+) attempt (\d+) rank \d of 2 uid (\S+)$", node.out,
                          re.MULTILINE)

    def wait_for_round(self, nodes, number):
        """All are in the round of this number, with one value."""
        def seen():
            last = [self.lines(node)[-1:] for node in nodes]
            return all(last) and {int(lines[0][0]) for lines in last} == {number}
        wait_for(seen, "round %d of %s" % (number, [node.out for node in nodes]))
        last = {self.lines(node)[-1] for node in nodes}
        self.assertEqual(len(last), 1, last)
        self.assertEqual(last.pop()[1], str(number - 1))

    def test_bl11_rounds_and_their_keys_after_failures_and_a_replacement(self):
        daemon = self.start_daemon()
        a, b = self.start_one(1), self.start_one(2)
        self.wait_for_round([a, b], 1)
        for number in (1, 2, 3):
            self.write("fail.%d" % number, "")
            self.wait_for_round([a, b], number + 1)
        b.signal(signal.SIGKILL)
        b.wait()
        a.wait_for_output("waiting for 1 more node")
        # Its own count of attempts would be 0.
        b = self.start_one(3)
        self.wait_for_round([a, b], 5)
        self.write("fail.5", "")
        self.wait_for_round([a, b], 6)
        self.finish([a, b])
        rounds = [int(line[0]) for line in self.lines(a)]
        self.assertEqual(rounds, [1, 2, 3, 4, 5, 6])
        self.assertEqual(len({line[2] for line in self.lines(a)}), 6)
        self.end_daemon(daemon)


class Budget(process_kit.Case):
    """BL-14: no retry of what can't go away; one copy of the first error."""

    def summary(self, process):
        """What is printed at the end, from the name that FAILED on."""
        border = process.err.index("=" * 20)
        self.assertEqual(process.err.count(" FAILED\n"), 1, process.err)
        return process.err[border:]

    def test_bl14_our_own_start_is_never_retried(self):
        self.write("plain", "echo\n", 0o755)
        self.write("odd", "#!/no/such/interpreter\n", 0o755)
        self.write("data", "")
        for words, code in ((["/no/such"], 127), (["no-such-program"], 127), (["./odd"], 127),
                            (["./plain"], 126), (["./data"], 126), (["/tmp"], 126)):
            with self.subTest(words=words):
                process = self.standalone("--nproc-per-node=4", "--max-restarts=3", "--no-python",
                                          *words)
                self.assert_ends(process, code, words[0])
                self.assertNotIn("round 2", process.err)

    def test_bl14_a_missing_script_is_never_retried(self):
        process = self.standalone("--nproc-per-node=4", "--max-restarts=3", "no_such_script.py")
        self.assert_ends(process, 127, '"no_such_script.py"')
        self.assertEqual(process.err.count("\n"), 1, process.err)

    def test_bl14_a_program_that_goes_between_attempts_ends_the_job(self):
        path = self.write("once", "#!/bin/sh\nrm $0\nexit 3\n", 0o755)
        process = self.standalone("--max-restarts=9", "--no-python", path)
        self.assert_ends(process, 127, path)
        self.assertNotIn("round 3", process.err)

    def test_bl14_a_module_that_is_not_there_is_said_once(self):
        process = self.standalone("--nproc-per-node=4", "--max-restarts=3", "-m", "no.such.module")
        self.assert_ends(process, 1)
        summary = self.summary(process)
        self.assertEqual(summary.count("ModuleNotFoundError"), 1, summary)
        self.assertEqual(summary.count("last lines of stderr:"), 1, summary)

    def test_bl14_a_worker_that_ends_at_once_is_said_once(self):
        process = self.standalone("--max-restarts=3", "--no-python", "sh", "-c",
                                  "echo why >&2; exit 2")
        self.assert_ends(process, 2)
        self.assertEqual(self.summary(process).count("why"), 1, process.err)

    def test_bl14_no_restart_by_default(self):
        process = self.standalone("--no-python", "sh", "-c",
                                  "echo $TORCHELASTIC_MAX_RESTARTS; exit 2")
        self.assert_ends(process, 2, "--max-restarts is 0")
        self.assertEqual(process.out, "0\n")


if __name__ == "__main__":
    process_kit.main()
