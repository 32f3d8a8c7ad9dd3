#!/usr/bin/python3
"""Where the workers' output goes: console, prefixes, files."""
import os
import resource
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


if __name__ == "__main__":
    process_kit.main()
