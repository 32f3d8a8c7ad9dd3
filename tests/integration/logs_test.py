#!/usr/bin/python3
"""Where the workers' output goes: console, prefixes, files."""
import os
import resource
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

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


if __name__ == "__main__":
    process_kit.main()
