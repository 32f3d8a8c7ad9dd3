#!/usr/bin/python3
"""What workers are given: arguments, environment, folder, input, byte for byte."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
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

    def test_torchruns_options_may_be_shortened_and_ours_not(self):
        process = self.standalone("--nproc=2", "--prefix=never", "--no-p", "echo", "--nproc=x")
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "--nproc=x\n" * 2)
        process = self.standalone("--n=2", "--no-python", "echo")
        self.assert_ends(process, 64, "option --n is too short, it may be --nnodes, "
                         "--nproc-per-node, --node-rank, --numa-binding, --no-python; write one")
        process = self.standalone("--hang=2", "--no-python", "echo")
        self.assert_ends(process, 64, "unknown option --hang; did you mean --hang-timeout?")

    def test_what_has_no_effect_is_said_once(self):
        process = self.standalone("--start-method=fork", "--monitor-interval=1",
                                  "--event-log-handler=console", "--no-python", "true")
        self.assert_ends(process, 0)
        self.assertEqual(process.err, "muster: without effect here, accepted for torchrun's sake: "
                         "--start-method, --monitor-interval, --event-log-handler\n")
        process = self.standalone("--logs-specs=mine", "--no-python", "true")
        self.assert_ends(process, 64, "names a class of a Python package")

    def test_torchruns_macro_stands_for_the_local_rank_where_it_is_asked_for(self):
        words = ["--no-python", "echo", "r=${local_rank}", "$$", "${rank}"]
        process = self.standalone("--nproc-per-node=2", "--prefix=never", "--local-rank-in-args",
                                  *words)
        self.assert_ends(process, 0)
        self.assertEqual(sorted(process.out.splitlines()), ["r=0 $$ ${rank}", "r=1 $$ ${rank}"])
        process = self.standalone("--prefix=never", *words)
        self.assertEqual(process.out, "r=${local_rank} $$ ${rank}\n")

    def test_the_help_page_marks_what_torchrun_lacks(self):
        page = self.run_to_end("run", "--help").out
        for line in ("* Where this node is", "* Who reads standard input", "Output:", "Faults:"):
            self.assertIn(line, page)
        self.assertNotIn("* Nodes of the job", page)

    def test_run_path_is_a_script_whatever_no_python_says(self):
        script = self.write("show.py", SHOW)
        process = self.standalone("--run-path", "--no-python", script, "a")
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "a\0\n")

    def test_alias_musterrun(self):
        alias = os.path.join(self.work, "musterrun")
        os.symlink(process_kit.MUSTER, alias)
        process = process_kit.Process(self, [alias, "--standalone", "--no-python", "echo", "run"])
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "run\n")


class Sizes(process_kit.Case):
    """What exec takes at most is a quarter of the stack's limit, and 128 KiB for each word."""
    WORD = "w" * 100000
    COUNT = "import sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])))"

    @staticmethod
    def stack(size):
        return lambda: resource.setrlimit(resource.RLIMIT_STACK,
                                          (size, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    def test_two_mebibytes_of_arguments_reach_the_program(self):
        script = self.write("count.py", self.COUNT)
        process = self.standalone(script, *[self.WORD] * 22, preexec=self.stack(32 << 20))
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "22 2200000\n")

    def test_more_than_the_system_takes_is_said_in_one_sentence(self):
        script = self.write("count.py", self.COUNT)
        # As much as `muster run` itself can be started with: what it adds is too much then.
        words = [self.WORD] * 4
        size = (2 << 20) // 4 - 4 * 100000
        while True:
            try:
                process = self.standalone(script, *words, "x" * size, preexec=self.stack(2 << 20))
                break
            except OSError:
                size -= 64
        self.assert_ends(process, 126, "Argument list too long; its arguments and environment "
                         "together", "raise the limit of the stack (`ulimit -s`)")
        self.assertNotIn("www", process.err)


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
            "TORCHELASTIC_SIGNALS_TO_HANDLE",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
        self.assertEqual({name for name in got if not name.startswith("MUSTER_")}, expected)
        self.assertEqual(got["TORCHELASTIC_USE_AGENT_STORE"], "True")
        self.assertEqual(got["RANK"], "0")
        self.assertEqual(got["ROLE_NAME"], "default")
        self.assertEqual(got["MASTER_ADDR"], "127.0.0.1")

    def test_omp_num_threads(self):
        show = ["--no-python", "sh", "-c", "echo ${OMP_NUM_THREADS-unset}"]
        del self.environment["OMP_NUM_THREADS"]
        cpus = len(os.sched_getaffinity(0))
        for words, env, expected in ((["--nproc-per-node=2"], {}, "1"),
                                     (["--nproc-per-node=2", "--omp-threads=3"],
                                      {"OMP_NUM_THREADS": "5"}, "3"),
                                     (["--nproc-per-node=%d" % (2 * cpus), "--omp-threads=auto"],
                                      {}, "1"),
                                     (["--nproc-per-node=2"], {"OMP_NUM_THREADS": "5"}, "5"),
                                     (["--nproc-per-node=1"], {}, "unset")):
            process = self.standalone("--prefix=never", *words, *show, env=env)
            self.assert_ends(process, 0)
            self.assertEqual(set(process.out.split()), {expected})
            warned = words == ["--nproc-per-node=2"] and not env
            self.assertEqual("Setting OMP_NUM_THREADS environment variable for each process to be "
                             "1 in default" in process.err, warned, process.err)

    def test_pet_variables_are_defaults(self):
        process = self.run_to_end("run", "sh", "-c", "echo $WORLD_SIZE",
                                  env={"PET_NPROC_PER_NODE": "2", "PET_NO_PYTHON": "1",
                                       "PET_STANDALONE": "1"})
        self.assert_ends(process, 0)
        self.assertEqual(process.out.count("2\n"), 2)


class Input(process_kit.Case):
    def feed(self, text, *words):
        """What workers that copy their input to files named by their rank got, by rank."""
        reader, writer = os.pipe()
        os.write(writer, text)
        os.close(writer)
        process = self.standalone(*words, "--no-python", "sh", "-c", "cat > got.$RANK",
                                  stdin=reader)
        os.close(reader)
        self.assert_ends(process, 0)
        return {name[4:]: process_kit.read(os.path.join(self.work, name)).decode()
                for name in os.listdir(self.work)}

    def test_the_only_worker_reads_it(self):
        self.assertEqual(self.feed(b"one\ntwo\n"), {"0": "one\ntwo\n"})

    def test_nobody_reads_it_where_that_is_asked_for(self):
        self.assertEqual(self.feed(b"one\n", "--stdin=none"), {"0": ""})

    def test_the_rank_that_is_named_reads_it(self):
        self.assertEqual(self.feed(b"one\n", "--nproc-per-node=3", "--stdin=2"),
                         {"0": "", "1": "", "2": "one\n"})

    def test_all_may_read_it(self):
        got = self.feed(b"one\n", "--nproc-per-node=2", "--stdin=all")
        self.assertEqual(sorted(got.values()), ["", "one\n"])

    def test_a_debugger_has_its_terminal(self):
        terminal = cluster_kit.Terminal()
        script = self.write("ask.py", "print('got', input('name? ')); breakpoint()\nprint('after')\n")
        process = self.start("run", "--standalone", script, stdin=terminal.slave,
                             preexec=terminal.take)
        process.wait_for_output("name? ")
        terminal.type(b"rank zero\n")
        process.wait_for_output("(Pdb)")
        terminal.type(b"c\n")
        self.assert_ends(process, 0)
        terminal.close()
        self.assertIn("got rank zero\n", process.out)
        self.assertIn("after\n", process.out)

    def test_a_job_in_the_background_leaves_the_terminal_to_the_foreground(self):
        terminal = cluster_kit.Terminal()
        # The shell has the terminal and starts the job in a group of its own, as `&` does.
        shell = process_kit.Process(
            self, ["sh", "-c", 'set -m; "$0" run --standalone --no-python sh -c "cat; echo end" & '
                   "read line; echo shell $line; wait", process_kit.MUSTER],
            stdin=terminal.slave, preexec=terminal.take)
        shell.wait_for_output("end\n")
        terminal.type(b"for the shell\n")
        self.assert_ends(shell, 0)
        terminal.close()
        self.assertIn("shell for the shell\n", shell.out)

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
