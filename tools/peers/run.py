#!/usr/bin/python3
"""Runs a benchmark, and ends all that it started, whatever it is and however it ends.

    run.py SCRIPT [its options]

Launchers and their workers have sessions of their own, and some outlive their parents; all of them end
here: this process adopts the orphans among its descendants. So do their temporary files, which get a
folder of their own. Stopped by SIGTERM, SIGINT or SIGHUP it ends with 128 and that number, else with the
code of SCRIPT.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Of SIGKILL: what is stuck in the kernel is said and given up on.
PATIENCE = 10


class Stopped(BaseException):
    """A signal came."""

    def __init__(self, number):
        super().__init__()
        self.number = number


def stop(number, _):
    raise Stopped(number)


def children_of(pid):
    try:
        tasks = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return []
    found = []
    for task in tasks:
        try:
            with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                found += map(int, file.read().split())
        except OSError:
            pass
    return found


def descendants():
    found, rest = [], [os.getpid()]
    while rest:
        children = children_of(rest.pop())
        found += children
        rest += children
    return found


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_all():
    """Kills until nobody is left: one may fork while another is looked for."""
    end = time.monotonic() + PATIENCE
    while True:
        reap()
        left = descendants()
        if not left:
            return
        if time.monotonic() > end:
            print("bench: processes that can't be killed are left: %s" % left, file=sys.stderr)
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: run.py SCRIPT [its options]")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = tempfile.mkdtemp(prefix="muster_bench_")
    try:
        for number in STOPS:
            signal.signal(number, stop)
        # In a session of its own, so that ^C comes here alone.
        script = subprocess.Popen([sys.executable, *sys.argv[1:]], start_new_session=True,
                                  env=dict(os.environ, TMPDIR=folder))
        code = script.wait()
    except Stopped as stopped:
        code = -stopped.number
    finally:
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        end_all()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
