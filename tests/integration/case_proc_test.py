#!/usr/bin/python3
"""The cases of the area PROC (tests/CASES.md): siblings, a killed launcher, life as pid 1."""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for

RACES = 200 if cluster_kit.is_full() else 25
# What the cases grant.
GONE = 2.0


class Siblings(process_kit.Case):
    """BL-21: the death of any one rank stops all; waiting is on events, not in an order."""

    def check(self, process, code, rank, *sentences):
        self.assert_ends(process, code, "rank      : %d (local_rank: %d)" % (rank, rank),
                         "<NO_OTHER_FAILURES>", *sentences)
        # Far below the sleep of the others and the grace; they end on SIGTERM.
        self.assertLess(time.monotonic() - process.started, 25)

    def test_bl21_the_last_rank_exits(self):
        process = self.standalone("--nproc-per-node=4", "--max-restarts=0", "--no-python", "sh",
                                  "-c", process_kit.ALL_ARE_UP +
                                  "[ $RANK = 3 ] && exit 7; exec sleep 1000")
        self.check(process, 7, 3, "exitcode  : 7",
                   "3 more workers of this node were stopped by muster: 3 ended by SIGTERM")

    def test_bl21_the_last_rank_is_killed(self):
        process = self.standalone("--nproc-per-node=4", "--no-python", "sh", "-c",
                                  process_kit.ALL_ARE_UP +
                                  "[ $RANK = 3 ] && kill -9 $$; exec sleep 1000")
        self.check(process, 137, 3, "exitcode  : -9",
                   "3 more workers of this node were stopped by muster")

    def test_bl21_a_rank_ends_before_others_have_been_started(self):
        for rank in (0, 63):
            with self.subTest(rank=rank):
                process = self.standalone("--nproc-per-node=64", "--no-python", "sh", "-c",
                                          "[ $RANK = %d ] && exit 7; exec sleep 1000" % rank)
                self.check(process, 7, rank)

    def test_bl21_those_that_ignore_the_request_are_killed_and_counted(self):
        process = self.standalone(
            "--nproc-per-node=3", "--shutdown-timeout=1", "--no-python", "sh", "-c",
            'trap "" TERM; ' + process_kit.ALL_ARE_UP +
            "[ $RANK = 2 ] && exit 7; sleep 1000")
        self.check(process, 7, 2, "2 more workers of this node were stopped by muster: "
                   "2 killed after 1 s")


class KilledLauncher(cluster_kit.Cluster):
    """BL-23: all workers go with their launcher, whenever that is killed."""

    def workers_gone(self):
        wait_for(lambda: not process_kit.tagged(self.tag), "the end of all workers", GONE)

    def test_bl23_workers_and_what_they_started(self):
        process = self.start("run", "--standalone", "--nproc-per-node=4", "--no-python", "sh",
                             "-c", "setsid sleep 600 & echo up; exec sleep 600")
        wait_for(lambda: process.out.count("up\n") == 4, "all workers")
        process.signal(signal.SIGKILL)
        process.wait()
        self.workers_gone()

    def test_bl23_at_any_moment_of_the_start(self):
        for _ in range(RACES):
            process = self.start("run", "--standalone", "--nproc-per-node=4", "--no-python",
                                 "sleep", "600")
            time.sleep(random.uniform(0, 0.1))
            process.signal(signal.SIGKILL)
            process.wait()
            self.workers_gone()

    def test_bl23_the_guardian_killed_with_it(self):
        # In sessions of their own a guardian alone could find them; direct workers die with it.
        process = self.start("run", "--standalone", "--nproc-per-node=4", "--no-python", "sh",
                             "-c", "echo up; exec sleep 600")
        wait_for(lambda: process.out.count("up\n") == 4, "all workers")
        guardian = process_kit.guardian_of(process.pid)
        process.signal(signal.SIGKILL)
        try:
            os.kill(guardian, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        self.workers_gone()
        self.remove_orphaned_folder()

    def test_bl23_a_new_agent_does_not_meet_old_workers(self):
        daemon = self.start_daemon()
        # Each worker holds a lock for as long as it lives.
        script = ("exec 9> lock.$LOCAL_RANK; flock -n 9 || { echo met an old worker; exit 9; }; "
                  "echo up; until [ -e finish ]; do sleep 0.02; done")

        def start():
            node = self.node(1, "--nproc-per-node=4", "--max-restarts=0", "--no-python", "sh",
                             "-c", script, nnodes="1")
            wait_for(lambda: node.out.count("up\n") == 4 or not node.is_running(), "all workers")
            return node
        node = start()
        for _ in range(5):
            node.signal(signal.SIGKILL)
            node.wait()
            node = start()
        self.finish([node])
        self.end_daemon(daemon)

    def test_bl23_the_other_nodes_learn_of_it(self):
        daemon = self.start_daemon()
        nodes = [self.node(i, "--rdzv-conf=last_call_timeout=1", "--no-python", "sh", "-c",
                           cluster_kit.PLACE + cluster_kit.UNTIL_FINISH, nnodes="1:2")
                 for i in (1, 2)]
        for node in nodes:
            node.wait_for_output("/2 attempt 0")
        nodes[0].signal(signal.SIGKILL)
        nodes[0].wait()
        nodes[1].wait_for_output("0/1 attempt 1")
        self.assertIn("lost node", nodes[1].err)
        self.finish(nodes[1:])
        self.end_daemon(daemon)


def why_no_pid_namespace():
    result = subprocess.run(["unshare", "-Urpf", "--mount-proc", "true"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    return result.stdout.decode().strip() if result.returncode else ""


class Pid1(process_kit.Case):
    """BL-25: the first process of a container."""

    def setUp(self):
        reason = why_no_pid_namespace()
        if reason:
            self.skipTest("pid namespaces can't be made here: " + reason)
        super().setUp()

    def start_as_init(self, *words, **options):
        """`muster run` as pid 1, and that process' pid here. Signals go to it from outside."""
        outer = process_kit.Process(self, ["unshare", "-Urpf", "--mount-proc", process_kit.MUSTER,
                                           "run", "--standalone", *words], **options)

        def find():
            for pid in process_kit.all_pids():
                if process_kit.parent_of(pid) == outer.pid:
                    return pid
            # It may have ended before it was seen.
            return None if outer.is_running() else -1
        return outer, wait_for(find, "pid 1")

    def zombies(self, pid):
        return [other for other in process_kit.descendants(pid)
                if process_kit.state_of(other) == "Z"]

    def test_bl25_no_zombie_stays(self):
        outer, init = self.start_as_init(
            "--nproc-per-node=1", "--no-python", "sh", "-c",
            "for i in $(seq 500); do (sleep 0.01 &); done; echo all; "
            "until [ -e finish ]; do sleep 0.05; done")
        outer.wait_for_output("all\n")
        # Their number falls to none, and each is gone within a second.
        old = set(self.zombies(init))
        wait_for(lambda: not old & set(self.zombies(init)), "the end of zombies", 5)
        wait_for(lambda: not self.zombies(init), "the end of all zombies", 5)
        self.write("finish", "")
        self.assert_ends(outer, 0)

    def test_bl25_the_end_of_a_stranger_is_no_workers(self):
        # Orphans come to pid 1, or to the guardian, and end with all kinds of codes.
        outer, _ = self.start_as_init(
            "--nproc-per-node=2", "--no-python", "sh", "-c",
            "for code in 1 9 127; do (setsid sh -c \"sleep 0.0$code; exit $code\" &); done; "
            "(setsid sh -c 'kill -9 $$' &); sleep 0.5; echo well")
        self.assert_ends(outer, 0)
        self.assertEqual(outer.out.count("well\n"), 2)
        self.assertEqual(outer.err, "")

    def stop(self, number, worker, *words):
        outer, init = self.start_as_init("--nproc-per-node=2", *words, "--no-python", "sh", "-c",
                                         worker)
        wait_for(lambda: outer.out.count("up\n") == 2, "both workers")
        os.kill(init, number)
        return outer

    def test_bl25_signals_end_the_job_in_order(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                outer = self.stop(number, 'trap "echo bye; exit 0" TERM INT HUP QUIT; echo up; '
                                  "while :; do sleep 0.05; done")
                self.assert_ends(outer, 128 + number, "stopped by " + number.name)
                self.assertEqual(outer.out.count("bye\n"), 2, outer.said())

    def test_bl25_ctrl_c_on_its_terminal(self):
        # It reaches pid 1's group and, from pid 1, the launcher; the workers get it once.
        terminal = cluster_kit.Terminal()
        outer, _ = self.start_as_init(
            "--nproc-per-node=2", "--no-python", "sh", "-c",
            'trap "echo int >> got.$RANK; exit 0" INT; echo up; while :; do sleep 0.05; done',
            stdin=terminal.slave, preexec=terminal.take)
        wait_for(lambda: outer.out.count("up\n") == 2, "both workers")
        terminal.type(b"\x03")
        # unshare itself is in the terminal's group, too.
        wait_for(lambda: not outer.is_running(), "the end of pid 1's parent")
        wait_for(lambda: not process_kit.tagged(self.tag), "the end of pid 1")
        terminal.close()
        for rank in (0, 1):
            self.assertEqual(process_kit.read(os.path.join(self.work, "got.%d" % rank)), b"int\n")

    def test_bl25_it_ends_within_the_grace(self):
        outer = self.stop(signal.SIGTERM, 'trap "" TERM; echo up; while :; do sleep 0.05; done',
                          "--shutdown-timeout=1")
        before = time.monotonic()
        self.assert_ends(outer, 143, "2 killed after 1 s")
        self.assertLess(time.monotonic() - before, 20)

    def test_bl25_the_code_of_a_failed_job(self):
        outer, _ = self.start_as_init("--nproc-per-node=2", "--no-python", "sh", "-c", "exit 3")
        self.assert_ends(outer, 3, "exitcode  : 3")


if __name__ == "__main__":
    process_kit.main()
