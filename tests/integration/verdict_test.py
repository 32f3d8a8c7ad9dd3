#!/usr/bin/python3
"""The truth about an end: want of memory, core dumps, what can't be killed, and the file for machines.
Needs cgroups of its own, which a sandbox refuses."""
import json
import os
import resource
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from cgroup_kit import Cgroup
from process_kit import wait_for

LIMIT = 200 << 20
# Rank 1 takes twice the limit once both are up.
ALLOCATE = process_kit.ALL_ARE_UP + (
    "[ $RANK = 1 ] && exec python3 -c 'bytearray(b\"x\") * (400 << 20)'; exec sleep 600")


class Ends(process_kit.Case):
    def result(self, name="result.json"):
        with open(os.path.join(self.work, name)) as file:
            return json.load(file)

    def pid_of(self, name):
        path = os.path.join(self.work, name)
        return int(wait_for(lambda: process_kit.read(path).strip(), "a pid in " + name))


class WantOfMemory(Ends):
    def setUp(self):
        super().setUp()
        self.cgroup = Cgroup(self, "memory")
        self.cgroup.limit_memory(LIMIT)

    def test_bl29_a_kill_for_want_of_memory_is_named(self):
        process = self.standalone("--nproc-per-node=2", "--result-file=result.json", "--no-python",
                                  "sh", "-c", ALLOCATE, preexec=self.cgroup.enter)
        self.assert_ends(process, 137, "rank      : 1 (local_rank: 1)",
                         "the kernel killed it for want of memory: the cgroup's limit is 200.0 MiB, "
                         "its peak 200.0 MiB, oom_kill rose from 0 to 1",
                         "was killed by the kernel for want of memory (signal 9)")
        self.assertNotIn("sender", process.err)
        root = self.result()["failures"][0]
        self.assertEqual((root["rank"], root["signal"], root["out_of_memory"]), (1, "SIGKILL", True))
        self.assertIn("oom_kill rose from 0 to 1", root["evidence"])

    def test_bl29_by_hand_in_the_same_cgroup_nobody_talks_of_memory(self):
        process = self.start("run", "--standalone", "--nproc-per-node=2",
                             "--result-file=result.json", "--no-python", "sh", "-c",
                             "echo $$ > pid.$RANK; exec sleep 600", preexec=self.cgroup.enter)
        os.kill(self.pid_of("pid.1"), signal.SIGKILL)
        self.assert_ends(process, 137, "from outside", "the sender is unknown")
        self.assertNotIn("memory", process.err)
        root = self.result()["failures"][0]
        self.assertEqual((root["rank"], root["out_of_memory"], root["evidence"]), (1, False, None))

    def test_bl29_what_a_worker_ran_was_killed(self):
        process = self.standalone("--result-file=result.json", "--no-python", "sh", "-c",
                                  "python3 -c 'bytearray(b\"x\") * (400 << 20)'; exit $?",
                                  preexec=self.cgroup.enter)
        self.assert_ends(process, 137, "exited with code 137: what it ran was ended by SIGKILL, and "
                         "the kernel killed a process of its cgroup for want of memory")
        root = self.result()["failures"][0]
        self.assertEqual((root["exit_code"], root["out_of_memory"]), (137, False))

    def test_bl29_when_the_whole_cgroup_is_killed_the_others_report_the_lost_node(self):
        port = process_kit.free_port()
        words = ["--nnodes=1:2", "--rdzv-endpoint=127.0.0.1:%d" % port, "--rdzv-id=job",
                 "--no-python", "sh", "-c",
                 "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; echo up.$RANK; exec sleep 600"]
        first = self.start("run", "--local-addr=127.0.0.1", "--result-file=result.json", *words)
        first.wait_for_output("waiting")
        # Its private folder stays behind: nobody is left to remove it.
        second = self.start("run", "--local-addr=127.0.0.2", *words, preexec=self.cgroup.enter,
                            env={"TMPDIR": self.work})
        second.wait_for_output("up.")
        first.wait_for_output("up.")
        # As systemd-oomd or a batch system does: all in one moment.
        for pid in self.cgroup.pids():
            os.kill(pid, signal.SIGSTOP)
        for pid in self.cgroup.pids():
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(second.wait(), -signal.SIGKILL)
        self.assert_ends(first, 0, "round 1 stops: ", "127.0.0.2", "lost")
        self.assertNotIn("memory", first.err)
        result = self.result()
        self.assertEqual((result["world"]["nodes"], result["restarts_charged"]), (1, 0))


class CoreDumps(Ends):
    def test_the_core_file_is_found(self):
        with open("/proc/sys/kernel/core_pattern") as file:
            pattern = file.read().strip()
        def with_cores():
            _, most = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (most, most))
        process = self.standalone("--result-file=result.json", "--no-python", "sh", "-c",
                                  "kill -SEGV $$", preexec=with_cores)
        self.assert_ends(process, 139, "signal 11 (SIGSEGV)")
        root = self.result()["failures"][0]
        if not root["core_dumped"]:
            self.skipTest("this machine writes no core dumps (core_pattern %r)" % pattern)
        if pattern.startswith(("|", "@")):
            self.assertIn("its core dump was handed to ", root["evidence"])
            return
        self.assertIn("core file : " + root["core_file"], process.err)
        with open(root["core_file"], "rb") as file:
            self.assertEqual(file.read(4), b"\x7fELF")


class Unkillable(Ends):
    def test_a_process_that_can_not_be_killed_holds_nobody_up(self):
        freezer = Cgroup(self, "freezer")
        if freezer.version == 2:
            self.skipTest("only a version 1 freezer keeps SIGKILL from acting")
        process = self.start(
            "run", "--standalone", "--nproc-per-node=2", "--shutdown-timeout=0.2", "--no-python",
            "sh", "-c", "echo $$ > pid.$RANK; [ $RANK = 0 ] || exec sleep 600; "
            "until [ -e go ]; do sleep 0.02; done; exit 3")
        frozen = self.pid_of("pid.1")
        freezer.freeze(frozen)
        wait_for(lambda: freezer.read("freezer.state").strip() == "FROZEN", "the frost")
        self.write("go", "")
        self.assert_ends(process, 3, "rank      : 0 (local_rank: 0)",
                         "gave up on processes of round 1 that can't be killed, as they are stuck in "
                         "the kernel: %d (sleep)" % frozen)
        self.assertTrue(process_kit.is_alive(frozen))
        freezer.thaw()
        wait_for(lambda: not process_kit.is_alive(frozen), "the end of what was thawed")

    def test_the_job_starts_again_beside_it(self):
        freezer = Cgroup(self, "freezer")
        if freezer.version == 2:
            self.skipTest("only a version 1 freezer keeps SIGKILL from acting")
        process = self.start(
            "run", "--standalone", "--nproc-per-node=2", "--max-restarts=1",
            "--shutdown-timeout=0.2", "--no-python", "sh", "-c",
            "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; echo $$ > pid.$RANK; "
            "[ $RANK = 0 ] || exec sleep 600; until [ -e go ]; do sleep 0.02; done; exit 3")
        frozen = self.pid_of("pid.1")
        freezer.freeze(frozen)
        wait_for(lambda: freezer.read("freezer.state").strip() == "FROZEN", "the frost")
        self.write("go", "")
        self.assert_ends(process, 0, "can't be killed", "attempt 1")
        freezer.thaw()
        wait_for(lambda: not process_kit.is_alive(frozen), "the end of what was thawed")


class ResultFile(Ends):
    def check(self, process, code, **fields):
        process.wait()
        self.assertEqual(process.popen.returncode, code, process.said())
        result = self.result()
        self.assertEqual(result["exit_code"], code)
        for name, value in fields.items():
            self.assertEqual(result[name], value, name)
        # Nothing half-written is left beside it.
        self.assertEqual([f for f in os.listdir(self.work) if "tmp" in f], [])
        os.remove(os.path.join(self.work, "result.json"))
        return result

    def run_job(self, *words, **options):
        return self.start("run", "--standalone", "--result-file=result.json", *words, **options)

    def test_success(self):
        result = self.check(self.run_job("--nproc-per-node=3", "--no-python", "true"), 0,
                            succeeded=True, reason=None, failures=[], attempt=0, round=1,
                            restarts_charged=0)
        self.assertEqual((result["world"]["size"], result["world"]["nodes"]), (3, 1))

    def test_failure_with_odd_bytes(self):
        result = self.check(
            self.run_job("--nproc-per-node=2", "--max-restarts=1", "--no-python", "sh", "-c",
                         process_kit.ALL_ARE_UP +
                         "[ $RANK = 1 ] || exec sleep 600; printf 'b\\377d\\n' >&2; exit 5"),
            5, succeeded=False, restarts_charged=1, attempt=1, round=2)
        root = result["failures"][0]
        self.assertEqual((root["role"], root["rank"], root["exit_code"]), ("root_cause", 1, 5))
        self.assertEqual(root["stderr_tail"], "b\N{REPLACEMENT CHARACTER}d\n")

    def test_a_program_that_is_not_there(self):
        self.check(self.run_job("--no-python", "/no/such/program"), 127, succeeded=False, round=None)

    def test_interrupted_while_it_runs_and_while_it_waits(self):
        process = self.run_job("--no-python", "sh", "-c", "echo up; exec sleep 600")
        process.wait_for_output("up")
        process.signal(signal.SIGINT)
        self.check(process, 130, succeeded=False, reason="stopped by SIGINT", round=1)
        process = self.start("run", "--nnodes=2", "--rdzv-endpoint=127.0.0.1:%d" %
                             process_kit.free_port(), "--result-file=result.json", "--no-python",
                             "true")
        process.wait_for_output("waiting")
        process.signal(signal.SIGINT)
        self.check(process, 130, succeeded=False, round=None)

    def test_a_refusal_and_a_rendezvous_that_is_not_there(self):
        endpoint = "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port()
        first = self.start("run", "--nnodes=2", endpoint, "--local-addr=127.0.0.1", "--no-python",
                           "true")
        first.wait_for_output("waiting")
        second = self.start("run", "--nnodes=3", endpoint, "--local-addr=127.0.0.2",
                            "--result-file=result.json", "--no-python", "true")
        self.check(second, 78, succeeded=False, round=None)
        first.signal(signal.SIGINT)
        first.wait()
        alone = self.start("run", "--nnodes=2", endpoint, "--rdzv-conf=is_host=0,join_timeout=0.3",
                           "--result-file=result.json", "--no-python", "true")
        self.check(alone, 69, succeeded=False, round=None)

    def test_a_path_that_makes_no_sense_is_refused_before_anything_starts(self):
        for path, said in [("none/result.json", "there is no folder none"), (".", "is a folder")]:
            process = self.standalone("--result-file=" + path, "--no-python", "touch", "started")
            self.assert_ends(process, 64, "--result-file=" + path, said)
            self.assertFalse(os.path.exists(os.path.join(self.work, "started")))

    def test_a_file_that_can_not_be_written_changes_no_code(self):
        os.mkdir(os.path.join(self.work, "gone"))
        process = self.standalone("--result-file=gone/result.json", "--no-python", "sh", "-c",
                                  "rmdir gone; exit 9")
        self.assert_ends(process, 9, "--result-file=gone/result.json can't be written: ")
        self.assertEqual(process.err.count("can't be written"), 1)


if __name__ == "__main__":
    process_kit.main()
