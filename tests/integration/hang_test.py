#!/usr/bin/python3
"""Workers that hang: found by --hang-timeout, looked at, killed, and named as the cause."""
import glob
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "hang_worker")

STUCK = """
import faulthandler, os, signal, subprocess, sys, time
faulthandler.register(signal.SIGUSR1)
teller = subprocess.Popen([sys.argv[1], "tell"])
def compute_the_loss():
    while True:
        time.sleep(0.1)
compute_the_loss()
"""


class Hangs(process_kit.Case):
    def watched(self, *words, timeout=2, **options):
        return self.start("run", "--standalone", "--result-file=result.json",
                          "--shutdown-timeout=5", "--hang-timeout=%g" % timeout, *words, **options)

    def result(self):
        with open(os.path.join(self.work, "result.json")) as file:
            return json.load(file)

    def test_the_rank_that_is_behind_is_the_cause(self):
        process = self.watched("--nproc-per-node=3", "--log-dir=logs", "--no-python", WORKER, "loop", 1)
        self.assert_ends(process, 137, "rank 1 (local rank 1, pid ",
                         "hung and was killed: it completed no step for ",
                         "after step 5 (--hang-timeout=",
                         "ranks 0, 2 got further and stand still as well",
                         "last step : 5", "rank      : 1 (local_rank: 1)", "hung and was killed; ")
        result = self.result()
        self.assertEqual(result["exit_code"], 137)
        root = result["failures"][0]
        self.assertEqual((root["role"], root["rank"], root["hung"], root["last_step"]),
                         ("root_cause", 1, True, 5))
        self.assertIn("; its main thread ", root["evidence"])
        # Those that waited for it were told so, and followed.
        for follower in result["failures"][1:]:
            self.assertEqual((follower["role"], follower["hung"], follower["exit_code"]),
                             ("follower", False, 1))
        # The SDK showed the stack of its main thread, and the kernel's view is kept beside it.
        self.assertIn("muster: stack of the main thread of process %d:\n  #0 0x" % root["pid"],
                      root["stderr_tail"])
        with open(root["stacks_file"]) as file:
            stacks = file.read()
        self.assertIn("process %d (hang_worker): " % root["pid"], stacks)
        self.assertIn("muster: stack of the main thread", stacks)
        self.assertEqual(glob.glob(self.work + "/logs/*/attempt_0/1/stacks.txt"),
                         [root["stacks_file"]])

    def test_a_stopped_process_is_the_cause_and_is_charged(self):
        process = self.watched("--nproc-per-node=2", "--max-restarts=1", "--no-python", "sh", "-c",
                               'echo $$ > pid.$TORCHELASTIC_RESTART_COUNT.$RANK; '
                               '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; exec "$0" go-on',
                               WORKER)
        wait_for(lambda: "[default1]:step 3\n" in process.out and "[default0]:step 3\n" in process.out,
                 "steps of both")
        os.kill(int(process_kit.read(os.path.join(self.work, "pid.0.1"))), signal.SIGSTOP)
        self.assert_ends(process, 0, "rank 1 (local rank 1, pid ",
                         "hung and was killed: its process gave no sign of life for ",
                         "is stopped by a signal (T)")
        result = self.result()
        self.assertTrue(result["succeeded"])
        self.assertEqual(result["restarts_charged"], 1)
        self.assertEqual(result["attempt"], 1)

    def test_a_stopped_process_needs_no_step_to_be_found(self):
        process = self.watched("--no-python", "sh", "-c", 'echo $$ > pid; exec "$0" idle', WORKER)
        process.wait_for_output("up\n")
        os.kill(int(process_kit.read(os.path.join(self.work, "pid"))), signal.SIGSTOP)
        self.assert_ends(process, 137, "hung and was killed: its process gave no sign of life for ",
                         "is stopped by a signal (T)")
        self.assertIsNone(self.result()["failures"][0]["last_step"])

    def test_faulthandler_shows_where_python_hangs(self):
        self.write("stuck.py", STUCK)
        process = self.watched("--nproc-per-node=1", "stuck.py", WORKER)
        self.assert_ends(process, 137, "in compute_the_loss", "stuck.py FAILED", "after step 1")
        root = self.result()["failures"][0]
        self.assertTrue(root["hung"])
        self.assertIn("compute_the_loss", root["stderr_tail"])
        # No folder is kept: the evidence has what there is.
        self.assertIsNone(root["stacks_file"])
        self.assertIn("; its main thread ", root["evidence"])

    def test_the_signal_can_be_another_or_none(self):
        self.write("stuck.py", STUCK.replace("SIGUSR1", "SIGUSR2"))
        process = self.watched("--stack-signal=SIGUSR2", "stuck.py", WORKER)
        self.assert_ends(process, 137, "in compute_the_loss")
        process = self.watched("--stack-signal=none", "stuck.py", WORKER)
        self.assert_ends(process, 137, "hung and was killed")
        self.assertNotIn("in compute_the_loss", process.err)

    def test_who_reports_no_step_or_has_left_never_hangs(self):
        for words in (["sh", "-c", "until [ -e go ]; do sleep 0.02; done"], [WORKER, "leave"]):
            process = self.watched("--nproc-per-node=2", "--no-python", *words, timeout=1)
            other = self.watched("--no-python", WORKER, "loop", 0, timeout=1)
            # A worker that does hang takes more than the timeout: by then the others would have, too.
            self.assert_ends(other, 137, "hung and was killed")
            other = self.watched("--no-python", WORKER, "loop", 0, timeout=1)
            self.assert_ends(other, 137, "hung and was killed")
            self.assertTrue(process.is_running(), process.said())
            self.write("go", "")
            self.assert_ends(process, 0)
            os.remove(os.path.join(self.work, "go"))

    def test_usage(self):
        for word, said in [("--hang-timeout=0.5", "0 (off), or at least 1 second"),
                           ("--hang-timeout=x", "--hang-timeout"),
                           ("--stack-signal=SIGKILL", "the name of a signal that can be caught"),
                           ("--stack-signal=NOPE", "the name of a signal that can be caught")]:
            with self.subTest(word):
                self.assert_ends(self.standalone(word, "--no-python", "true"), 64, said)


if __name__ == "__main__":
    process_kit.main()
