"""Says when a Python program reaches its first line, then runs it as Python itself would.

    first_line.py PROGRAM ARGUMENTS...

Appends a line to the file $EVENT_LOG as event_worker.cc does. What comes before it is the launcher's (and the
interpreter's start); what comes after it is the program's. Nothing is imported before the clock is read but what every
Python has imported when it starts.
"""
import time

NOW = time.clock_gettime_ns(time.CLOCK_MONOTONIC)

import os
import runpy
import sys


def say():
    get = os.environ.get
    size = get("WORLD_SIZE", "1")
    world = "%s/%s/%s" % (get("MASTER_PORT", "-"), get("TORCHELASTIC_RESTART_COUNT", "0"), size)
    line = "%d %d %d %s %s %s\n" % (NOW, os.getpid(), os.getppid(), get("RANK", "0"), size, world)
    # One write at the end of the file: several workers say it at once.
    with open(os.environ["EVENT_LOG"], "ab", buffering=0) as log:
        log.write(line.encode())


if __name__ == "__main__":
    say()
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
