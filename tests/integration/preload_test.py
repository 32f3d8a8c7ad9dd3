#!/usr/bin/python3
"""--preload: workers forked from a Python that has imported their modules are as ones started afresh."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import wait_for

SEEN = """import os, sys
print(sys.argv, __name__, __file__, __package__, __spec__, __loader__.path, sorted(globals()))
print(sys.path, sys.orig_argv, os.getcwd(), sys.stdin.read(), sorted(os.listdir('/proc/self/fd'))[:3])
print(sorted(name for name in os.environ if not name.startswith('_')))
print([os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'TORCHELASTIC_RESTART_COUNT')])
print(os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), os.environ['GREETING'])
"""
# Name of the script, or of the module behind -m: what it holds.
PROGRAMS = {
    "seen.py": SEEN,
    "exit_3.py": "import sys; sys.exit(3)",
    "exit_text.py": "import sys; sys.exit('bye')",
    "exit_now.py": "import os; os._exit(7)",
    "exception.py": "def f():\n    raise ValueError('x')\nf()\n",
    "cause.py": "try:\n    1 / 0\nexcept Exception as e:\n    raise RuntimeError('y') from e\n",
    "syntax.py": "def f(:\n",
    "interrupt.py": "raise KeyboardInterrupt\n",
    "kill.py": "import os; os.kill(os.getpid(), 9)",
    "hook.py": "import sys\nsys.excepthook = lambda t, v, tb: print(t, v, tb.tb_frame.f_code.co_filename)\n1/0\n",
    "at_exit.py": "import atexit, threading, time\natexit.register(print, 'at exit')\n"
                  "threading.Thread(target=lambda: (time.sleep(.1), print('thread'))).start()\nprint('main')\n",
    "processes.py": "import multiprocessing as m\ndef f(x):\n    return 2 * x\nif __name__ == '__main__':\n"
                    "    for way in ('fork', 'spawn'):\n        print(m.get_context(way).Pool(2).map(f, [1, 2]))\n",
    "pickles.py": "import pickle\nclass A:\n    pass\nprint(pickle.loads(pickle.dumps(A())).__class__)\n",
    "notes.py": "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\ny: int = 3\n"
                "print(A(), __annotations__)\n",
    "signals.py": "import signal\nprint({s: str(signal.getsignal(s)) for s in signal.valid_signals()})\n",
    "pkg/__init__.py": "",
    "pkg/mod.py": SEEN.replace("__spec__", "__spec__.name"),
    "pkg/bad.py": "1 / 0\n",
    "folder/__main__.py": SEEN.replace("__spec__", "__spec__.name"),
}
COMMANDS = [[name] for name in PROGRAMS if "/" not in name] + [
    ["./seen.py"], ["seen.py", "--preload=os", "", "two words", "ä\n"], ["-m", "pkg.mod", "-m", "x"],
    ["-m", "pkg.bad"], ["folder"]]


class Parity(process_kit.Case):
    def test_as_a_fresh_start(self):
        for name, text in PROGRAMS.items():
            self.write(name, text)
        self.environment.update(GREETING="hé\nllo")
        for words in COMMANDS:
            with self.subTest(words=words):
                ends = [self.end_of(words, *options) for options in ([], ["--preload=json,decimal"])]
                self.assertEqual(*ends)

    def end_of(self, words, *options):
        # One worker: of several, the first that fails ends the others before they have said anything.
        process = self.standalone("--prefix=never", "--tee=3", "--log-dir=logs", *options, *words)
        code = process.wait()
        said = [line for line in process.err.splitlines() if "File " in line or "Error" in line]
        self.assertNotIn("without --preload", process.err)
        # The one thing that is another one's in every start.
        return code, sorted(process.out.splitlines()), [re.sub(r"pid \d+|/logs/\S+", "", line) for line in said]


class Imports(process_kit.Case):
    def test_are_made_once_for_all_rounds(self):
        self.write("heavy.py", "print('imported', flush=True)\n")
        script = self.write("t.py", "import heavy, os\nos._exit(os.environ['TORCHELASTIC_RESTART_COUNT'] != '2')\n")
        process = self.standalone("--nproc-per-node=2", "--max-restarts=2", "--preload=heavy", script)
        self.assert_ends(process, 0)
        self.assertEqual(process.out.count("imported"), 1, process.out)

    def test_random_numbers_differ(self):
        script = self.write("r.py", "import random\nprint(random.random())\n")
        process = self.standalone("--nproc-per-node=4", "--prefix=never", "--preload=random", script)
        self.assert_ends(process, 0)
        self.assertEqual(len(set(process.out.split())), 4, process.out)

    def test_what_cannot_be_forked_is_said_and_started_afresh(self):
        self.write("threads.py", "import threading, time\n"
                                 "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n")
        self.write("starts.py", "import subprocess\nsubprocess.Popen(['sleep', '1000'])\n")
        self.write("leaves.py", "import sys\nsys.exit(4)\n")
        self.write("dies.py", "import os\nos._exit(5)\n")
        script = self.write("t.py", "import os\nprint('ran', os.environ['RANK'])\n")
        for module, why in (("absent", "import absent failed: ModuleNotFoundError: No module named 'absent'"),
                            ("threads", "import threads started 1 thread, which a forked worker would lack\n"),
                            ("leaves", "import leaves failed: SystemExit: 4"),
                            ("starts", "import starts started a process, which all workers would share"),
                            ("dies", "its process ended")):
            with self.subTest(module=module):
                process = self.standalone("--nproc-per-node=2", "--prefix=never", "--preload=json," + module, script)
                self.assert_ends(process, 0)
                self.assertEqual(sorted(process.out.split("\n")), ["", "ran 0", "ran 1"])
                self.assertIn("muster: workers start without --preload: " + why, process.err)
        # With one worker nothing keeps numerical libraries from threads.
        process = self.standalone("--preload=threads", script, env={"OMP_NUM_THREADS": "2"})
        self.assert_ends(process, 0, "a forked worker would lack; --omp-threads=1 may keep it from that")

    def test_a_python_that_is_not_there(self):
        script = self.write("t.py", "")
        process = self.standalone("--preload=json", script, env={"PYTHON_EXEC": "/nowhere/python"})
        self.assertNotEqual(process.wait(), 0)
        self.assertIn("/nowhere/python", process.err)

    def test_bad_names_and_programs(self):
        for words, why in ((["--preload=a,,b", "t.py"], '"a,,b"'), (["--preload=../x", "t.py"], '"../x"'),
                           (["--preload=os", "--no-python", "true"], "only Python imports modules")):
            process = self.standalone(*words)
            self.assert_ends(process, 64)
            self.assertIn(why, process.err)

    def test_a_preload_of_the_environment_is_not_in_the_way_of_other_programs(self):
        process = self.standalone("--no-python", "echo", "ran", env={"PET_PRELOAD": "json"})
        self.assert_ends(process, 0, "muster: PET_PRELOAD=json is ignored, as --no-python runs a program")
        self.assertEqual((process.out, process.err.count("PET_PRELOAD")), ("ran\n", 1))

    def test_variables_that_a_module_or_a_script_in_the_place_of_python_sets(self):
        self.write("sets.py", "import os\nos.environ['BY_MODULE'] = 'm'\n")
        python = self.write("py.sh", "#!/bin/sh\nexport BY_SCRIPT=s GREETING=other\nunset GONE\n"
                                     "exec python3 \"$@\"\n", 0o755)
        script = self.write("t.py", "import os, sets\nprint([os.environ.get(name) for name in "
                                    "('BY_SCRIPT', 'GREETING', 'GONE', 'BY_MODULE', 'RANK')])\n")
        environment = {"PYTHON_EXEC": python, "GREETING": "hello", "GONE": "1"}
        for options in ([], ["--preload=sets"]):
            process = self.standalone("--prefix=never", *options, script, env=environment)
            self.assert_ends(process, 0)
            self.assertEqual(process.out, "['s', 'other', None, 'm', '0']\n", options)
            self.assertNotIn("without --preload", process.err)


    def test_a_default_for_a_rank_is_no_workers_rank(self):
        self.write("defaults.py", "import os\nos.environ.setdefault('RANK', '0')\n"
                                  "os.environ.setdefault('OWN', 'set')\n")
        script = self.write("t.py", "import os\nprint(os.environ['RANK'], os.environ['OWN'])\n")
        process = self.standalone("--nproc-per-node=2", "--prefix=never", "--preload=defaults", script)
        self.assert_ends(process, 0)
        self.assertEqual(sorted(process.out.splitlines()), ["0 set", "1 set"])


class Lifetime(process_kit.Case):
    SLEEPER = "import os, time\nopen('up.%s' % os.environ['RANK'], 'w').close()\ntime.sleep(1000)\n"

    def start_sleepers(self, *options):
        script = self.write("sleep.py", self.SLEEPER)
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--preload=json", *options, script)
        wait_for(lambda: all(os.path.exists(os.path.join(self.work, "up.%d" % i)) for i in (0, 1)), "both workers")
        return process

    def not_yet_workers(self, process):
        """The preloaded process, and spares that wait in its session."""
        guardian = process_kit.guardian_of(process.pid)
        return [pid for pid in process_kit.all_pids() if process_kit.parent_of(pid) == guardian and
                process_kit.read("/proc/%d/cmdline" % pid).startswith(b"muster-preload json")]

    def preloaded(self, process):
        found = [pid for pid in self.not_yet_workers(process) if os.getsid(pid) == pid]
        self.assertEqual(len(found), 1)
        return found[0]

    def spares(self, process):
        """Both, once they are there."""
        def find():
            found = set(self.not_yet_workers(process)) - {self.preloaded(process)}
            return found if len(found) == 2 else None

        return wait_for(find, "two spares")

    def test_ps_shows_the_workers_command(self):
        process = self.start_sleepers()
        guardian = process_kit.guardian_of(process.pid)
        shown = [process_kit.read("/proc/%d/cmdline" % pid) for pid in process_kit.all_pids()
                 if process_kit.parent_of(pid) == guardian]
        self.assertEqual(sum(b"sleep.py" in line for line in shown), 2, shown)
        process.signal(signal.SIGTERM)
        process.wait()

    # Notes its pid, and ends when its round may; the last round well.
    ROUNDS = ("import os, time\nrank, attempt = os.environ['RANK'], int(os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
              "name = 'pid.%d.%s' % (attempt, rank)\nopen(name + '~', 'w').write(str(os.getpid()))\n"
              "os.rename(name + '~', name)\n"
              "while not os.path.exists('go.%d' % attempt):\n    time.sleep(0.01)\nos._exit(attempt < 2)\n")

    def workers_of(self, attempt):
        paths = [os.path.join(self.work, "pid.%d.%d" % (attempt, rank)) for rank in (0, 1)]
        wait_for(lambda: all(os.path.exists(path) for path in paths), "both workers")
        return {int(process_kit.read(path)) for path in paths}

    def test_the_workers_of_the_next_round_are_forked_beforehand(self):
        script = self.write("t.py", self.ROUNDS)
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--preload=json", "--max-restarts=2", script)
        self.workers_of(0)
        for attempt in (0, 1):
            spares = self.spares(process)
            self.write("go.%d" % attempt, "")
            self.assertEqual(self.workers_of(attempt + 1), spares)
        self.spares(process)
        self.write("go.2", "")
        self.assert_ends(process, 0)
        # They were nobody's left-overs.
        self.assertNotIn("left", process.err)
        self.assertEqual(process_kit.tagged(self.tag), [])

    def test_a_spare_that_is_gone_is_missed_by_nobody(self):
        script = self.write("t.py", self.ROUNDS)
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--preload=json", "--max-restarts=2", script)
        self.workers_of(0)
        spares = self.spares(process)
        for pid in spares:
            os.kill(pid, signal.SIGKILL)
        self.write("go.0", "")
        self.assertFalse(self.workers_of(1) & spares)
        for attempt in (1, 2):
            self.write("go.%d" % attempt, "")
        self.assert_ends(process, 0)
        self.assertNotIn("without --preload", process.err)

    def test_spares_end_with_the_preloaded_process(self):
        process = self.start_sleepers()
        spares = self.spares(process)
        os.kill(self.preloaded(process), signal.SIGKILL)
        wait_for(lambda: not any(process_kit.is_alive(pid) for pid in spares), "the end of the spares")
        process.signal(signal.SIGTERM)
        process.wait()

    def test_dies_with_the_agent(self):
        process = self.start_sleepers()
        self.preloaded(process)
        process.popen.kill()
        process.wait()
        wait_for(lambda: not process_kit.tagged(self.tag), "the end of all")

    def test_workers_die_with_the_guardian(self):
        process = self.start_sleepers()
        os.kill(process_kit.guardian_of(process.pid), signal.SIGKILL)
        self.assert_ends(process, 70)
        wait_for(lambda: not process_kit.tagged(self.tag), "the end of all")

    def test_without_it_the_next_round_starts_afresh(self):
        script = self.write("t.py", "import os, time\nopen('up.%s' % os.environ['RANK'], 'w').close()\n"
                                    "while os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and "
                                    "not os.path.exists('go'):\n    time.sleep(0.01)\n"
                                    "os._exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')\n")
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--preload=json", "--max-restarts=1", script)
        wait_for(lambda: all(os.path.exists(os.path.join(self.work, "up.%d" % i)) for i in (0, 1)), "both workers")
        os.kill(self.preloaded(process), signal.SIGKILL)
        wait_for(lambda: "without --preload: its process ended" in process.err, "the line about it")
        self.write("go", "")
        self.assert_ends(process, 0)

    def test_a_frozen_one_holds_nobody_up(self):
        script = self.write("t.py", "import os, time\nopen('up.%s' % os.environ['RANK'], 'w').close()\n"
                                    "while os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and "
                                    "not os.path.exists('go'):\n    time.sleep(0.01)\n"
                                    "os._exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')\n")
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--preload=json", "--max-restarts=1", script)
        wait_for(lambda: all(os.path.exists(os.path.join(self.work, "up.%d" % i)) for i in (0, 1)), "both workers")
        os.kill(self.preloaded(process), signal.SIGSTOP)
        self.write("go", "")
        self.assert_ends(process, 0)
        self.assertIn("without --preload: its process didn't fork a worker within two seconds", process.err)

    def test_stopped_while_it_imports(self):
        self.write("slow.py", "import time\nopen('importing', 'w').close()\ntime.sleep(1000)\n")
        script = self.write("t.py", "")
        process = self.start("run", "--standalone", "--preload=slow", script)
        wait_for(lambda: os.path.exists(os.path.join(self.work, "importing")), "the import")
        process.signal(signal.SIGTERM)
        self.assert_ends(process, 143)


if __name__ == "__main__":
    process_kit.main()
