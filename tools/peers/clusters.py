"""Jobs of several nodes on this machine, for the benchmarks: a node is a launcher and its workers.

Workers are tools/peers/event_worker.cc, so everything is read from one log of first lines.
"""
import collections
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import launchers

WORKER = launchers.ROOT + "/bazel-bin/tools/peers/event_worker"
MUSTER = launchers.ROOT + "/bazel-bin/launcher/muster"

# {nodes}: MIN:MAX, {n}: workers of a node, {port}: of the rendezvous, {conf}: its settings.
NODE = {
    "muster": MUSTER + " run --nnodes={nodes} --nproc-per-node={n} --rdzv-endpoint=127.0.0.1:{port}"
              " --rdzv-id=bench --rdzv-conf={conf} --max-restarts=9 --no-python",
    "torchrun": "/usr/bin/python3 " + launchers.HERE + "/torchrun_shim.py --nnodes={nodes}"
                " --nproc_per_node={n} --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:{port}"
                " --rdzv_id=bench --rdzv_conf={conf} --max_restarts=9 --monitor_interval={monitor}"
                " --no_python",
}
# What torchrun's own defaults are is measured too: people run them.
VARIANTS = {
    "muster": {"program": "muster", "conf": "last_call_timeout=1"},
    "torchrun": {"program": "torchrun", "conf": "last_call_timeout=1", "monitor": 0.1},
    "torchrun_default": {"program": "torchrun", "conf": "last_call_timeout=30", "monitor": 5},
}

Start = collections.namedtuple("Start", "time pid parent rank size world")


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def wait_for(condition, seconds):
    """condition() once it is true; None after so many seconds."""
    end = now() + seconds
    while now() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.002)
    return None


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def parents():
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as f:
                    found[int(name)] = int(f.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    return found


def family(pid):
    """The process and all its descendants."""
    children = collections.defaultdict(list)
    for child, parent in parents().items():
        children[parent].append(child)
    found, rest = [], [pid]
    while rest:
        found.append(rest.pop())
        rest += children[found[-1]]
    return found


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Log:
    """A folder with the log of first lines; ends, at last, every process that was started with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="muster_bench_")
        self.path = self.folder + "/starts"
        self.processes = []
        open(self.path, "w").close()

    def run(self, argv, **more):
        """Starts a program with more in its environment; its output is kept, in said.N of the folder."""
        environment = dict(os.environ, OMP_NUM_THREADS="1", EVENT_LOG=self.path,
                           TMPDIR=self.folder, **more)
        with open("%s/said.%d" % (self.folder, len(self.processes)), "wb") as said:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                       env=environment, cwd=self.folder, start_new_session=True)
        self.processes.append(process)
        return process

    def said(self):
        text = ""
        for i in range(len(self.processes)):
            with open("%s/said.%d" % (self.folder, i), errors="replace") as f:
                text += "--- %d\n%s" % (i, f.read()[-1500:])
        return text

    def starts(self, after=0.0):
        with open(self.path) as f:
            lines = [line.split() for line in f if line.endswith("\n")]
        all_starts = [Start(int(w[0]) / 1e9, *map(int, w[1:5]), w[5]) for w in lines]
        return [start for start in all_starts if start.time > after]

    def formed(self, size, after=0.0):
        """When the last worker of a world of this size ran its first line; None: not yet."""
        ranks = {start.rank: start.time for start in self.starts(after) if start.size == size}
        return max(ranks.values()) if len(ranks) == size else None

    def wait_formed(self, size, seconds, after=0.0):
        return wait_for(lambda: self.formed(size, after), seconds)

    def must_form(self, size, seconds=120):
        if self.wait_formed(size, seconds) is None:
            said = self.said()
            self.close()
            raise SystemExit("bench: no world of %d workers within %d s:\n%s" % (size, seconds, said))

    def close(self):
        pids = [pid for process in self.processes for pid in family(process.pid)]
        pids += [start.pid for start in self.starts()]
        for pid in pids:
            kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        wait_for(lambda: not any(map(is_alive, pids)), 10)
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster(Log):
    """Nodes of one job under one launcher ("muster", "torchrun", "torchrun_default")."""

    def __init__(self, variant, nodes, workers, *worker_flags, conf=""):
        super().__init__()
        settings = dict(VARIANTS[variant], nodes=nodes, n=workers, port=launchers.free_port())
        settings["conf"] += conf
        self.port = settings["port"]
        self.workers = workers
        self.argv = shlex.split(NODE[settings["program"]].format(**settings))
        self.argv += [WORKER, *worker_flags]
        self.nodes = []

    def add(self):
        """One more node; the first one hosts the rendezvous unless it is there already."""
        self.nodes.append(self.run(self.argv))
        return self.nodes[-1]

    def add_all(self, count):
        for _ in range(count):
            self.add()
        self.must_form(count * self.workers)

    def workers_of(self, node):
        members = set(family(node.pid))
        return [start.pid for start in self.starts() if start.pid in members]

    def signal_node(self, node, number):
        """To the launcher and all below it, at once; returns when that began."""
        pids = family(node.pid)
        began = now()
        for pid in pids:
            kill(pid, number)
        return began
