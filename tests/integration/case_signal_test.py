#!/usr/bin/python3
"""The cases of the area SIGNAL (tests/CASES.md): the grace after SIGTERM, and what is inherited."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for

# How long a worker saves, and the grace that is enough for it.
SAVES, ENOUGH = (45, 60) if cluster_kit.is_full() else (2, 40)


class Grace(process_kit.Case):
    """BL-17: only the user knows how long a save takes."""
    WORKER = ('trap "echo term >> terms.$RANK; sleep %d; echo saved > saved.$RANK; exit 0" TERM; '
              'echo up; while :; do sleep 0.1; done')

    def stop(self, *words, saves=SAVES, **options):
        process = self.start("run", "--standalone", "--nproc-per-node=2", *words, "--no-python",
                             "sh", "-c", self.WORKER % saves, **options)
        wait_for(lambda: process.out.count("up\n") == 2, "both workers")
        self.stopped_at = time.monotonic()
        process.signal(signal.SIGTERM)
        return process

    def check_saved(self, process):
        for rank in (0, 1):
            terms = os.path.join(self.work, "terms.%d" % rank)
            wait_for(lambda name=terms: process_kit.read(name), "SIGTERM to both at once", 10)
        self.assertEqual(process.wait(SAVES + process_kit.DEADLINE), 143, process.said())
        self.assertGreaterEqual(time.monotonic() - self.stopped_at, SAVES - 0.1)
        for rank in (0, 1):
            self.assertEqual(process_kit.read(os.path.join(self.work, "saved.%d" % rank)),
                             b"saved\n", process.said())
            # Once each.
            self.assertEqual(process_kit.read(os.path.join(self.work, "terms.%d" % rank)),
                             b"term\n")
        self.assertIn("muster: stopped by SIGTERM\n", process.err)
        self.assertIn("2 workers of this node were stopped by muster: 2 exited when told to",
                      process.err)
        self.assertNotIn("FAILED", process.err)

    def test_bl17_the_flag(self):
        self.check_saved(self.stop("--shutdown-timeout=%d" % ENOUGH))

    def test_bl17_the_variable(self):
        # torchrun's own variable, and the one that each flag has.
        name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
        self.check_saved(self.stop(env={name: str(ENOUGH)}))

    def test_bl17_the_flags_variable(self):
        self.check_saved(self.stop(env={"PET_SHUTDOWN_TIMEOUT": str(ENOUGH)}))

    def test_bl17_the_limit_is_kept(self):
        grace = 2
        process = self.stop("--shutdown-timeout=%d" % grace, saves=600)
        self.assert_ends(process, 143, "2 workers of this node were stopped by muster: 2 killed "
                         "after %d s" % grace)
        took = time.monotonic() - self.stopped_at
        self.assertGreaterEqual(took, grace)
        self.assertLess(took, grace + 20)
        self.assertEqual([name for name in os.listdir(self.work) if name.startswith("saved")], [])

    def test_bl17_the_flag_beats_the_variable(self):
        process = self.stop("--shutdown-timeout=1", saves=600,
                            env={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "600",
                                 "PET_SHUTDOWN_TIMEOUT": "600"})
        self.assert_ends(process, 143, "killed after 1 s")

    def test_bl17_after_a_failure_the_others_have_the_same_grace(self):
        process = self.start(
            "run", "--standalone", "--nproc-per-node=2", "--shutdown-timeout=%d" % ENOUGH,
            "--no-python", "sh", "-c",
            process_kit.ALL_ARE_UP + 'trap "sleep 1; echo saved > saved.$RANK; exit 0" TERM; '
            "[ $RANK = 1 ] && exit 7; touch ready; while :; do sleep 0.1; done")
        self.assert_ends(process, 7)
        if os.path.exists(os.path.join(self.work, "ready")):
            self.assertTrue(os.path.exists(os.path.join(self.work, "saved.0")), process.said())


class Inherited(process_kit.Case):
    """BL-19: a signal that was ignored at the start stays ignored, in the agent and its workers."""
    KINDS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
             signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU, signal.SIGALRM)
    # Not ignored by a shell's background jobs' trick alone: `trap '' X` may ignore any of them.
    WORKER = ("echo mask $(grep -E 'SigIgn|SigBlk' /proc/self/status); "
              "until [ -e go ]; do sleep 0.05; done; echo ok $RANK")

    def begin(self, preexec):
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--prefix=never",
                             "--no-python", "sh", "-c", self.WORKER, preexec=preexec)
        wait_for(lambda: process.out.count("mask") == 2, "both workers")
        return process

    def masks(self, process):
        """(blocked, ignored) of both workers, which are alike."""
        lines = [line.split() for line in process.out.splitlines() if line.startswith("mask")]
        found = {(int(words[2], 16), int(words[4], 16)) for words in lines}
        self.assertEqual(len(found), 1, process.out)
        return found.pop()

    def ignored_by(self, pid):
        for line in process_kit.read("/proc/%d/status" % pid).decode().splitlines():
            if line.startswith("SigIgn"):
                return int(line.split()[1], 16)
        raise AssertionError("no SigIgn of process %d" % pid)

    def ignored_here(self):
        """What whoever runs this test ignores; what Python itself does, it doesn't pass on."""
        return self.ignored_by(os.getpid()) & ~self.bits({signal.SIGPIPE, signal.SIGXFSZ})

    def end_well(self, process):
        self.write("go", "")
        self.assert_ends(process, 0)
        self.assertEqual(process.out.count("ok "), 2)

    @staticmethod
    def bits(kinds):
        return sum(1 << (kind - 1) for kind in kinds)

    def test_bl19_each_kind_stays_ignored(self):
        def ignore():
            for kind in self.KINDS:
                signal.signal(kind, signal.SIG_IGN)
        process = self.begin(ignore)
        wanted = self.bits(self.KINDS)
        self.assertEqual(self.masks(process), (0, wanted | self.ignored_here()))
        self.assertEqual(self.ignored_by(process.pid) & wanted, wanted)
        for kind in self.KINDS:
            process.signal(kind)
        self.end_well(process)

    def test_bl19_nothing_is_ignored_or_blocked_for_the_workers_otherwise(self):
        process = self.begin(None)
        self.assertEqual(self.masks(process), (0, self.ignored_here()))
        self.end_well(process)

    def test_bl19_workers_start_with_an_empty_mask(self):
        process = self.begin(lambda: signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD, signal.SIGTERM}))
        self.assertEqual(self.masks(process), (0, self.ignored_here()))
        self.end_well(process)

    def test_bl19_nohup(self):
        process = process_kit.Process(self, [
            "nohup", process_kit.MUSTER, "run", "--standalone", "--nproc-per-node=2",
            "--prefix=never", "--no-python", "sh", "-c", self.WORKER])
        wait_for(lambda: process.out.count("mask") == 2, "both workers")
        process.signal(signal.SIGHUP)
        self.end_well(process)

    def test_bl19_otherwise_a_hangup_ends_the_job_in_order(self):
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--no-python", "sh",
                             "-c", 'trap "echo bye; exit 0" HUP; echo up; '
                             "while :; do sleep 0.05; done")
        wait_for(lambda: process.out.count("up\n") == 2, "both workers")
        process.signal(signal.SIGHUP)
        self.assert_ends(process, 128 + signal.SIGHUP, "stopped by SIGHUP")
        self.assertEqual(process.out.count("bye\n"), 2, process.said())


class Terminals(process_kit.Case):
    """BL-19, the terminal: Ctrl-C and a hang-up reach each worker once, through the agent."""
    WORKER = ('trap "echo int >> got.$RANK; exit 0" INT; trap "echo hup >> got.$RANK; exit 0" HUP; '
              "echo up; while :; do sleep 0.05; done")

    def begin(self, terminal):
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--no-python", "sh",
                             "-c", self.WORKER, stdin=terminal.slave, preexec=terminal.take)
        wait_for(lambda: process.out.count("up\n") == 2, "both workers")
        return process

    def got(self, rank):
        return process_kit.read(os.path.join(self.work, "got.%d" % rank))

    def test_bl19_ctrl_c(self):
        terminal = cluster_kit.Terminal()
        process = self.begin(terminal)
        terminal.type(b"\x03")
        self.assert_ends(process, 130, "stopped by SIGINT")
        terminal.close()
        self.assertEqual([self.got(0), self.got(1)], [b"int\n"] * 2)

    def test_bl19_ctrl_c_is_not_for_a_job_in_the_background(self):
        # Plays a shell with job control: the job has a group of its own, the terminal is the shell's.
        shell = ("import os, signal, subprocess, sys\n"
                 "signal.signal(signal.SIGINT, lambda *_: print('interrupted', flush=True))\n"
                 "job = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: os.setpgid(0, 0))\n"
                 "sys.exit(job.wait())\n")
        terminal = cluster_kit.Terminal()
        process = process_kit.Process(
            self, [sys.executable, "-c", shell, process_kit.MUSTER, "run", "--standalone",
                   "--no-python", "sh", "-c", "echo up; until [ -e go ]; do sleep 0.05; done; "
                   "echo went on"], stdin=terminal.slave, preexec=terminal.take)
        wait_for(lambda: "up\n" in process.out, "the worker")
        terminal.type(b"\x03")
        wait_for(lambda: "interrupted\n" in process.out, "Ctrl-C in the foreground")
        self.write("go", "")
        self.assert_ends(process, 0)
        terminal.close()
        self.assertIn("went on\n", process.out)

    def test_bl19_a_hang_up(self):
        terminal = cluster_kit.Terminal()
        process = self.begin(terminal)
        terminal.close()
        self.assert_ends(process, 129, "stopped by SIGHUP")
        self.assertEqual([self.got(0), self.got(1)], [b"hup\n"] * 2)


if __name__ == "__main__":
    process_kit.main()
