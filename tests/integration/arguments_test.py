#!/usr/bin/python3
"""What workers are given: arguments, environment, folder, input, byte for byte."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

# Prints its arguments, each ended by a NUL byte.
SHOW = "import sys; sys.stdout.write(''.join(a + '\\0' for a in sys.argv[1:]))"


class Arguments(process_kit.Case):
    def test_everything_after_the_program_is_its_own(self):
        words = ["--r=16", "--log", "5", "--mo", "0.9", "--nnodes", "3", "-m", "-h", "--version",
                 "--", "--standalone", "", "two words", "new\nline", "ä€", "$HOME", "*"]
        script = self.write("show.py", SHOW)
        for start in ([], ["--"]):
            process = self.standalone("--nproc-per-node=1", *start, script, *words)
            self.assert_ends(process, 0)
            # The console ends an unfinished last line.
            self.assertEqual(process.out.rstrip("\n").split("\0")[:-1], words)

    def test_both_spellings(self):
        for flag in ("--nproc-per-node=2", "--nproc_per_node=2"):
            process = self.standalone(flag, "--no_python", "sh", "-c", "echo $WORLD_SIZE")
            self.assert_ends(process, 0)
            self.assertEqual(process.out.count("2\n"), 2, process.out)

    def test_alias_musterrun(self):
        alias = os.path.join(self.work, "musterrun")
        os.symlink(process_kit.MUSTER, alias)
        process = process_kit.Process(self, [alias, "--standalone", "--no-python", "echo", "run"])
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "run\n")


class Folders(process_kit.Case):
    def test_the_callers_folder_in_every_attempt(self):
        here = os.path.join(self.work, "d é e")
        self.write("d é e/t.sh", '#!/bin/sh\npwd\n[ $TORCHELASTIC_RESTART_COUNT = 1 ]\n', 0o755)
        self.write("x.sh", '#!/bin/sh\npwd\n[ $TORCHELASTIC_RESTART_COUNT = 1 ]\n', 0o755)
        python = ("import os, sys\nsys.path.insert(0, 'pkg')\nimport local\nprint(os.getcwd())\n"
                  "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] != '1')\n")
        self.write("d é e/pkg/train.py", python)
        self.write("d é e/pkg/local.py", "")
        for words in (["--no-python", "./t.sh"], ["--no-python", "../x.sh"], ["pkg/train.py"],
                      ["-m", "pkg.train"]):
            with self.subTest(words=words):
                process = self.standalone("--max-restarts=1", *words, cwd=here)
                self.assert_ends(process, 0)
                self.assertEqual(process.out, (here + "\n") * 2)

    def test_a_relative_log_folder_is_below_the_callers(self):
        process = self.standalone("--log-dir=rel/logs", "--tee=3", "--no-python", "echo", "hi")
        self.assert_ends(process, 0)
        runs = os.listdir(os.path.join(self.work, "rel", "logs"))
        self.assertEqual(len(runs), 1)


class Daemon(process_kit.Case):
    def test_a_lease_that_nobody_could_hold_is_refused(self):
        for lease in ("0", "0.05"):
            process = self.run_to_end("rendezvous", "--listen=127.0.0.1:0", "--lease=" + lease)
            self.assert_ends(process, 64, '--lease: "%s" is too short; give at least 0.1' % lease)


class Environment(process_kit.Case):
    def variables(self, text):
        return dict(entry.split("=", 1) for entry in text.rstrip("\n").split("\0") if entry)

    def test_values_pass_through_byte_for_byte(self):
        given = {"SLURM_JOB_CPUS_PER_NODE": "64(x2)", "A": "b; touch pwned", "N": "two\nlines",
                 "E": "x=y=z", "BASH_FUNC_f%%": "() { echo hi; }", "U": ""}
        process = self.standalone("--no-python", "env", "-0", env=given)
        self.assert_ends(process, 0)
        got = self.variables(process.out)
        for name, value in {**self.environment, **given}.items():
            self.assertEqual(got.pop(name), value, name)
        self.assertFalse(os.path.exists(os.path.join(self.work, "pwned")))
        expected = {
            "LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "LOCAL_WORLD_SIZE",
            "WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
            "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID",
            "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
        self.assertEqual({name for name in got if not name.startswith("MUSTER_")}, expected)
        self.assertEqual(got["TORCHELASTIC_USE_AGENT_STORE"], "True")
        self.assertEqual(got["RANK"], "0")
        self.assertEqual(got["ROLE_NAME"], "default")
        self.assertEqual(got["MASTER_ADDR"], "127.0.0.1")

    def test_omp_num_threads(self):
        show = ["--no-python", "sh", "-c", "echo ${OMP_NUM_THREADS-unset}"]
        for words, env, expected in ((["--nproc-per-node=2"], {}, "1"),
                                     (["--nproc-per-node=2"], {"OMP_NUM_THREADS": "5"}, "5"),
                                     (["--nproc-per-node=1"], {}, "unset")):
            process = self.standalone("--prefix=never", *words, *show, env=env)
            self.assert_ends(process, 0)
            self.assertEqual(set(process.out.split()), {expected})

    def test_pet_variables_are_defaults(self):
        process = self.run_to_end("run", "sh", "-c", "echo $WORLD_SIZE",
                                  env={"PET_NPROC_PER_NODE": "2", "PET_NO_PYTHON": "1",
                                       "PET_STANDALONE": "1"})
        self.assert_ends(process, 0)
        self.assertEqual(process.out.count("2\n"), 2)


class Input(process_kit.Case):
    def test_standard_input_is_left_to_the_next_command(self):
        script = "%s run --standalone --nproc-per-node=2 --no-python cat\necho NEXT\n" % (
            process_kit.MUSTER)
        result = subprocess.run(["/bin/sh"], input=script.encode(), env=self.environment,
                                cwd=self.work, stdout=subprocess.PIPE, timeout=process_kit.DEADLINE,
                                check=True)
        self.assertEqual(result.stdout, b"NEXT\n")

    def test_closed_streams_do_no_harm(self):
        result = subprocess.run(
            ["/bin/sh", "-c", "exec \"$0\" run --standalone --nproc-per-node=2 --no-python "
             "sh -c 'echo $RANK > rank.$RANK' <&- >&- 2>&-", process_kit.MUSTER],
            env=self.environment, cwd=self.work, timeout=process_kit.DEADLINE, check=False)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(sorted(os.listdir(self.work)), ["rank.0", "rank.1"])


if __name__ == "__main__":
    process_kit.main()
