#!/usr/bin/python3
"""Where the workers' output goes: console, prefixes, files."""
import os
import re
import resource
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

SPEAK = "echo out $RANK; echo err $RANK >&2"


class Console(process_kit.Case):
    def test_lines_are_prefixed_by_role_and_rank(self):
        process = self.standalone("--nproc-per-node=2", "--role=trainer", "--no-python", "sh",
                                  "-c", SPEAK)
        self.assert_ends(process, 0)
        for i in (0, 1):
            self.assertIn("[trainer%d]:out %d\n" % (i, i), process.out.replace("]: ", "]:"))
            self.assertIn("[trainer%d]:err %d\n" % (i, i), process.err.replace("]: ", "]:"))

    def test_a_single_worker_has_no_prefix_unless_asked(self):
        for words, expected in (([], "out 0\n"), (["--prefix=never"], "out 0\n")):
            process = self.standalone(*words, "--no-python", "sh", "-c", SPEAK)
            self.assert_ends(process, 0)
            self.assertEqual(process.out, expected)
        process = self.standalone("--prefix=always", "--no-python", "sh", "-c", SPEAK)
        self.assertEqual(process.out.replace("]: ", "]:"), "[default0]:out 0\n")

    def test_what_a_single_worker_tees_has_torchruns_prefix(self):
        process = self.standalone("--tee=1", "--log-dir=logs", "--no-python", "sh", "-c", SPEAK)
        self.assert_ends(process, 0)
        self.assertEqual((process.out, process.err), ("[default0]:out 0\n", "err 0\n"))

    def test_few_descriptors_are_enough(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE,
                               (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        process = self.standalone("--nproc-per-node=40", "--no-python", "sh", "-c",
                                  "echo limit $(ulimit -Sn)", preexec=few)
        self.assert_ends(process, 0)
        lines = sorted(process.out.replace("]: ", "]:").splitlines())
        self.assertEqual(lines, sorted("[default%d]:limit 64" % i for i in range(40)))

    def test_what_is_lost_is_counted_once(self):
        # Nobody reads stdout any more.
        reader, writer = os.pipe()
        os.close(reader)
        process = self.standalone("--nproc-per-node=2", "--no-python", "sh", "-c",
                                  "for i in 1 2 3; do echo 123456789; sleep 0.1; done; "
                                  "echo end >&2", stdout=writer)
        os.close(writer)
        self.assert_ends(process, 0, "some output to stdout is not shown: Broken pipe\n",
                         "muster: %d bytes of output are missing in the console, prefixes included "
                         "(Broken pipe)" % (6 * (len("[default0]:") + 10)))
        self.assertEqual(process.err.count("bytes"), 1, process.err)

    def test_bytes_are_not_decoded(self):
        process = self.standalone("--nproc-per-node=2", "--no-python", "sh", "-c",
                                  r"printf 'a\n\377\376\n\000b\nafter\n'")
        self.assert_ends(process, 0)
        output = process_kit.read(process.path("out"))
        self.assertEqual(output.count(b"after\n"), 2)
        self.assertEqual(output.count(b"\xff\xfe\n"), 2)


class Files(process_kit.Case):
    def run_with(self, *words, code=0, script=SPEAK):
        process = self.standalone("--nproc-per-node=2", "--log-dir=logs", *words, "--no-python",
                                  "sh", "-c", script)
        self.assert_ends(process, code)
        runs = os.listdir(os.path.join(self.work, "logs"))
        self.assertEqual(len(runs), 1)
        self.run_folder = os.path.join(self.work, "logs", runs[0])
        return process

    def file(self, attempt, rank, name):
        return process_kit.read(os.path.join(self.run_folder, "attempt_%d" % attempt, str(rank),
                                             name)).decode()

    def test_tee_writes_both(self):
        process = self.run_with("--tee=3")
        for i in (0, 1):
            self.assertEqual(self.file(0, i, "stdout.log"), "out %d\n" % i)
            self.assertEqual(self.file(0, i, "stderr.log"), "err %d\n" % i)
            self.assertIn("out %d\n" % i, process.out)
            self.assertIn("err %d\n" % i, process.err)

    def test_redirects_leave_the_console_alone(self):
        process = self.run_with("--redirects=1")
        for i in (0, 1):
            self.assertEqual(self.file(0, i, "stdout.log"), "out %d\n" % i)
            self.assertIn("err %d\n" % i, process.err)
        self.assertEqual(process.out, "")

    def test_choices_by_rank(self):
        process = self.run_with("-r", "0:1,1:2")
        self.assertEqual(self.file(0, 0, "stdout.log"), "out 0\n")
        self.assertEqual(self.file(0, 1, "stderr.log"), "err 1\n")
        self.assertNotIn("out 0", process.out)
        self.assertIn("out 1\n", process.out)
        self.assertIn("err 0\n", process.err)
        self.assertNotIn("err 1", process.err)

    def test_each_attempt_has_its_folder(self):
        self.run_with("--tee=3", "--max-restarts=1", code=1,
                      script="echo attempt $TORCHELASTIC_RESTART_COUNT; " +
                      process_kit.ALL_ARE_UP + "exit 1")
        self.assertEqual(self.file(0, 0, "stdout.log"), "attempt 0\n")
        self.assertEqual(self.file(1, 0, "stdout.log"), "attempt 1\n")

    def test_files_hold_every_byte(self):
        self.run_with("--tee=3", script=r"printf 'a\n\377\376\n\000b\nno newline'")
        for i in (0, 1):
            path = os.path.join(self.run_folder, "attempt_0", str(i), "stdout.log")
            self.assertEqual(process_kit.read(path), b"a\n\xff\xfe\n\0b\nno newline")


class Choices(process_kit.Case):
    """Whose output is shown, and which lines are gathered."""

    def attempt(self, name):
        logs = os.path.join(self.work, "logs")
        return process_kit.read(os.path.join(logs, os.listdir(logs)[0], "attempt_0", name)).decode()

    def test_the_console_shows_some_ranks_and_files_keep_all(self):
        process = self.standalone("--nproc-per-node=3", "--log-dir=logs", "--tee=1",
                                  "--local-ranks-filter=0,2", "--no-python", "sh", "-c", SPEAK)
        self.assert_ends(process, 0)
        for i in range(3):
            self.assertEqual("out %d\n" % i in process.out, i != 1, process.out)
            # Not redirected: shown or dropped.
            self.assertEqual("err %d\n" % i in process.err, i != 1, process.err)
            self.assertEqual(self.attempt("%d/stdout.log" % i), "out %d\n" % i)

    def test_a_rank_that_is_not_shown_still_tells_why_it_failed(self):
        process = self.standalone("--nproc-per-node=2", "--local-ranks-filter=0", "--no-python",
                                  "sh", "-c", process_kit.ALL_ARE_UP +
                                  "[ $RANK = 0 ] || { echo it broke >&2; exit 3; }; sleep 60")
        self.assert_ends(process, 3, "last lines of stderr:\n    it broke\n")

    def test_lines_with_a_text_are_gathered(self):
        process = self.standalone(
            "--nproc-per-node=2", "--log-dir=logs", "--tee=3", "--role=trainer",
            "--duplicate-stdout-filters=apple,,pie,orange", "--duplicate-stderr-filters=apple",
            "--no-python", "sh", "-c", "echo apple; echo apple,pie $RANK; echo an orange; "
            "echo an apple >&2")
        self.assert_ends(process, 0)
        self.assertEqual(sorted(self.attempt("filtered_stdout.log").splitlines()),
                         ["[trainer%d]:%s" % (i, text) for i in (0, 1)
                          for text in ("an orange", "apple,pie %d" % i)])
        self.assertEqual(sorted(self.attempt("filtered_stderr.log").splitlines()),
                         ["[trainer0]:an apple", "[trainer1]:an apple"])

    def test_prefixes_are_what_the_template_says(self):
        for words, env, expected in (
                (["--log-line-prefix-template=${rank}|${local_rank}|${role_name}> "], {},
                 "0|0|default> hi\n"),
                (["--log-line-prefix-template=a ", "--prefix=never"], {}, "hi\n"),
                (["--prefix=always"], {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${rank}>"},
                 "<0>hi\n"),
                (["--log-line-prefix-template=flag "],
                 {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "variable "}, "flag hi\n")):
            process = self.standalone(*words, "--no-python", "echo", "hi", env=env)
            self.assert_ends(process, 0)
            self.assertEqual(process.out, expected)

    def test_a_large_file_is_put_aside(self):
        process = self.standalone("--log-dir=logs", "--redirects=1", "--log-max-bytes=64K",
                                  "--no-python", "seq", "100000", "199999")
        self.assert_ends(process, 0, "has reached --log-max-bytes again")
        kept = self.attempt("0/stdout.log.1") + self.attempt("0/stdout.log")
        self.assertTrue(kept.endswith("199998\n199999\n"))
        self.assertTrue(64 << 10 <= len(kept) <= 128 << 10, len(kept))
        self.assertEqual(process.err.count("--log-max-bytes"), 1)


class Logs(process_kit.Case):
    """`muster logs`."""

    def test_files_of_all_attempts_are_read_together(self):
        process = self.standalone("--nproc-per-node=2", "--log-dir=logs", "--redirects=3",
                                  "--max-restarts=1", "--no-python", "sh", "-c",
                                  process_kit.ALL_ARE_UP +
                                  "echo out $RANK; echo err $RANK >&2; "
                                  "exit $((1 - TORCHELASTIC_RESTART_COUNT))")
        self.assert_ends(process, 0)
        shown = self.run_to_end("logs", "logs")
        self.assert_ends(shown, 0, "muster: logs of the newest run, logs/")
        lines = shown.out.splitlines()
        # A worker of attempt 0 may be stopped before it speaks; of attempt 1 none is.
        self.assertEqual([line for line in lines if line.startswith("[1.")],
                         ["[1.0]: out 0", "[1.0 err]: err 0", "[1.1]: out 1", "[1.1 err]: err 1"])
        self.assertTrue(any(line.startswith("[0.") for line in lines), lines)
        self.assertEqual(lines, sorted(lines, key=lambda line: line[:4]))
        some = self.run_to_end("logs", "logs", "--rank=1", "--attempt=1")
        self.assertEqual(some.out, "[1.1]: out 1\n[1.1 err]: err 1\n")
        some = self.run_to_end("logs", "logs", "--local-rank=0", "--attempt=1")
        self.assertEqual(some.out, "[1.0]: out 0\n[1.0 err]: err 0\n")
        # To its end, which has been.
        followed = self.run_to_end("logs", "-f", "logs")
        self.assert_ends(followed, 0, "muster: the agent has ended with exit code 0\n")
        self.assertEqual(sorted(followed.out.splitlines()), sorted(lines))
        for words, sentence in (
                (["--rank=9"], "muster: --rank=9: the job has no rank 9; its ranks are 0 to 1\n"),
                (["-f", "--rank=9"], "--rank=9: the job has no rank 9; its ranks are 0 to 1\n"),
                (["--local-rank=2"], '--local-rank=2: no node of "logs" has local rank 2; there are'),
                (["--attempt=2"], 'no log files of attempt 2 in "logs"; there are those of attempts 0-1\n'),
                (["-f", "--attempt=2"], "there are those of attempts 0-1\n")):
            absent = self.run_to_end("logs", "logs", *words)
            self.assert_ends(absent, 64, sentence)
            self.assertEqual(absent.out, "")

    def test_growing_files_are_followed(self):
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--log-dir=logs", "-r1",
                             "--max-restarts=1", "--no-python", "sh", "-c",
                             "echo began; until [ -e go.$TORCHELASTIC_RESTART_COUNT ]; do "
                             "sleep 0.05; done; echo more; "
                             "exit $((1 - TORCHELASTIC_RESTART_COUNT))")
        logs = os.path.join(self.work, "logs")
        process_kit.wait_for(lambda: os.path.isdir(logs) and any(
            "attempt_0" in os.listdir(os.path.join(logs, run)) for run in os.listdir(logs)),
            "the first attempt's folder")
        follower = self.start("logs", "-f", "--rank", "1", "logs")
        follower.wait_for_output("[0.1]: began\n")
        self.write("go.0", "")
        follower.wait_for_output("[1.1]: began\n")
        self.write("go.1", "")
        follower.wait_for_output("[1.1]: more\n")
        self.assert_ends(process, 0)
        self.assert_ends(follower, 0, "muster: the agent has ended with exit code 0\n")
        self.assertNotIn(".0]", follower.out)

    def test_the_last_words_of_a_job_are_shown_before_a_follower_ends(self):
        process = self.start("run", "--standalone", "--log-dir=logs", "--tee=1", "--no-python",
                             "sh", "-c", "echo began; until [ -e go ]; do sleep 0.05; done; "
                             "seq 20000; printf 'no newline'; exit 3")
        process.wait_for_output("began\n")
        follower = self.start("logs", "-f", "logs")
        self.write("go", "")
        self.assert_ends(process, 3)
        self.assert_ends(follower, 0, "the agent has ended with exit code 3\n")
        self.assertEqual(follower.out.splitlines(),
                         ["[0.0]: " + word for word in
                          ["began", *map(str, range(1, 20001)), "no newline"]])

    def test_a_follower_ends_with_an_agent_that_is_killed(self):
        process = self.start("run", "--standalone", "--log-dir=logs", "--tee=1", "--no-python",
                             "sh", "-c", "echo began; sleep 600")
        process.wait_for_output("began\n")
        follower = self.start("logs", "-f", "logs")
        follower.wait_for_output("[0.0]: began\n")
        process.signal(signal.SIGSTOP)
        # Silence is no end.
        time.sleep(1)
        self.assertTrue(follower.is_running())
        process.signal(signal.SIGKILL)
        self.assert_ends(follower, 0, "muster: the agent was killed\n")

    def test_nodes_that_share_a_folder_are_read_together(self):
        endpoint = "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port()
        script = "echo out $RANK; echo err $RANK >&2; until [ -e go ]; do sleep 0.05; done; echo end"
        nodes = [self.start("run", "--nnodes=2", endpoint, "--rdzv-id=job", "--nproc-per-node=2",
                            "--local-addr=127.0.0.%d" % i, "--log-dir=logs", "--tee=3",
                            "--no-python", "sh", "-c", script) for i in (1, 2)]
        for node in nodes:
            wait_for(lambda: all(text.replace("]: ", "]:").count(word) == 2 for text, word in
                                 ((node.out, "]:out"), (node.err, "]:err"))), "both workers")
        name = os.listdir(os.path.join(self.work, "logs"))[0]
        # Of the same run id, and no part of it.
        other = "--rdzv-endpoint=127.0.0.1:%d" % process_kit.free_port()
        self.assert_ends(self.run_to_end("run", "--nnodes=1", other, "--rdzv-id=job",
                                         "--log-dir=logs", "--tee=3", "--no-python", "echo",
                                         "another"), 0)
        self.assertEqual(len(os.listdir(os.path.join(self.work, "logs"))), 3)
        os.utime(os.path.join(self.work, "logs", name), (time.time() + 60,) * 2)
        follower = self.start("logs", "-f", "logs")
        one = self.start("logs", "-f", "logs", "--rank=3")
        alone = self.run_to_end("logs", os.path.join("logs", name), "--rank=3")
        for rank in range(4):
            wait_for(lambda: "out %d\n" % rank in follower.out, "each rank")
        self.write("go", "")
        for node in nodes:
            self.assert_ends(node, 0)
        for reader in (follower, one):
            self.assert_ends(reader, 0, "muster: all 2 agents have ended\n")
        shown = self.run_to_end("logs", "logs").out
        self.assertNotIn("another", shown)
        plain = re.sub(r"^(\[0\.\d) \S+\(127\.0\.0\.[12]\)", r"\1", shown, flags=re.M)
        self.assertEqual(plain, "".join("[0.%d]: out %d\n[0.%d]: end\n[0.%d err]: err %d\n" %
                                        ((rank,) * 5) for rank in range(4)))
        self.assertEqual(sorted(follower.out.splitlines()), sorted(shown.splitlines()))
        self.assertEqual(sorted(one.out.splitlines()),
                         sorted(line for line in shown.splitlines() if line.startswith("[0.3 ")))
        # One agent's folder alone has that rank, or says which it has.
        if alone.wait() == 0:
            self.assertIn("out 3\n", alone.out)
        else:
            self.assert_ends(alone, 64, "there are those of ranks 0-1 (each node has its own")

    def test_a_tree_without_a_record(self):
        """torchrun's."""
        folder = os.path.join(self.work, "logs", "none_x", "attempt_0", "1")
        os.makedirs(folder)
        self.write(os.path.join(folder, "stdout.log"), "one\n")
        self.assertEqual(self.run_to_end("logs", "logs", "--local-rank=1").out, "[0.1]: one\n")
        self.assert_ends(self.run_to_end("logs", "logs", "--rank=1"), 64,
                         "use --local-rank, there are local ranks 1\n")
        follower = self.start("logs", "-f", "logs")
        follower.wait_for_output("[0.1]: one\n")
        wait_for(lambda: "doesn't say when its job ends" in follower.err, "the hint")
        follower.signal(signal.SIGINT)
        follower.wait()

    def test_a_slip_ends_in_one_sentence(self):
        for words, sentence in ((["none"], '"none" is no folder; name the --log-dir'),
                                ([], "no folder was named; usage: muster logs"),
                                (["--rank=1", "--local-rank=1", "."], "exclude each other"),
                                (["--rank=x", "."], '--rank: "x" is not valid')):
            self.assert_ends(self.run_to_end("logs", *words), 64, sentence)


class DiskFull(process_kit.Case):
    """BL-45: logs must not decide over training."""

    def test_bl45_it_is_said_once_and_the_job_goes_on(self):
        command = ('mount -t tmpfs -o size=1m t L && exec "$0" run --standalone '
                   "--nproc-per-node=2 --log-dir=L --tee=3 --no-python "
                   "sh -c 'seq 1000000 | head -c 4000000; echo end of $RANK'")
        os.mkdir(os.path.join(self.work, "L"))
        probe = process_kit.Process(self, ["unshare", "-Urm", "mount", "-t", "tmpfs", "t",
                                           os.path.join(self.work, "L")])
        if probe.wait() != 0:
            self.skipTest("mount namespaces are refused here: " + probe.err)
        process = process_kit.Process(self, ["unshare", "-Urm", "sh", "-c", command,
                                             process_kit.MUSTER])
        self.assert_ends(process, 0, "No space left on device; the job goes on without it")
        for i in (0, 1):
            self.assertIn("end of %d\n" % i, process.out)
        # Each file once while it goes on, and once with what is missing.
        self.assertEqual(process.err.count("cannot write"), 2, process.err)
        self.assertEqual(process.err.count("bytes of output are missing in"), 2, process.err)

    def test_so_is_a_folder_that_is_gone(self):
        process = self.start("run", "--standalone", "--log-dir=logs", "--redirects=3", "--no-python", "sh", "-c",
                             "until [ -e go ]; do sleep 0.01; done; echo why >&2; exit 3")
        logs = os.path.join(self.work, "logs")
        wait_for(lambda: any("stderr.log" in files for _, _, files in os.walk(logs)), "the logs")
        shutil.rmtree(logs)
        self.write("go", "")
        self.assert_ends(process, 3, "stderr.log: it was removed; the job goes on without it",
                         "bytes of output are missing in")


if __name__ == "__main__":
    process_kit.main()
