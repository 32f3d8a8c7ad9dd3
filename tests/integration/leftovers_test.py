#!/usr/bin/python3
"""Kills and freezes each process of a job, and stops jobs by signals: nothing may be left."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

# A worker with a child in a session of its own, the hardest to find.
WORKER = 'setsid sleep 600 & echo "up $RANK $TORCHELASTIC_RESTART_COUNT"; exec sleep 600'


class Kills(process_kit.Case):
    def start_workers(self, *words, count=2):
        process = self.start("run", "--standalone", "--nproc-per-node=%d" % count, *words,
                             "--no-python", "sh", "-c", WORKER)
        wait_for(lambda: process.out.count("up ") == count, "all workers")
        return process

    def workers_of(self, process):
        guardian = process_kit.guardian_of(process.pid)
        return [pid for pid in process_kit.all_pids()
                if process_kit.parent_of(pid) == guardian and process_kit.is_alive(pid)]

    # Saves when it is told to end, and takes its time.
    SAVER = ("import os, signal, sys, time\n"
             "def save(*_):\n    open('saving', 'w').close()\n"
             "    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
             "    print('SAVED', flush=True)\n    sys.exit(0)\n"
             "signal.signal(signal.SIGTERM, save)\nopen('up', 'w').close()\n"
             "while True:\n    time.sleep(1)\n")

    def start_saver_behind_a_shell(self):
        self.write("saver.py", self.SAVER)
        process = self.start("run", "--standalone", "--no-python", "sh", "-c",
                             "python3 saver.py; exit 0")
        wait_for(lambda: os.path.exists(os.path.join(self.work, "up")), "the program")
        process.signal(signal.SIGTERM)
        wait_for(lambda: os.path.exists(os.path.join(self.work, "saving")), "the signal")
        return process

    def test_a_program_behind_a_shell_has_its_grace(self):
        process = self.start_saver_behind_a_shell()
        process.wait_for_output("s for what workers have left behind: ")
        self.write("go", "")
        self.assertEqual(process.wait(), 143)
        self.assertIn("SAVED", process.out)

    def test_a_second_signal_ends_that_grace(self):
        process = self.start_saver_behind_a_shell()
        process.signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 143)
        self.assertNotIn("SAVED", process.out)

    def test_launcher_killed(self):
        process = self.start_workers(count=4)
        process.signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)
        wait_for(lambda: not process_kit.tagged(self.tag), "the workers' end", 2)

    def test_launcher_killed_at_any_moment_of_the_start(self):
        for _ in range(20):
            process = self.start("run", "--standalone", "--nproc-per-node=4", "--no-python",
                                 "sleep", "600")
            time.sleep(random.uniform(0, 0.1))
            process.signal(signal.SIGKILL)
            process.wait()
            wait_for(lambda: not process_kit.tagged(self.tag), "the workers' end", 2)

    def test_ctrl_z_is_not_obeyed(self):
        endpoint = "127.0.0.1:%d" % process_kit.free_port()
        process = self.start("run", "--nnodes=1:2", "--rdzv-endpoint=" + endpoint,
                             "--rdzv-conf=last_call_timeout=0.1", "--no-python", "sh", "-c", WORKER)
        process.wait_for_output("up ")
        process.signal(signal.SIGTSTP)
        process.wait_for_output("Ctrl-Z (SIGTSTP) is not obeyed")
        self.assertTrue(all(map(process_kit.is_alive, self.workers_of(process))))
        process.signal(signal.SIGINT)
        self.assert_ends(process, 130)

    def test_a_launcher_alone_may_stand_still(self):
        process = self.start_workers()
        workers = self.workers_of(process)
        process.signal(signal.SIGTSTP)
        wait_for(lambda: process_kit.state_of(process.pid) == "T", "the launcher to stand still")
        # Nothing tells that longer than the usual lease has passed but time.
        end = time.monotonic() + 4
        wait_for(lambda: time.monotonic() > end or
                 not all(map(process_kit.is_alive, workers)), "4 s without the launcher")
        process.signal(signal.SIGCONT)
        self.assertTrue(all(map(process_kit.is_alive, workers)))
        process.signal(signal.SIGINT)
        self.assert_ends(process, 130)
        self.assertEqual(process.out.count("up "), 2, process.said())

    def test_launcher_frozen(self):
        process = self.start_workers("--rdzv-conf=lease=1")
        workers = self.workers_of(process)
        self.assertEqual(len(workers), 2)
        process.signal(signal.SIGSTOP)
        wait_for(lambda: not any(map(process_kit.is_alive, workers)), "the workers' end", 10)
        process.signal(signal.SIGCONT)
        # It finds its workers gone: the job can't go on as if nothing had been.
        process.signal(signal.SIGTERM)
        process.wait()

    def test_guardian_killed(self):
        process = self.start_workers()
        os.kill(process_kit.guardian_of(process.pid), signal.SIGKILL)
        code = process.wait()
        self.assertNotEqual(code, 0)
        self.assertIn("guardian", process.err)

    def test_guardian_frozen(self):
        process = self.start_workers()
        guardian = process_kit.guardian_of(process.pid)
        os.kill(guardian, signal.SIGSTOP)
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGTERM)
        try:
            self.assertNotEqual(process.wait(), 0)
        finally:
            if process_kit.is_alive(guardian):
                os.kill(guardian, signal.SIGCONT)

    def test_worker_killed(self):
        process = self.start_workers()
        victim = self.workers_of(process)[0]
        os.kill(victim, signal.SIGKILL)
        self.assert_ends(process, 137, "Signal 9 (SIGKILL) received by PID %d" % victim)

    def test_worker_frozen_then_stopped(self):
        process = self.start_workers("--shutdown-timeout=1")
        os.kill(self.workers_of(process)[0], signal.SIGSTOP)
        process.signal(signal.SIGTERM)
        self.assert_ends(process, 143)


class Signals(process_kit.Case):
    def stop(self, number, *words):
        process = self.start("run", "--standalone", "--nproc-per-node=2", *words, "--no-python",
                             "sh", "-c", 'trap "echo bye; exit 0" TERM INT HUP QUIT; echo up; '
                             'while :; do sleep 0.05; done')
        wait_for(lambda: process.out.count("up\n") == 2, "both workers")
        process.signal(number)
        return process

    def test_stop_signals_end_the_job_in_order(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                process = self.stop(number)
                self.assert_ends(process, 128 + number)
                self.assertEqual(process.out.count("bye\n"), 2, process.said())

    def test_a_second_signal_shortens_the_grace(self):
        process = self.start("run", "--standalone", "--no-python", "sh", "-c",
                             'trap "echo deaf" TERM; echo up; while :; do sleep 0.05; done')
        process.wait_for_output("up\n")
        process.signal(signal.SIGTERM)
        process.wait_for_output("deaf\n")
        process.signal(signal.SIGTERM)
        self.assert_ends(process, 143)
        self.assertLess(time.monotonic() - process.started, 25)

    def test_an_ignored_hangup_stays_ignored(self):
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--no-python", "sh",
                             "-c", "grep SigIgn /proc/$$/status; until [ -e go ]; do sleep 0.05; "
                             "done; echo ok $RANK",
                             preexec=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_for(lambda: process.out.count("SigIgn") == 2, "both workers")
        process.signal(signal.SIGHUP)
        for line in process.out.splitlines():
            self.assertEqual(int(line.split()[-1], 16) & 1, 1, line)
        self.write("go", "")
        self.assert_ends(process, 0)
        self.assertEqual(process.out.count("ok "), 2)


class Waiting(process_kit.Case):
    """Ctrl-C while the launcher waits for something."""

    def interrupt(self, seen, *words):
        process = self.start("run", "--nnodes=2", *words, "--no-python", "true")
        process.wait_for_output(seen)
        before = time.monotonic()
        process.signal(signal.SIGINT)
        self.assert_ends(process, 130)
        self.assertLess(time.monotonic() - before, 2)

    def test_for_other_nodes(self):
        self.interrupt("waiting", "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port())

    def test_for_a_rendezvous_that_does_not_answer(self):
        self.interrupt("muster:", "--rdzv-conf=is_host=0",
                       "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port())

    def test_for_packets_that_vanish(self):
        self.interrupt("no rendezvous answers", "--rdzv-endpoint=192.0.2.1:29400")

    def test_for_a_name_that_does_not_resolve(self):
        self.interrupt("does not resolve", "--rdzv-endpoint=no-such-host.invalid:29400")

    def test_unreachable_rendezvous_is_given_up_on(self):
        endpoint = "127.0.0.1:%d" % process_kit.free_port()
        process = self.run_to_end("run", "--nnodes=2", "--rdzv-endpoint=" + endpoint,
                                  "--rdzv-conf=is_host=0,join_timeout=1", "--no-python", "true")
        self.assert_ends(process, 69, endpoint)

    def test_unresolvable_name_is_given_up_on(self):
        process = self.run_to_end("run", "--nnodes=2", "--rdzv-endpoint=no-such-host.invalid:1",
                                  "--rdzv-conf=join_timeout=1", "--no-python", "true")
        self.assert_ends(process, 69, "no-such-host.invalid")

    def test_missing_nodes_are_given_up_on(self):
        process = self.run_to_end("run", "--nnodes=2", "--rdzv-conf=join_timeout=2",
                                  "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port(),
                                  "--no-python", "true")
        self.assert_ends(process, 69)


if __name__ == "__main__":
    process_kit.main()
