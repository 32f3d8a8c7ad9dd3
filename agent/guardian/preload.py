# Runs in a Python that the guardian has started for `--preload`: imports the modules once, then makes a worker
# whenever the guardian asks, which goes on as a fresh `python3 -u [-m] SCRIPT ARGUMENTS...` would. A fork takes long
# with all that was imported (torch: 12 ms, and 27 ms for the end of the process between, one worker after another), so
# when nothing is asked for, spares are forked: as many as were ever asked for at once. They are in our session, by
# which the guardian knows them, until they become workers.
#
# Started by agent/guardian/preloaded_python.cc as
#   python3 -u -c BOOTSTRAP THIS_SOURCE MODULES SCRIPT_OR_-m ...
# with the control socket as its stdin. Numbers on the socket are int64 in the machine's byte order, texts are a
# number and that many bytes, lists a number and that many texts.
#
#   to us     size of the rest, argv, environment, whether the worker ignores SIGCHLD, its processors (numbers);
#             its stdin, stdout and stderr as descriptors beside the first bytes
#   from us   one line each: "ready", "refused REASON", then for every request "pid PID" or "failed REASON"
#
# The first thing to us is no request: it is of the same form, and holds the environment that we were started with.
#
# Ends with the socket, and with the guardian.
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
import time

FILE = "<preload>"
PR_SET_PDEATHSIG = 1
MAX_REQUEST = 16 << 20
# So long after a request no spare is forked: the workers that were asked for are starting.
QUIET_SECONDS = 1.0


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def number(self):
        (value,) = struct.unpack_from("=q", self.data, self.at)
        self.at += 8
        return value

    def text(self):
        size = self.number()
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self):
        return [self.number() for _ in range(self.number())]

    def texts(self):
        return [self.text() for _ in range(self.number())]


class Request:
    """For one worker, as it came."""

    def __init__(self, body, fds):
        self.body = body
        self.fds = fds

    def pass_on(self, link):
        size = struct.pack("=q", len(self.body))
        rights = struct.pack("=3i", *self.fds)
        link.sendmsg([size], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        link.sendall(self.body)

    def close(self):
        for fd in self.fds:
            os.close(fd)


def say(control, line):
    control.sendall(line.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n")


def receive(control):
    """One request; None at the end of the socket."""
    head, control_data, _, _ = control.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    fds = []
    for level, kind, data in control_data:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += struct.unpack("=%di" % (len(data) // 4), data[: len(data) // 4 * 4])
    parts = [head]
    missing = 8 - len(head)
    while missing:
        part = control.recv(missing)
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    (missing,) = struct.unpack("=q", b"".join(parts))
    if missing > MAX_REQUEST or len(fds) != 3:
        return None
    parts = []
    while missing:
        part = control.recv(missing)
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return Request(b"".join(parts), fds)


def set_search_path(command):
    """What Python itself puts first: the script's folder, or the working directory for -m."""
    if sys.path and sys.path[0] == "" and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if command[0] == "-m" else os.path.dirname(os.path.realpath(command[0]))


def import_all(modules):
    """Why workers can't be forked after the imports, or None."""
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as error:  # a module may well call sys.exit()
            return "import %s failed: %s: %s" % (name, type(error).__name__, error)
        threads = os.listdir("/proc/self/task")
        if len(threads) > 1:
            count = len(threads) - 1
            # Most are those of numerical libraries.
            hint = "" if os.environ.get("OMP_NUM_THREADS") == "1" else "; --omp-threads=1 may keep it from that"
            return "import %s started %d thread%s, which a forked worker would lack%s" % (
                name, count, "" if count == 1 else "s", hint)
        children = child_processes()
        for pid in children:
            os.kill(pid, signal.SIGKILL)  # each worker will have one of its own
        if children:
            return "import %s started a process, which all workers would share" % name
        if uses_cuda():
            return "import %s opened a GPU, which a forked worker can't use" % name
    return None


def child_processes():
    try:
        with open("/proc/self/task/%d/children" % os.getpid(), "rb") as children:
            return [int(pid) for pid in children.read().split()]
    except OSError:
        return []  # a kernel without that file


def uses_cuda():
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        return True
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue  # the listing's own
        if target.startswith("/dev/nvidia") or target.startswith("/dev/kfd"):
            return True
    return False


def variables(environment):
    """Entries that are no assignment are left out, as Python does."""
    pairs = (entry.partition(b"=") for entry in environment)
    return {name: value for name, equals, value in pairs if equals and name}


class Imports:
    """Imported once, for every worker."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.guardian = os.getppid()
        self.given = {}
        self.changed = {}
        self.removed = []

    def compare(self, given):
        """What became of the environment that the guardian gave: a PYTHON_EXEC that is a script may set variables,
        Python sets LC_CTYPE where the locale is C, and modules set some when they are imported."""
        self.given = given
        self.changed = {name: value for name, value in os.environb.items() if given.get(name) != value}
        self.removed = [name for name in given if name not in os.environb]


def show_as(argv):
    """Writes a command over ours, for ps and top; it is left as it is where that can't be done."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rsplit(b")", 1)[1].split()
        start, end = int(fields[45]), int(fields[46])  # fields 48 and 49; after the name comes field 3
        title = b" ".join(argv)
        # A last byte that isn't 0 tells the kernel that the text ends at the first 0.
        if 0 < len(title) < end - start - 1:
            ctypes.memset(start, 0, end - start - 1)
            ctypes.memmove(start, title, len(title))
            ctypes.memset(end - 1, 1, 1)
    except (OSError, ValueError, IndexError):
        pass


def reseed():
    """A fresh process has its own random numbers; Python's module sees to itself when it is forked."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        torch.default_generator.seed()


def await_guardian(imports, forker):
    """The guardian, a subreaper, becomes our parent when the forker has gone."""
    while os.getppid() == forker:
        time.sleep(0.0001)
    imports.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != imports.guardian:
        os._exit(127)


def become_worker(imports, request):
    """Leaves nothing of us in the process but what was imported. Returns the worker's command line."""
    reader, fds = Reader(request.body), request.fds
    argv, environment, ignores_child_signal = reader.texts(), reader.texts(), reader.number() != 0
    cpus = reader.numbers()
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
        except OSError:
            pass  # they aren't to be had any more, which is no reason not to run
    if ignores_child_signal:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.environ.clear()
    own = variables(environment)
    os.environb.update(own)
    # What a module did to a variable that is the worker's own (its rank) was done to another value, or to none.
    for name, value in imports.changed.items():
        if own.get(name) == imports.given.get(name):
            os.environb[name] = value
    for name in imports.removed:
        if own.get(name) == imports.given.get(name):
            os.environb.pop(name, None)
    time.tzset()
    threading = sys.modules.get("threading")
    if threading is not None and hasattr(threading.main_thread(), "_set_native_id"):
        threading.main_thread()._set_native_id()  # older Pythons keep that of the process it was forked from
    show_as(argv)
    reseed()
    importlib.invalidate_caches()
    words = [os.fsdecode(word) for word in argv]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = list(words)
    return words


def run(python, words):
    """What Python does with its command line, in __main__."""
    import builtins

    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(
        __name__="__main__", __doc__=None, __package__=None, __loader__=None, __spec__=None,
        __annotations__={}, __builtins__=builtins,
    )
    import runpy

    if words[0] == "-m":
        sys.argv = ["-m"] + words[2:]
        runpy._run_module_as_main(words[1])
        return
    sys.argv = words
    script = words[0]
    if os.path.isdir(script) or script.endswith((".zip", ".pyz", ".pyc")):
        if script.endswith(".pyc"):
            runpy.run_path(script, run_name="__main__")
            return
        sys.path[0] = os.path.join(os.getcwd(), script)
        runpy._run_module_as_main("__main__", False)
        return
    path = os.path.join(os.getcwd(), script)
    try:
        import io

        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write("%s: can't open file %r: [Errno %d] %s\n" % (python, path, error.errno, error.strerror))
        raise SystemExit(2)
    from importlib.machinery import SourceFileLoader

    names.update(__loader__=SourceFileLoader("__main__", path), __file__=path, __cached__=None)
    exec(compile(source, path, "exec", dont_inherit=True), names)


def without_us(traceback):
    while traceback is not None and traceback.tb_frame.f_code.co_filename == FILE:
        traceback = traceback.tb_next
    return traceback


def run_as_python(python, words):
    """Ends as the interpreter would: by what is raised here, which its own code sees to."""
    try:
        run(python, words)
    except SystemExit:
        raise
    except BaseException as error:
        # The interpreter shows it, and ends by SIGINT after a KeyboardInterrupt.
        hook, shown = sys.excepthook, without_us(error.__traceback__)
        sys.excepthook = lambda kind, value, _: hook(kind, value.with_traceback(shown), shown)
        raise


class Spares:
    """Processes that wait to become workers; they end with us, and with the guardian."""

    def __init__(self, control, imports):
        self.control = control
        self.imports = imports
        self.links = []  # of (pid, socket)
        self.wanted = 0
        self.asked_at_once = 0

    def wait(self):
        """Until there is a request. Returns one in a spare whose turn has come, else None."""
        while not select.select([self.control], [], [], self.patience())[0]:
            self.wanted = max(self.wanted, self.asked_at_once)
            self.asked_at_once = 0
            if len(self.links) < self.wanted:
                request = self.fork()
                if request is not None:
                    return request
        self.asked_at_once += 1
        return None

    def patience(self):
        if self.asked_at_once > 0:
            return QUIET_SECONDS
        return 0 if len(self.links) < self.wanted else None

    def fork(self):
        ours, theirs = socket.socketpair()
        try:
            forker = os.fork()
        except OSError:
            self.wanted = 0  # workers are forked when they are asked for, or it is said why they can't be
            return None
        if forker == 0:
            return self.become_spare(os.getpid(), ours, theirs)
        theirs.close()
        wait_for(forker)
        pid = ours.recv(8)
        if len(pid) == 8:
            self.links.append((struct.unpack("=q", pid)[0], ours))
        else:
            self.wanted = 0
        return None

    def become_spare(self, forker, ours, theirs):
        try:
            if os.fork() != 0:
                os._exit(0)
        except OSError:
            os._exit(0)
        self.control.close()
        ours.close()
        self.forget()
        await_guardian(self.imports, forker)
        theirs.sendall(struct.pack("=q", os.getpid()))
        request = receive(theirs)
        if request is None:
            os._exit(0)
        theirs.close()
        return request

    def give(self, request):
        """The pid of the worker that a spare becomes; None if there is none."""
        while self.links:
            pid, link = self.links.pop()
            try:
                request.pass_on(link)
                return pid
            except OSError:
                pass  # somebody has killed it
            finally:
                link.close()
        return None

    def forget(self):
        for _, link in self.links:
            link.close()


def wait_for(child):
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass  # SIGCHLD is ignored: it has ended, and nobody is to be reaped


def fork_worker(control):
    """Forks twice, so that the guardian becomes the worker's parent and reaps it itself.

    Returns the middle process's pid in the worker, and None in ourselves.
    """
    forker = os.fork()
    if forker == 0:
        forker = os.getpid()
        try:
            worker = os.fork()
        except OSError as error:
            say(control, "failed " + os.strerror(error.errno))
            os._exit(0)
        if worker == 0:
            return forker
        say(control, "pid %d" % worker)
        os._exit(0)
    wait_for(forker)
    return None


def serve(control, imports):
    """Makes workers until the socket ends. Returns in each worker what it was asked to be."""
    spares = Spares(control, imports)
    while True:
        own = spares.wait()
        if own is not None:
            return own
        request = receive(control)
        if request is None:
            os._exit(0)
        pid = spares.give(request)
        if pid is not None:
            say(control, "pid %d" % pid)
            request.close()
            continue
        try:
            forker = fork_worker(control)
        except OSError as error:
            say(control, "failed " + os.strerror(error.errno))
            forker = None
        if forker is not None:
            control.close()
            spares.forget()
            await_guardian(imports, forker)
            return request
        request.close()


def main():
    control = socket.socket(fileno=os.dup(0))
    control.setblocking(True)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    modules = [name for name in sys.argv[1].split(",") if name]
    command = sys.argv[2:]
    show_as([b"muster-preload", os.fsencode(sys.argv[1])])
    set_search_path(command)
    sys.argv = [command[0]]
    imports = Imports()
    imports.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    request = receive(control)
    if request is None:
        os._exit(0)
    request.close()
    reader = Reader(request.body)
    reader.texts()
    given = variables(reader.texts())
    refusal = import_all(modules)
    imports.compare(given)
    if refusal:
        say(control, "refused " + refusal)
        os._exit(0)
    gc.collect()
    gc.freeze()  # a collection in a worker would copy every page that holds an object
    say(control, "ready")
    words = become_worker(imports, serve(control, imports))
    run_as_python(words[0], words[words.index("-u") + 1 :])


main()
