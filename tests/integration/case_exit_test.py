#!/usr/bin/python3
"""The cases of the area EXIT (tests/CASES.md): the status of the whole, and the cause of death.
Lack of memory is told from other kills in the tests that have bl29 in their names elsewhere."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for


class StatusOfTheWhole(process_kit.Case):
    """BL-27: never 0 for a job that failed, by rules that docs/failures.md states."""

    def check(self, code, words, *sentences):
        process = self.standalone("--nproc-per-node=2", "--no-python", *words)
        self.assert_ends(process, code, *sentences)
        return process

    def one_line(self, process, *parts):
        """One line names all of these."""
        self.assertTrue(any(all(part in line for part in parts)
                            for line in process.err.splitlines()), process.err)

    def test_bl27_a_workers_own_code(self):
        for code in (1, 3, 64, 126, 127, 128, 255):
            with self.subTest(code=code):
                process = self.check(code, ["sh", "-c", "exit %d" % code])
                pid = re.findall(r"exitcode  : %d \(pid: (\d+)\)" % code, process.err)[-1]
                self.one_line(process, "muster: sh: ", "rank", "pid " + pid,
                              "exited with code %d" % code)

    def test_bl27_a_signal(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV,
                       signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number.name):
                process = self.check(128 + number, ["sh", "-c", "kill -%d $$; sleep 9" % number],
                                     number.name)
                self.one_line(process, "muster: sh: ", "rank", "pid ", "by signal %d" % number)

    def test_bl27_a_real_time_signal(self):
        process = self.check(128 + 40, ["sh", "-c", "kill -40 $$; sleep 9"], "SIGRTMIN+6")
        self.one_line(process, "muster: sh: ", "by signal 40")

    def test_bl27_what_can_not_be_started(self):
        self.write("plain", "echo\n", 0o755)
        for words, code in ((["/no/such"], 127), (["no-such-program"], 127),
                            (["/etc/passwd"], 126), (["./plain"], 126), (["/"], 126)):
            with self.subTest(words=words):
                process = self.check(code, words)
                self.one_line(process, words[0], "muster: ")

    def test_bl27_python_that_raises(self):
        self.write("train.py", "raise RuntimeError('wrong shape')\n")
        process = self.standalone("train.py")
        self.assert_ends(process, 1, "train.py FAILED", "RuntimeError: wrong shape")
        self.one_line(process, "muster: train.py: ", "rank 0", "exited with code 1")

    def test_bl27_one_of_many(self):
        process = self.check(5, ["sh", "-c", process_kit.ALL_ARE_UP +
                                 "[ $RANK = 1 ] && exit 5; exec sleep 600"])
        self.one_line(process, "muster: sh: ", "rank 1 ", "exited with code 5")

    def test_bl27_the_first_one_decides(self):
        process = self.check(5, ["sh", "-c", process_kit.ALL_ARE_UP +
                                 "trap 'exit 9' TERM; [ $RANK = 1 ] && exit 5; "
                                 "while :; do sleep 0.05; done"])
        self.assertIn("Root Cause (first observed failure):\n[0]:", process.err)

    def test_bl27_an_error_file_does_not_make_it_good(self):
        process = self.check(1, ["sh", "-c", 'echo \'{"message": {"message": "m", "errorCode": 0}}\''
                                 " > $TORCHELASTIC_ERROR_FILE; exit 1"])
        self.one_line(process, "exited with code 1")


class Nodes(cluster_kit.Cluster):
    def test_bl27_the_same_on_every_node(self):
        daemon = self.start_daemon()
        nodes = [self.node(i, "--no-python", "sh", "-c", "[ $RANK = 1 ] && exit 5; exec sleep 600")
                 for i in (1, 2)]
        for node in nodes:
            self.assert_ends(node, 5, "rank      : 1 (local_rank: 0)",
                             "worker rank 1 (local rank 0, pid ")
        self.end_daemon(daemon)

    def test_bl27_a_follower_elsewhere_is_shown_as_one(self):
        daemon = self.start_daemon()
        # Rank 1 fails soon after it sees rank 0's end, on a busy machine before muster's word reaches
        # it. The way of the news from either node takes a while of its own, hence the sleep.
        script = ("echo $$ > pid.$RANK; until [ -s pid.0 -a -s pid.1 ]; do sleep 0.01; done; "
                  "[ $RANK = 0 ] && { sleep 0.2; exit 7; }; "
                  "trap '' TERM; while kill -0 $(cat pid.0) 2> /dev/null; do :; done; "
                  "sleep 0.02; exit 4")
        nodes = [self.node(i, "--no-python", "bash", "-c", script) for i in (1, 2)]
        for node in nodes:
            self.assert_ends(node, 7, "Root Cause (first observed failure):\n[0]:",
                             "rank      : 0 (local_rank: 0)")
            if "exitcode  : 4" in node.err:
                self.assertRegex(node.err, r"follower  : \d+ ms after rank 0")
        self.end_daemon(daemon)

    def test_bl29_a_node_that_is_killed_as_a_whole_is_lost(self):
        daemon = self.start_daemon()
        nodes = [self.node(i, "--rdzv-conf=last_call_timeout=1", "--no-python", "sh", "-c",
                           cluster_kit.PLACE + cluster_kit.UNTIL_FINISH, nnodes="1:2")
                 for i in (1, 2)]
        for node in nodes:
            node.wait_for_output("/2 attempt 0")
        guardian = process_kit.guardian_of(nodes[0].pid)
        for pid in [nodes[0].pid, guardian] + process_kit.descendants(guardian):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        nodes[0].wait()
        nodes[1].wait_for_output("0/1 attempt 1")
        self.assertRegex(nodes[1].err, r"round 1 stops: lost node \S+\(127.0.0.1\)")
        self.assertNotIn("memory", nodes[1].err)
        self.finish(nodes[1:])
        self.end_daemon(daemon)
        self.remove_orphaned_folder()


class CauseOfDeath(process_kit.Case):
    """BL-29, its control: a diagnosis rests on evidence, or says that there is none."""

    def test_bl29_killed_by_hand(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(signal=number.name):
                process = self.start("run", "--standalone", "--nproc-per-node=2", "--prefix=never",
                                     "--no-python", "sh", "-c", "echo up $RANK $$; exec sleep 600")
                wait_for(lambda: process.out.count("up") == 2, "both workers")
                victim = int(re.search(r"up 1 (\d+)", process.out).group(1))
                os.kill(victim, number)
                said = "by signal %d (%s), sent from outside muster, the sender is unknown" % (
                    number, number.name)
                self.assert_ends(process, 128 + number, said,
                                 "rank      : 1 (local_rank: 1)", "<NO_OTHER_FAILURES>",
                                 "Signal %d (%s) received by PID %d, sent from outside" %
                                 (number, number.name, victim))
                self.assertNotIn("memory", process.err)
                self.assertNotIn("oom", process.err.lower())

    def test_bl29_a_programs_own_signal_is_not_from_outside(self):
        process = self.standalone("--no-python", "sh", "-c", "kill -SEGV $$; sleep 9")
        self.assert_ends(process, 139, "SIGSEGV")
        self.assertNotIn("outside", process.err)


if __name__ == "__main__":
    process_kit.main()
