#!/usr/bin/python3
"""What each worker gets for itself: processors, a GPU, signals; and what a launcher above is told."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

SDK_WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "sdk_worker")


class Processors(process_kit.Case):
    SHOW = "echo $RANK $(grep Cpus_allowed_list /proc/self/status)"

    def allowed(self, *words):
        """The processors of each rank."""
        process = self.standalone("--prefix=never", *words, "--no-python", "sh", "-c", self.SHOW)
        self.assert_ends(process, 0)
        found = {}
        for line in process.out.splitlines():
            rank, _, ranges = line.split()
            ends = [part.split("-") for part in ranges.split(",")]
            found[int(rank)] = {i for e in ends for i in range(int(e[0]), int(e[-1]) + 1)}
        return found

    def test_exclusive_shares_the_cores_out(self):
        own = os.sched_getaffinity(0)
        cores = set()
        for cpu in own:
            path = "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu
            cores.add(process_kit.read(path).decode().strip() or str(cpu))
        if len(cores) < 2:
            self.skipTest("there is one core")
        got = self.allowed("--nproc-per-node=2", "--numa-binding=exclusive")
        self.assertEqual(got[0] & got[1], set())
        self.assertTrue(got[0] and got[1] and got[0] | got[1] <= own, got)
        # The negative control: unbound, both have all.
        self.assertEqual(self.allowed("--nproc-per-node=2"), {0: own, 1: own})

    def test_a_core_each_as_mpirun_gives_it(self):
        own = os.sched_getaffinity(0)
        if len(own) < 2:
            self.skipTest("there is one processor")
        got = self.allowed("--nproc-per-node=2", "--bind-to=core")
        self.assertEqual(got[0] & got[1], set())
        self.assertTrue(got[0] | got[1] <= own, got)
        self.assertEqual(self.allowed("--nproc-per-node=2", "--bind-to=none"), {0: own, 1: own})
        if shutil.which("mpirun"):
            shown = subprocess.run(
                ["mpirun", "--allow-run-as-root", "--bind-to", "core", "--map-by", "core", "-np", "2",
                 "/usr/bin/python3", "-c", "import os, json; print(json.dumps([int(os.environ["
                 "'OMPI_COMM_WORLD_RANK']), sorted(os.sched_getaffinity(0))]))"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            theirs = {rank: set(cpus) for rank, cpus in map(json.loads, shown.stdout.splitlines())}
            self.assertEqual(got, theirs)

    def test_more_workers_than_cores_cannot_have_one_each(self):
        process = self.standalone("--nproc-per-node=4096", "--bind-to=core", "--no-python", "true")
        self.assert_ends(process, 64, "--bind-to=core: there are 4096 workers and",
                         "start fewer workers, or leave --bind-to out")
        process = self.standalone("--bind-to=core", "--numa-binding=node", "--no-python", "true")
        self.assert_ends(process, 64, "both bind workers to processors; give one")

    def test_preloaded_workers_have_their_processors_and_their_input(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor")
        script = self.write("show.py", "import json, os, sys\nprint(json.dumps([os.environ['RANK'], "
                            "sorted(os.sched_getaffinity(0)), sys.stdin.read()]))\n")
        reader, writer = os.pipe()
        os.write(writer, b"hello")
        os.close(writer)
        own = sorted(os.sched_getaffinity(0))
        process = self.standalone("--prefix=never", "--nproc-per-node=2", "--preload=json",
                                  "--numa-binding=exclusive", "--stdin=1", script, stdin=reader)
        os.close(reader)
        if process.code == 64:
            self.skipTest("there is one core")
        self.assert_ends(process, 0)
        self.assertNotIn("afresh", process.err)
        shown = {rank: (cpus, text) for rank, cpus, text in map(json.loads, process.out.splitlines())}
        self.assertEqual((shown["0"][1], shown["1"][1]), ("", "hello"))
        self.assertEqual(set(shown["0"][0]) & set(shown["1"][0]), set())
        self.assertTrue(set(shown["0"][0] + shown["1"][0]) <= set(own))

    def test_other_ways_stay_within_what_this_process_may_use(self):
        own = os.sched_getaffinity(0)
        for mode in ("node", "socket", "core-complex"):
            got = self.allowed("--numa-binding=" + mode)
            self.assertTrue(got[0] and got[0] <= own, (mode, got))

    def test_more_workers_than_cores_are_refused(self):
        process = self.standalone("--nproc-per-node=4000", "--numa-binding=exclusive",
                                  "--no-python", "true")
        self.assert_ends(process, 64, "--numa-binding=exclusive: NUMA node ")


class Gpus(process_kit.Case):
    def test_a_virtual_local_rank(self):
        process = self.standalone(
            "--nproc-per-node=2", "--virtual-local-rank", "--log-dir=logs", "--redirects=1",
            "--no-python", "sh", "-c", "echo $RANK $LOCAL_RANK $CUDA_VISIBLE_DEVICES",
            env={"CUDA_VISIBLE_DEVICES": "5,7"})
        self.assert_ends(process, 0)
        run = os.path.join(self.work, "logs", os.listdir(os.path.join(self.work, "logs"))[0])
        for rank, gpu in ((0, 5), (1, 7)):
            log = os.path.join(run, "attempt_0", str(rank), "stdout.log")
            self.assertEqual(process_kit.read(log).decode(), "%d 0 %d\n" % (rank, gpu))

    def test_the_sdk_knows_the_place_on_the_node_and_the_device(self):
        for words, device in ((["--virtual-local-rank"], "0"), ([], "1")):
            process = self.standalone("--nproc-per-node=2", "--prefix=never", *words,
                                      "--no-python", SDK_WORKER, "where")
            self.assert_ends(process, 0)
            self.assertEqual(sorted(process.out.splitlines()),
                             ["local rank 0, device 0", "local rank 1, device " + device])

    def test_too_few_gpus_are_refused(self):
        process = self.standalone("--nproc-per-node=2", "--virtual-local-rank", "--no-python",
                                  "true", env={"CUDA_VISIBLE_DEVICES": "5"})
        self.assert_ends(process, 64, "CUDA_VISIBLE_DEVICES=5 names fewer GPUs")


class Signals(process_kit.Case):
    WORKER = ('for s in USR1 USR2 INT TERM; do trap "echo $s >> got.$RANK" $s; done; echo up; '
              "until [ -e go ]; do sleep 0.05; done; exit 0")

    def begin(self, *words):
        process = self.start("run", "--standalone", "--nproc-per-node=2", *words, "--no-python",
                             "sh", "-c", self.WORKER)
        wait_for(lambda: process.out.count("up\n") == 2, "both workers")
        return process

    def got(self, rank):
        return process_kit.read(os.path.join(self.work, "got.%d" % rank)).decode()

    def test_usr1_is_passed_on_and_the_job_goes_on(self):
        process = self.begin()
        process.signal(signal.SIGUSR1)
        wait_for(lambda: self.got(0) == self.got(1) == "USR1\n", "SIGUSR1 at both workers")
        self.write("go", "")
        self.assert_ends(process, 0)

    def test_a_signal_that_is_named_ends_the_job(self):
        process = self.begin("--signals-to-handle=SIGTERM,SIGUSR1", "--shutdown-timeout=30")
        process.signal(signal.SIGUSR1)
        wait_for(lambda: self.got(0) == self.got(1) == "USR1\n", "SIGUSR1 at both workers")
        self.write("go", "")
        self.assert_ends(process, 128 + signal.SIGUSR1, "stopped by SIGUSR1")

    def test_a_stop_signal_that_is_not_named_ends_the_launcher_at_once(self):
        process = self.begin("--signals-to-handle=SIGTERM")
        process.signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        # Its guardian ends the workers, which is no handling.
        wait_for(lambda: not process_kit.tagged(self.tag), "the end of the workers")
        self.assertEqual(self.got(0), "")

    def test_workers_are_told_what_is_handled(self):
        for words, expected in (([], "SIGTERM,SIGINT,SIGHUP,SIGQUIT\n"),
                                (["--signals-to-handle=USR2,SIGTERM"], "SIGUSR2,SIGTERM\n")):
            process = self.standalone(*words, "--no-python", "sh", "-c",
                                      "echo $TORCHELASTIC_SIGNALS_TO_HANDLE")
            self.assert_ends(process, 0)
            self.assertEqual(process.out, expected)

    def test_the_last_line_names_the_signal(self):
        process = self.standalone("--no-python", "sh", "-c", "kill -SEGV $$")
        self.assert_ends(process, 139, "was killed by signal 11 (SIGSEGV)", "(SIGSEGV)\n")


class LauncherAbove(process_kit.Case):
    """What is in our own TORCHELASTIC_ERROR_FILE when the job has failed."""

    def record(self, *words, script, code, env=None):
        own = os.path.join(self.work, "own.json")
        if os.path.exists(own):
            os.remove(own)
        process = self.standalone(*words, "--no-python", "sh", "-c", script,
                                  env=dict(env or {}, TORCHELASTIC_ERROR_FILE=own))
        self.assertEqual(process.code, code, process.said())
        return json.loads(process_kit.read(own) or "null")

    WRITE = ('echo \'{"message": {"message": "E: x", "extraInfo": {"py_callstack": "tb", '
             '"timestamp": "1700000000"}}}\' > $TORCHELASTIC_ERROR_FILE; ')

    def test_the_workers_record_with_its_exit_code(self):
        for words in ([], ["--log-dir=logs"]):
            for end, code, error_code in (("exit 8", 8, 8), ("kill -9 $$", 137, -9)):
                record = self.record(*words, script=self.WRITE + end, code=code)
                self.assertEqual(record["message"], {
                    "message": "E: x", "errorCode": error_code,
                    "extraInfo": {"py_callstack": "tb", "timestamp": "1700000000"}})

    def test_a_plain_message_is_passed_on_as_it_is(self):
        record = self.record(script='echo \'{"message": "x"}\' > $TORCHELASTIC_ERROR_FILE; exit 8',
                             code=8)
        self.assertEqual(record, {"message": "x"})

    def test_a_failure_without_a_record_is_told_in_one_of_ours(self):
        record = self.record(script="exit 9", code=9)
        self.assertIn("exited with code 9", record["message"]["message"])
        self.assertEqual(record["message"]["errorCode"], 9)
        self.assertGreater(int(record["message"]["extraInfo"]["timestamp"]), 1700000000)

    def test_a_good_end_leaves_nothing(self):
        self.assertIsNone(self.record(script="exit 0", code=0))

    def test_through_two_launchers(self):
        inner = '"%s" run --standalone --no-python sh -c \'%s exit 8\'' % (
            process_kit.MUSTER, self.WRITE.replace("'", "'\\''"))
        record = self.record(script=inner, code=8)
        self.assertEqual(record["message"]["message"], "E: x")
        self.assertEqual(record["message"]["errorCode"], 8)

    def test_dev_null_means_no_error_files(self):
        process = self.standalone("--log-dir=/dev/null", "--no-python", "sh", "-c",
                                  'echo "[$TORCHELASTIC_ERROR_FILE]"; exit 3')
        self.assert_ends(process, 3, "error_file: <N/A>")
        self.assertEqual(process.out, "[]\n")


if __name__ == "__main__":
    process_kit.main()
