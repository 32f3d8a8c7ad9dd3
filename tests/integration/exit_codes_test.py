#!/usr/bin/python3
"""What `muster run` ends with, and the one sentence that goes with it."""
import json
import os
import resource
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for


class WorkerFailures(process_kit.Case):
    def test_success_is_zero(self):
        process = self.standalone("--nproc-per-node=3", "--no-python", "true")
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "")

    def test_the_failed_workers_own_code(self):
        process = self.standalone("--nproc-per-node=2", "--no-python", "sh", "-c", "exit 3")
        self.assert_ends(process, 3, "sh FAILED", "exitcode  : 3")

    def test_a_signal_is_128_plus_its_number(self):
        process = self.standalone("--nproc-per-node=2", "--no-python", "sh", "-c", "kill -9 $$")
        self.assert_ends(process, 137, "Signal 9 (SIGKILL) received by PID")

    def test_too_little_memory_ends_in_a_sentence(self):
        def little():
            # With more than 130 MiB it is a matter of luck which allocation fails, if any.
            resource.setrlimit(resource.RLIMIT_AS, (80 << 20, 80 << 20))
        process = self.standalone("--nproc-per-node=2", "--no-python", "true", preexec=little)
        self.assert_ends(process, 71, "the system gives no more", "raise `ulimit")

    def test_an_abort_is_explained(self):
        process = self.start("run", "--standalone", "--no-python", "sh", "-c", "touch up; sleep 1000")
        wait_for(lambda: os.path.exists(os.path.join(self.work, "up")), "the worker")
        process.signal(signal.SIGABRT)
        self.assert_ends(process, -signal.SIGABRT, "muster: aborted, by a library")

    def test_too_few_descriptors_end_in_a_sentence(self):
        for hard in (12, 18, 30, 60):
            with self.subTest(hard=hard):
                process = self.standalone(
                    "--nproc-per-node=10", "--no-python", "true",
                    preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard)))
                self.assert_ends(process, 71, "the limit of open files (%d)" % hard, "ulimit -Hn")
                self.assertEqual(process.err.count("\n"), 1, process.err)

    def test_one_failure_ends_all_workers(self):
        process = self.standalone("--nproc-per-node=3", "--no-python", "sh", "-c",
                                  "[ $RANK = 1 ] && exit 5; exec sleep 600")
        self.assert_ends(process, 5, "rank      : 1 (local_rank: 1)")

    def test_failure_summary_names_the_cause(self):
        process = self.standalone(
            "--nproc-per-node=2", "--no-python", "sh", "-c",
            'if [ $RANK = 1 ]; then echo "it broke: $RANK" >&2; exit 7; fi; exec sleep 600')
        self.assert_ends(process, 7, "sh FAILED", "Root Cause (first observed failure):",
                         "rank      : 1 (local_rank: 1)", "exitcode  : 7 (pid: ",
                         "error_file: <N/A>", "it broke: 1", "host      : ")

    def test_failure_summary_shows_the_error_file(self):
        process = self.standalone(
            "--no-python", "sh", "-c",
            'echo \'{"message": {"message": "RuntimeError: wrong shape", "extraInfo": '
            '{"py_callstack": "Traceback: RuntimeError: wrong shape", "timestamp": "1700000000"}}}\' '
            '> $TORCHELASTIC_ERROR_FILE; exit 1')
        self.assert_ends(process, 1, "RuntimeError: wrong shape")


class Programs(process_kit.Case):
    def test_missing_is_127(self):
        process = self.standalone("--max-restarts=3", "--no-python", "/no/such/program")
        self.assert_ends(process, 127, '"/no/such/program" does not exist')
        self.assertEqual(process.err.count("\n"), 1, process.err)

    def test_not_on_path_is_127(self):
        process = self.standalone("--no-python", "no-such-program")
        self.assert_ends(process, 127, '"no-such-program" was not found', "PATH")

    def test_not_executable_is_126(self):
        process = self.standalone("--no-python", "/etc/passwd")
        self.assert_ends(process, 126, '"/etc/passwd" is not executable')

    def test_missing_script_is_named(self):
        process = self.standalone("train.py")
        self.assert_ends(process, 127, '"train.py" can\'t be found')

    def test_missing_python_is_named(self):
        self.write("train.py", "")
        process = self.standalone("train.py", env={"PYTHON_EXEC": "/no/python"})
        self.assert_ends(process, 127, '"/no/python" does not exist')

    def test_a_missing_interpreter_is_named(self):
        path = self.write("odd", "#!/no/such/interpreter -x\n", 0o755)
        process = self.standalone("--max-restarts=5", "--nproc-per-node=2", "--no-python", path)
        self.assert_ends(process, 127, path, '"/no/such/interpreter" of its #! line does not exist')
        self.assertEqual(process.err.count("\n"), 1, process.err)

    def test_an_interpreter_that_goes_is_named(self):
        interpreter = self.write("interpreter", "#!/bin/sh\nrm $0; exit 3\n", 0o755)
        path = self.write("odd", "#!%s\n" % interpreter, 0o755)
        process = self.standalone("--max-restarts=5", "--no-python", path)
        self.assert_ends(process, 127, '"%s" of its #! line does not exist' % interpreter)
        self.assertNotIn("attempt 2", process.err)

    def test_what_exec_refuses_is_never_retried(self):
        # Executable by its mode, but neither a binary nor a script that names its interpreter.
        path = self.write("odd", "echo\n", 0o755)
        process = self.standalone("--max-restarts=5", "--nproc-per-node=2", "--no-python", path)
        self.assert_ends(process, 126, path, "Exec format error", "begins with #!")
        self.assertNotIn("attempt", process.err)


class Usage(process_kit.Case):
    def check(self, words, *sentences):
        process = self.run_to_end("run", *words)
        self.assert_ends(process, 64, *sentences)
        self.assertEqual(process.err.count("\n"), 1, process.err)

    def test_unknown_flag_names_the_nearest(self):
        self.check(["--nproc-per-nodes=2", "x"], "--nproc-per-nodes", "--nproc-per-node?")

    def test_nonsense_values_are_named(self):
        for flag, value in [("--nnodes", "3:2"), ("--nnodes", "0"), ("--nnodes", "abc"),
                            ("--nproc-per-node", "-1"), ("--nproc-per-node", "many"),
                            ("--master-port", "70000"), ("--rdzv-endpoint", "h:x"),
                            ("--rdzv-conf", "join_timeout"), ("--max-restarts", "-1"),
                            ("--rdzv-backend", "zeus"), ("--shutdown-timeout", "-3"),
                            ("--scale-up", "now"), ("--preemption-signal", "TERM"),
                            ("--preemption-file", ""), ("--result-file", ""),
                            ("--topology-key", "rack 2"), ("--lost-contact", "goon"),
                            ("--max-node-failures", "-1"), ("--hang-timeout", "0.5")]:
            with self.subTest(flag=flag, value=value):
                self.check([flag, value, "x"], flag, '"%s"' % value, "allowed")

    def test_files_that_can_not_be_are_named(self):
        for flag in ("--result-file", "--preemption-file"):
            with self.subTest(flag=flag):
                words = ["--no-python", "true"]
                self.check(["%s=%s" % (flag, self.work), *words], flag, self.work, "is a folder",
                           "name a file in it")
                missing = self.work + "/none"
                self.check(["%s=%s/x" % (flag, missing), *words], flag, missing, "make it")

    def test_a_long_value_is_not_shown_whole(self):
        process = self.run_to_end("run", "--topology-key=" + 100000 * "k", "x")
        self.assert_ends(process, 64, '--topology-key: "kkk', "(100000 bytes) is not valid")
        self.assertLess(len(process.err), 400)

    def test_flags_that_are_too_short_are_refused(self):
        self.check(["--max-early", "2", "x"], "--max-early;", "can't be shortened")
        self.check(["--no", "2", "x"], "--no is too short, it may be --node-rank, --no-python")

    def test_flags_that_exclude_each_other(self):
        self.check(["-m", "--no-python", "x"], "-m and --no-python")
        self.check(["--standalone", "--nnodes=2", "x"], "--standalone")
        self.check(["--nnodes=2", "--node-rank=2", "x"], "--node-rank=2")

    def test_missing_program(self):
        self.check(["--standalone"], "no program was named")

    def test_gpu_without_a_gpu(self):
        self.write("train.py", "")
        process = self.run_to_end("run", "--nproc-per-node=gpu", "train.py",
                                  env={"CUDA_VISIBLE_DEVICES": ""})
        self.assert_ends(process, 64, "--nproc-per-node=gpu", "no GPU")

    def test_unwritable_log_folder(self):
        path = self.write("file", "")
        for folder in (path, path + "/below", "/proc/none"):
            result = os.path.join(self.work, "result.json")
            process = self.standalone("--log-dir", folder, "--result-file", result,
                                      "--no-python", "true")
            self.assert_ends(process, 73, "--log-dir=" + folder, "name a folder")
            self.assertEqual(process.err.count("\n"), 1, process.err)
            with open(result, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["exit_code"], 73)
            os.remove(result)

    def test_unknown_command(self):
        self.assert_ends(self.run_to_end("rum"), 64, '"rum"', "muster run")
        self.assert_ends(self.run_to_end("train.py"), 64, "muster run train.py")
        self.assert_ends(self.run_to_end(), 64, "usage")

    def test_help_and_version(self):
        for words in (["help"], ["--help"], ["run", "--help"], ["rendezvous", "--help"],
                      ["status", "--help"], ["drain", "--help"]):
            process = self.run_to_end(*words)
            self.assert_ends(process, 0)
            self.assertIn("Usage: muster", process.out)
            self.assertNotIn("\n\n\n", process.out)
        for words in (["version"], ["--version"], ["run", "--version"]):
            process = self.run_to_end(*words)
            self.assert_ends(process, 0)
            self.assertRegex(process.out, r"^muster \d+\.\d+\.\d+\n$")


class Ports(process_kit.Case):
    def test_a_busy_port_is_named_with_its_holder(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            one = self.run_to_end("run", "--master-port=%d" % port, "--no-python", "true")
            self.assert_ends(one, 69, "port %d" % port, "process %d (" % os.getpid())
            # It says nothing, so it may still become a rendezvous.
            many = self.run_to_end("run", "--nnodes=1:2", "--rdzv-endpoint=127.0.0.1:%d" % port,
                                   "--rdzv-conf=join_timeout=1", "--no-python", "true")
            self.assert_ends(many, 69, "port %d" % port, "no muster rendezvous")

    def test_jobs_with_defaults_do_not_collide(self):
        jobs = [self.start("run", "--nproc-per-node=2", "--prefix=never", "--no-python", "sh", "-c",
                           "echo $MASTER_PORT $WORLD_SIZE") for _ in range(10)]
        for job in jobs:
            self.assert_ends(job, 0)
        ports = [line.split()[0] for line in jobs[0].out.splitlines()]
        self.assertEqual(len(set(ports)), 1)
        for job in jobs:
            self.assertEqual([line.split()[1] for line in job.out.splitlines()], ["2", "2"])


if __name__ == "__main__":
    process_kit.main()
