"""One rendezvous under the load of N nodes: forms a round, loses nodes, forms again; measures each.

A trial starts one server (`muster rendezvous`, or the bare gRPC program of the same shape) and a few
crowd processes that hold all nodes but those to be lost; each of these is a process of its own, so
that its loss is a SIGKILL. All instants are CLOCK_MONOTONIC, taken in the process that saw the event.
Standard library only.
"""
import ctypes
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time

CROWDS = 4
TICKS = os.sysconf("SC_CLK_TCK")


class TrialError(Exception):
    pass


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


class _Process:
    """A started program whose lines of output go, with it, into one queue."""

    def __init__(self, argv, lines, log):
        self.argv = argv
        self.popen = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=log, preexec_fn=_die_with_parent)
        self.pid = self.popen.pid
        self.lines = lines
        self.is_killed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.put((self, line.decode(errors="replace").split()))
        self.lines.put((self, ["closed"]))

    def tell(self, text):
        self.popen.stdin.write(text.encode())
        self.popen.stdin.flush()

    def kill(self):
        self.is_killed = True
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()


class Trial:
    """`kind` is "muster" or "bare". Use as a context; everything it started is gone after it.

    Raises TrialError when a node is disturbed, a count is wrong, or something takes longer than
    `deadline` seconds.
    """

    NEVER = 1 << 63

    def __init__(self, kind, nodes, losses, binaries, deadline=120.0, lease=None):
        if nodes < losses + CROWDS:
            raise TrialError("%d nodes are too few for %d losses and %d crowds" %
                             (nodes, losses, CROWDS))
        self.kind = kind
        self.nodes = nodes
        self.deadline = deadline
        self.lines = queue.Queue()
        self.log = tempfile.TemporaryFile()
        self.binaries = binaries
        self.lease = lease
        self.expected = {}
        self.disturbed = []
        self.round = 0
        self.first_stop = self.NEVER
        self.living = nodes
        self.processes = []
        self.losses = losses

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
        self.log.close()

    def _launch(self, argv):
        process = _Process(argv, self.lines, self.log)
        self.processes.append(process)
        return process

    def _start(self):
        if self.kind == "muster":
            argv = [self.binaries["muster"], "rendezvous", "--listen", "127.0.0.1:0"]
            if self.lease:
                argv += ["--lease", str(self.lease)]
            self.server = self._launch(argv)
            self.port = self._port_from_log()
            # A rendezvous forms nothing in its first second: that is no cost of the load.
            time.sleep(1.2)
        else:
            self.server = self._launch([self.binaries["bare_rendezvous"],
                                        "--nodes=%d" % self.nodes])
            self.port = int(self._next("listens")[1][1])
        self.crowds = [self._crowd("crowd%d" % i) for i in range(CROWDS)]
        self.victims = [self._crowd("loss%d" % i) for i in range(self.losses)]

    def _port_from_log(self):
        end = time.monotonic() + self.deadline
        while time.monotonic() < end:
            self.log.seek(0)
            found = re.search(rb"listens at \S+:(\d+)", self.log.read())
            if found:
                return int(found.group(1))
            if self.server.popen.poll() is not None:
                break
            time.sleep(0.01)
        raise TrialError("%s didn't say where it listens" % self.server.argv)

    def _crowd(self, name):
        argv = [self.binaries["crowd"], "--port=%d" % self.port, "--name=" + name,
                "--min-nodes=%d" % (self.nodes - self.losses), "--max-nodes=%d" % self.nodes]
        return self._launch(argv + (["--bare"] if self.kind == "bare" else []))

    # ---- what is heard

    def _next(self, word, end=None):
        """The next line that begins with `word`, with its process."""
        end = end or time.monotonic() + self.deadline
        while True:
            try:
                process, words = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TrialError("%s, %d nodes: no '%s' within %g s (%d nodes disturbed: %s)" % (
                    self.kind, self.nodes, word, self.deadline, len(self.disturbed),
                    "; ".join(self.disturbed[:3]))) from None
            if words[0] == word:
                return process, words
            if words[0] == "stopping":
                self.first_stop = min(self.first_stop, int(words[2]))
            elif words[0] == "disturbed":
                self.disturbed.append(" ".join(words[1:]))
            elif words[0] == "closed" and not process.is_killed:
                raise TrialError("%s ended by itself" % process.argv)

    def _all_attached(self):
        waiting = dict(self.expected)
        end = time.monotonic() + self.deadline
        while waiting:
            process, words = self._next("attached", end)
            if int(words[1]) == self.expected[process]:
                waiting.pop(process, None)

    def _all_started(self):
        """Waits until every living node knows its place in the next round; when the last one did."""
        waiting = dict(self.expected)
        end = time.monotonic() + self.deadline
        last = count = total = squares = 0
        rounds = set()
        while waiting:
            process, words = self._next("started", end)
            number, started, world, ranks, rank_squares, at = [int(w) for w in words[1:]]
            if number <= self.round or process not in waiting:
                continue
            if started != waiting.pop(process) or world != self.living:
                raise TrialError("%s, %d nodes: wrong place: %s" % (self.kind, self.nodes, words))
            rounds.add(number)
            count += started
            total += ranks
            squares += rank_squares
            last = max(last, at)
        n = self.living
        if len(rounds) != 1 or count != n or total != n * (n - 1) // 2 or \
                squares != (n - 1) * n * (2 * n - 1) // 6:
            raise TrialError("%s: the ranks of rounds %s are not 0 to %d" %
                             (self.kind, sorted(rounds), n - 1))
        self.round = rounds.pop()
        return last

    # ---- what is done

    def _add(self, process, count):
        self.expected[process] = self.expected.get(process, 0) + count
        process.tell("add %d\n" % count)

    def _add_to_crowds(self, count):
        for i, crowd in enumerate(self.crowds):
            self._add(crowd, count // CROWDS + (1 if i < count % CROWDS else 0))

    def form(self):
        """All nodes come at once: seconds until all know their places."""
        began = time.monotonic_ns()
        self._add_to_crowds(self.nodes - self.losses)
        for victim in self.victims:
            self._add(victim, 1)
        return (self._all_started() - began) / 1e9

    def join_last(self, settle=0.5):
        """All but one are there already: seconds from the last one's start until all know."""
        self._add_to_crowds(self.nodes - self.losses)
        for victim in self.victims[:-1]:
            self._add(victim, 1)
        self._all_attached()
        time.sleep(settle)
        began = time.monotonic_ns()
        self._add(self.victims[-1], 1)
        return (self._all_started() - began) / 1e9

    def lose(self):
        """One node is killed: seconds until all others know their new places, from the loss, and
        from when the first of them is told to stop: the rendezvous waits a moment in between, since
        a stream that ends may come back."""
        victim = self.victims.pop()
        self.expected.pop(victim)
        self.living -= 1
        self.first_stop = self.NEVER
        began = time.monotonic_ns()
        victim.kill()
        ended = self._all_started()
        return (ended - began) / 1e9, (ended - self.first_stop) / 1e9

    # ---- what the server took

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.server.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_memory(self):
        """Bytes."""
        with open("/proc/%d/status" % self.server.pid) as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) * 1024

    def bytes(self):
        """Sent and received by the server over the connections that are open now."""
        text = subprocess.run(["ss", "-tinH", "sport = :%d" % self.port], stdout=subprocess.PIPE,
                              text=True, timeout=self.deadline, check=True).stdout
        return sum(int(n) for n in re.findall(r"bytes_(?:sent|received):(\d+)", text))
