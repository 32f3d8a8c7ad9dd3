"""What the workers of the parity table import: it writes down what the launcher gave this worker.

Importing it leaves $PARITY_OUT/ATTEMPT.RANK.json (environment, arguments, folder, standard input), so a case
whose worker only has to be looked at is one line long. Standard library only: it starts in milliseconds.
"""
import json
import os
import signal
import stat
import sys
import time

RANK = int(os.environ["RANK"])
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
ATTEMPT = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
OUT = os.environ["PARITY_OUT"]
# A worker that waits for something which never comes ends all the same.
PATIENCE = 90


def _path(kind, rank=RANK):
    return os.path.join(OUT, "%d.%d.%s" % (ATTEMPT, rank, kind))


def _write(path, text):
    with open(path + ".part", "w") as file:
        file.write(text)
    os.rename(path + ".part", path)


def _input():
    """What standard input is: null, pipe, file, terminal, closed."""
    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISCHR(mode) and os.fstat(0).st_rdev == os.stat("/dev/null").st_rdev:
            return "null"
    except OSError:
        return "closed"
    kinds = ((stat.S_ISFIFO, "pipe"), (stat.S_ISREG, "file"), (stat.S_ISCHR, "terminal"))
    return next((name for check, name in kinds if check(mode)), "other")


def note(**facts):
    """Adds to what is known of this worker."""
    _known.update(facts)
    _write(_path("json"), json.dumps(_known))


_known = {
    "pid": os.getpid(),
    "environment": dict(os.environ),
    "argv": sys.argv,
    "folder": os.getcwd(),
    "input": _input(),
    "leads_session": os.getsid(0) == os.getpid(),
    "path0": sys.path[0],
    # Set by `python -u` alone: sys.flags doesn't show it.
    "line_by_line": sys.stdout.write_through,
    "ignored": [s.name for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1)
                if signal.getsignal(s) == signal.SIG_IGN],
}
note()


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit("probe: waited in vain")
        time.sleep(0.01)


def all_up():
    """Waits until all ranks of this attempt run: none is ended before it has said anything."""
    wait_for(lambda: all(os.path.exists(_path("json", rank)) for rank in range(WORLD)))


def mark(kind):
    _write(_path(kind), "")


def wait_mark(kind, rank):
    wait_for(lambda: os.path.exists(_path(kind, rank)))


def say(text, file=None):
    """A line of output that the table finds again: the rank stands before it.

    With its end in one write: print makes two under -u, and another worker's line may come between.
    """
    file = file or sys.stdout
    file.write("%d|%s\n" % (RANK, text))
    file.flush()


def complain(text):
    say(text, sys.stderr)


def hold():
    """Until a signal ends it."""
    wait_for(lambda: False)


def leave_on(*signals, code=0):
    """Notes which of these signals came, and ends with `code`."""
    def came(number, _):
        note(signal=signal.Signals(number).name)
        os._exit(code)
    for number in signals:
        signal.signal(number, came)
    mark("ready")


def write_error(text, code=None):
    """The error file as PyTorch's @record writes it."""
    message = {"message": "RuntimeError: " + text,
               "extraInfo": {"py_callstack": "Traceback (most recent call last):\n"
                                             "  File \"train.py\", line 3, in step\n"
                                             "RuntimeError: %s\n" % text,
                             "timestamp": str(int(time.time()))}}
    if code is not None:
        message["errorCode"] = code
    _write(os.environ["TORCHELASTIC_ERROR_FILE"], json.dumps({"message": message}))
