"""Command lines of the launchers that are compared, and what it takes to run and time one."""
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# {n}: workers, {port}: a free port, {cmd}: the worker's command. Two `torchrun --standalone` at a time
# share one port, so each gets a rendezvous of its own. Debian's torchrun needs the shim to start.
LAUNCHERS = {
    "muster": ROOT + "/bazel-bin/launcher/muster run --standalone --nproc-per-node={n} --no-python {cmd}",
    "floor": ROOT + "/bazel-bin/tools/peers/floor {n} {cmd}",
    "mpirun": "mpirun --allow-run-as-root --oversubscribe --bind-to none -np {n} {cmd}",
    "torchrun": "/usr/bin/python3 " + HERE + "/torchrun_shim.py --nnodes=1 --nproc_per_node={n}"
                " --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:{port} --rdzv_id=b{port}"
                " --monitor_interval=0.1 --no_python {cmd}",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_here(name):
    """Whether a peer can run on this machine; says why not."""
    if name == "mpirun" and not shutil.which("mpirun"):
        return "mpirun isn't installed (tools/setup.sh --with-peers)"
    if name == "torchrun":
        probe = subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
            return "/usr/bin/python3 has no torch (tools/setup.sh --with-peers)"
    return ""


def argv(name, n, command):
    out = []
    for word in shlex.split(LAUNCHERS[name]):
        if word == "{cmd}":
            out += command
        else:
            out.append(word.format(n=n, port=free_port()) if "{" in word else word)
    return out


def seconds(name, n, command, limit=120):
    """Wall seconds from exec to exit of one launch; ends the benchmark if it fails."""
    words = argv(name, n, command)
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    start = time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment, timeout=limit)
    took = time.monotonic() - start
    if done.returncode != 0:
        sys.exit("bench: '%s' ended with %d:\n%s" %
                 (" ".join(words), done.returncode, done.stderr.decode(errors="replace")[-2000:]))
    return took
