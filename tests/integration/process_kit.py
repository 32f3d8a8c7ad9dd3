"""Starts real `muster` processes with deadlines and checks that nothing of them is left.

Every process of a test carries a tag in its environment, which descendants inherit: what is left is
found by it in /proc/<pid>/environ, whoever its parent is by then. Standard library only.
"""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import uuid
import xml.etree.ElementTree as ET

ROOT = os.environ.get("TEST_SRCDIR") and os.path.join(
    os.environ["TEST_SRCDIR"], os.environ.get("TEST_WORKSPACE", "muster")) or os.getcwd()
MUSTER = os.environ.get("MUSTER_BINARY") or os.path.join(ROOT, "launcher", "muster")
# Generous: a machine that builds something else at the same time is slow.
DEADLINE = 60.0
TAG_NAME = "MUSTER_TEST_TAG"


# For workers of a shell: each says that it is up in this attempt, and waits until all have. One that
# then fails can't end another one before it has said anything.
ALL_ARE_UP = ("touch up.$TORCHELASTIC_RESTART_COUNT.$RANK; "
              "until [ $(ls | grep -c ^up.$TORCHELASTIC_RESTART_COUNT.) = $WORLD_SIZE ]; do "
              "sleep 0.02; done; ")


def wait_for(condition, what, seconds=DEADLINE):
    """Returns condition() once it is true; fails when that takes too long."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %g s in vain for: %s" % (seconds, what))
        time.sleep(0.01)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def environment_of(pid):
    return read("/proc/%d/environ" % pid).split(b"\0")


def state_of(pid):
    """The letter of /proc/<pid>/stat (R, S, T, Z, ...), or None when the process is gone."""
    text = read("/proc/%d/stat" % pid)
    return chr(text[text.rindex(b")") + 2]) if text else None


def parent_of(pid):
    text = read("/proc/%d/stat" % pid)
    return int(text[text.rindex(b")") + 2:].split()[1]) if text else None


def descendants(pid):
    """Children of `pid`, their children and so on, zombies too."""
    parents = {other: parent_of(other) for other in all_pids()}
    found = []
    for other in parents:
        above = parents[other]
        while above and above != pid:
            above = parents.get(above)
        if above == pid:
            found.append(other)
    return found


def is_alive(pid):
    return state_of(pid) not in (None, "Z", "X")


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def tagged(tag):
    """Living processes that carry the tag."""
    entry = ("%s=%s" % (TAG_NAME, tag)).encode()
    return [pid for pid in all_pids() if entry in environment_of(pid) and is_alive(pid)]


def guardian_of(pid):
    """The child of a `muster run` that isn't a worker: it carries no MUSTER_WORKER_ID."""
    def find():
        for child in all_pids():
            if parent_of(child) == pid and not any(
                    e.startswith(b"MUSTER_WORKER_ID=") for e in environment_of(child)):
                return child
        return None
    return wait_for(find, "the guardian of process %d" % pid)


def free_port(host="127.0.0.1"):
    with socket.socket() as listener:
        listener.bind((host, 0))
        return listener.getsockname()[1]


class Process:
    """One started program, its output in files so that it never blocks on us."""

    def __init__(self, case, argv, env=None, cwd=None, stdin=None, executable=None, preexec=None,
                 stdout=None):
        self.case = case
        self.argv = argv
        self.folder = tempfile.mkdtemp(dir=case.folder)
        self.started = time.monotonic()
        environment = dict(case.environment)
        environment.update(env or {})
        with open(self.path("out"), "wb") as out, open(self.path("err"), "wb") as err:
            self.popen = subprocess.Popen(
                argv, executable=executable, env=environment, cwd=cwd or case.work,
                stdout=out if stdout is None else stdout, stderr=err,
                stdin=subprocess.DEVNULL if stdin is None else stdin, preexec_fn=preexec)
        self.pid = self.popen.pid
        case.processes.append(self)

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def out(self):
        return read(self.path("out")).decode(errors="replace")

    @property
    def err(self):
        return read(self.path("err")).decode(errors="replace")

    def wait(self, seconds=DEADLINE):
        """Its exit code (negative: a signal). Fails, with all that it said, when it takes longer."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s still runs after %g s; it said:\n%s" %
                                 (self.argv, seconds, self.said())) from None

    def is_running(self):
        return self.popen.poll() is None

    def said(self):
        return "--- stdout\n%s--- stderr\n%s" % (self.out, self.err)

    def wait_for_output(self, text, seconds=DEADLINE):
        def seen():
            if text in self.out or text in self.err:
                return True
            if not self.is_running() and text not in self.out + self.err:
                raise AssertionError("%s ended without saying %r:\n%s" %
                                     (self.argv, text, self.said()))
            return False
        wait_for(seen, "%r from %s" % (text, self.argv), seconds)

    def signal(self, number):
        self.popen.send_signal(number)


class Case(unittest.TestCase):
    """A test whose processes, ports and temporary files must all be gone at its end."""
    longMessage = True

    def setUp(self):
        self.tag = uuid.uuid4().hex
        self.folder = tempfile.mkdtemp(prefix="muster_test_", dir=os.environ.get("TEST_TMPDIR"))
        # The working directory of what is started, and its temporary folder, which must end empty.
        self.work = os.path.join(self.folder, "work")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.work)
        os.mkdir(self.temporary)
        self.processes = []
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "TMPDIR": self.temporary,
            # Else every job of several workers says that it is set.
            "OMP_NUM_THREADS": "1",
            TAG_NAME: self.tag,
        }

    def tearDown(self):
        left = []
        try:
            wait_for(lambda: not tagged(self.tag), "the end of all processes", 5)
        except AssertionError:
            left = ["%d: %s" % (pid, read("/proc/%d/cmdline" % pid).replace(b"\0", b" ").decode())
                    for pid in tagged(self.tag)]
        for pid in tagged(self.tag):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.processes:
            process.popen.wait()
        files = os.listdir(self.temporary)
        said = "\n".join(p.said() for p in self.processes)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(left, [], "processes are left; they said:\n" + said)
        self.assertEqual(files, [], "temporary files are left")

    def start(self, *words, **options):
        """`muster` with these words."""
        return Process(self, [MUSTER, *map(str, words)], **options)

    def run_to_end(self, *words, seconds=DEADLINE, **options):
        process = self.start(*words, **options)
        process.code = process.wait(seconds)
        return process

    def standalone(self, *words, **options):
        return self.run_to_end("run", "--standalone", *words, **options)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def assert_ends(self, process, code, *sentences):
        """It ends with this code and says each of these texts on stderr."""
        actual = process.wait()
        self.assertEqual(actual, code, process.said())
        for sentence in sentences:
            self.assertIn(sentence, process.err)


class CountedResult(unittest.TextTestResult):
    """Keeps what test.xml needs: (name, seconds, kind, text) of each case that was run or skipped."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.counted = []
        self._running = None

    def _note(self, test, kind, text):
        if self._running is None:
            # Of a class or module, outside any case.
            self.counted.append((test.id(), 0.0, kind, text))
        elif self._running[1] != "failure":
            self._running[1:] = [kind, text]

    def startTest(self, test):
        super().startTest(test)
        self._running = [time.monotonic(), None, ""]

    def stopTest(self, test):
        super().stopTest(test)
        began, kind, text = self._running
        self._running = None
        self.counted.append((test.id(), time.monotonic() - began, kind, text))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "failure", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failure", "%s: %s" % (subtest, err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)


def write_xml(path, counted):
    suite = ET.Element("testsuite", tests=str(len(counted)))
    for name, seconds, kind, text in counted:
        class_name, _, case_name = name.rpartition(".")
        case = ET.SubElement(suite, "testcase", classname=class_name, name=case_name,
                             time="%.3f" % seconds)
        if kind:
            # XML has no place for other control characters.
            text = "".join(c for c in text if c >= " " or c in "\n\t")
            ET.SubElement(case, kind, message=text.splitlines()[-1] if text else "").text = text
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main():
    """As unittest.main(), and tells Bazel of every case: by itself it knows the script alone."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=CountedResult)
    result = unittest.main(testRunner=runner, exit=False).result
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], result.counted)
    raise SystemExit(not result.wasSuccessful())
