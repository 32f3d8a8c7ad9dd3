"""Runs one case of the table under one launcher and keeps what came of it. No judgement; see facts.py."""
import dataclasses
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
# Generous: torchrun 1.13 gives a deaf worker 30 s, and machines are slow while something is built.
PATIENCE = 120
GRACE = 5


@dataclasses.dataclass
class Raw:
    """All that a run left behind, before anything is made of it."""
    codes: list
    out: list
    err: list
    workers: dict
    words: dict
    # What the launcher was given.
    environment: dict
    # () -> processes and temporary files that are still there.
    what_is_left: typing.Callable


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Scene:
    """The folders of one run; away at its end, and with them every process that still knows them."""

    def __init__(self, case, launcher, environment):
        self.case, self.launcher = case, launcher
        self.folder = tempfile.mkdtemp(prefix="parity_")
        for name in ("work", "out", "tmp", "lib"):
            os.mkdir(self.path(name))
        shutil.copy(os.path.join(HERE, "probe.py"), self.path("lib"))
        self.words = {"port": str(free_port()), "work": self.path("work"), "logs": self.path("logs"),
                      "launcher": launcher.command[0], "tmp": self.path("tmp")}
        self.environment = {
            "PATH": "/usr/bin:/bin", "HOME": self.path("work"), "TMPDIR": self.path("tmp"),
            "PYTHONPATH": self.path("lib"), "PYTHONDONTWRITEBYTECODE": "1", "PARITY_OUT": self.path("out"),
            "PARITY_LAUNCHER": json.dumps(launcher.command), "LC_ALL": "C.UTF-8",
            **environment, **launcher.environment}
        self.environment.update((k, self.fill(v)) for k, v in case.environment)
        self.write("train.py", "from probe import *\n" + case.program + "\n")
        for name, text in case.files:
            self.write(name, text)
        os.makedirs(os.path.join(self.path("work"), case.start_in), exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fill(self, text):
        for name, value in self.words.items():
            text = text.replace("{%s}" % name, value)
        return text

    def write(self, name, text):
        path = os.path.join(self.path("work"), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(self.fill(text))
        if text.startswith("#!"):
            os.chmod(path, 0o755)

    def start(self, index, options):
        argv = [self.fill(w) for w in (*self.launcher.command, *self.launcher.options(options), *self.case.command)]
        with open(self.path("out.%d" % index), "wb") as out, open(self.path("err.%d" % index), "wb") as err:
            process = subprocess.Popen(
                argv, stdout=out, stderr=err, env=self.environment,
                stdin=subprocess.DEVNULL if self.case.stdin is None else subprocess.PIPE,
                cwd=os.path.join(self.path("work"), self.case.start_in), start_new_session=True)
        if self.case.stdin is not None:
            try:
                process.stdin.write(self.case.stdin)
                process.stdin.close()
            except BrokenPipeError:
                pass
        return process

    def marks(self, kind):
        return glob.glob(os.path.join(self.path("out"), "*." + kind))

    def strike(self, processes):
        whom, number = self.case.strike
        end = time.monotonic() + PATIENCE
        while len(self.marks("ready")) < self.case.ready and time.monotonic() < end:
            if all(p.poll() is not None for p in processes):
                return
            time.sleep(0.01)
        if whom == "launcher":
            processes[0].send_signal(number)
        else:
            record = json.loads(read(os.path.join(self.path("out"), "0.%d.json" % whom)))
            os.kill(record["pid"], number)

    def processes(self):
        """Those that still know this run's folder."""
        mark = ("PARITY_OUT=" + self.path("out")).encode()
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and any(
            word.startswith(mark) for word in read("/proc/%s/environ" % name).split(b"\0"))]

    def what_is_left(self):
        """Processes and temporary files of a run that has ended, words for a message; a moment's grace."""
        end = time.monotonic() + GRACE
        while (self.processes() or os.listdir(self.path("tmp"))) and time.monotonic() < end:
            time.sleep(0.01)
        return [read("/proc/%d/cmdline" % pid).replace(b"\0", b" ").decode() for pid in self.processes()] + \
            os.listdir(self.path("tmp"))

    def close(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


def run_case(case, launcher, use, environment=None):
    """use(Raw) while the run's folders are still there; returns what that returns."""
    scene = Scene(case, launcher, environment or {})
    try:
        processes = [scene.start(i, options) for i, options in enumerate(case.launches())]
        if case.strike:
            scene.strike(processes)
        codes = []
        for process in processes:
            try:
                codes.append(process.wait(PATIENCE))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                codes.append("never ended")
        workers = {os.path.basename(path)[:-len(".json")]: json.loads(read(path)) for path in scene.marks("json")}
        count = range(len(processes))
        return use(Raw(codes=codes, out=[read(scene.path("out.%d" % i)) for i in count],
                       err=[read(scene.path("err.%d" % i)) for i in count], workers=workers,
                       words=scene.words, environment=scene.environment, what_is_left=scene.what_is_left))
    finally:
        scene.close()
