"""Writes so many MB of lines of 100 bytes to stdout, as fast as they are taken: a worker for launch.py."""
import os
import sys

left = int(sys.argv[1]) * 1000000
rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
line = ("%3s " % rank).encode() + b"x" * 95 + b"\n"
block = line * 600
while left > 0:
    left -= os.write(1, block[:left])
