"""Command lines of the launchers that are compared, and what it takes to run and time one."""
import os
import pwd
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
    # Only a script can be forked from a Python that is warm.
    "muster_preload": ROOT + "/bazel-bin/launcher/muster run --standalone --nproc-per-node={n} --preload=torch {cmd}",
    "floor": ROOT + "/bazel-bin/tools/peers/floor {n} {cmd}",
    "mpirun": "mpirun --allow-run-as-root --oversubscribe --bind-to none -np {n} {cmd}",
    "torchrun": "/usr/bin/python3 " + HERE + "/torchrun_shim.py --nnodes=1 --nproc_per_node={n}"
                " --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:{port} --rdzv_id=b{port}"
                " --monitor_interval=0.1 --no_python {cmd}",
    # Of the newest torch, where `tools/setup.sh --with-torch` has put it.
    "torchrun_newest": "{newest} -m torch.distributed.run --standalone --nproc-per-node={n} --no-python {cmd}",
}
NEWEST = os.path.join(os.environ.get("MUSTER_TORCH") or os.path.join(
    pwd.getpwuid(os.getuid()).pw_dir, ".cache", "muster", "torch"), "bin", "python")


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
    if name == "torchrun_newest" and not os.access(NEWEST, os.X_OK):
        return "the newest torch isn't installed (tools/setup.sh --with-torch)"
    return ""


def here(names):
    """Those that can run on this machine; says why the others can't."""
    found = []
    for name in names:
        problem = is_here(name)
        if problem:
            print("# without %s: %s" % (name, problem), file=sys.stderr)
        else:
            found.append(name)
    return found


def argv(name, n, command, options=()):
    """`options` are the launcher's own, more than it has in the table."""
    out = []
    for word in shlex.split(LAUNCHERS[name]):
        if word == "{cmd}":
            # Before --no-python, and for those that have none of it before the program.
            at = len(out) - (out[-1] in ("--no-python", "--no_python"))
            out[at:at] = options
            out += command
        else:
            out.append(word.format(n=n, port=free_port(), newest=NEWEST) if "{" in word else word)
    return out


def seconds(name, n, command, limit=120, options=(), stdout=subprocess.PIPE):
    """Wall seconds from exec to exit of one launch; ends the benchmark if it fails."""
    words = argv(name, n, command, options)
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHON_EXEC="/usr/bin/python3")
    start = time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE, env=environment, timeout=limit)
    took = time.monotonic() - start
    if done.returncode != 0:
        sys.exit("bench: '%s' ended with %d:\n%s" %
                 (" ".join(words), done.returncode, done.stderr.decode(errors="replace")[-2000:]))
    return took
