"""From the kill of a worker to the next step of real training: examples/torch_ddp, two workers on one node.

Split where the last new worker reaches the first line of the program (first_line.py, the same under every launcher and
by hand): what comes before it is the launcher's, with the start of the interpreter; what comes after it is PyTorch's
and the program's: imports, process group, checkpoint, the step.
"""
import os
import re
import shlex
import signal
import sys

import clusters
import launchers

TRAIN = os.path.join(launchers.ROOT, "examples", "torch_ddp", "train.py")
FIRST_LINE = os.path.join(launchers.HERE, "first_line.py")
# A small network and few images, so that what is measured is the way back, not the first step.
OPTIONS = ["--model=tiny", "--images=2048", "--batch=32", "--epochs=1000", "--checkpoint-every=20"]
WORKERS = 2
# Steps before the kill: past checkpoints, and seconds after the start, as failures are.
UNDER_WAY = 200
MUSTER = clusters.MUSTER + " run --standalone --nproc-per-node=%d --max-restarts=9" % WORKERS
TORCHRUN = ("/usr/bin/python3 " + launchers.HERE + "/torchrun_shim.py --nnodes=1 --nproc_per_node=%d --rdzv_backend=c10d"
            " --rdzv_endpoint=127.0.0.1:{port} --rdzv_id=bench --max_restarts=9 --monitor_interval=" % WORKERS)
VARIANTS = {
    "muster": MUSTER,
    "muster_preload": MUSTER + " --preload=torch,numpy,torch.distributed.elastic.multiprocessing.errors",
    "torchrun": TORCHRUN + "0.1",
    "torchrun_default": TORCHRUN + "5",
}
# Budgets in seconds: of the whole with --preload, and of what is the launcher's.
WANTED = 0.4
OURS = 0.1
# What a measurement is split into: rows of their own.
PARTS = [("  of it: SIGKILL -> first line of the last new worker", OURS),
         ("  of it: first line -> next step (PyTorch's)", None)]

STEP = re.compile(r"\bstep \d+ epoch ")
BACK = re.compile(r"goes on after step \d+ ")


class Training(clusters.Log):
    """A run that is under way."""

    def __init__(self):
        super().__init__()
        self.command = [FIRST_LINE, TRAIN, *OPTIONS, "--checkpoint=" + self.folder + "/checkpoint"]

    def output(self, after=0):
        with open(self.folder + "/said.0", errors="replace") as file:
            file.seek(after)
            return file.read()

    def must(self, what, condition, seconds=120):
        if clusters.wait_for(condition, seconds) is None:
            said = self.said()
            self.close()
            sys.exit("bench: %s within %d s:\n%s" % (what, seconds, said))

    def wait_for_steps(self, count):
        self.must("fewer than %d steps" % count, lambda: len(STEP.findall(self.output())) >= count)


def back_in_step(text):
    """Whether the new workers have made a step: what the old ones still say doesn't count."""
    back = BACK.search(text)
    return back is not None and STEP.search(text, back.end()) is not None


def split(training, began):
    """(until now, until the first line, from there until now): the step was made just now."""
    ended = clusters.now()
    started = training.formed(WORKERS, began)
    if started is None:
        sys.exit("bench: a step without the first lines of %d workers:\n%s" % (WORKERS, training.said()))
    return ended - began, started - began, ended - started


def worker_killed(variant):
    if variant == "by_hand":
        return by_hand()
    training = Training()
    words = shlex.split(VARIANTS[variant].format(port=launchers.free_port()))
    training.run(words + training.command, PYTHON_EXEC="/usr/bin/python3")
    training.wait_for_steps(UNDER_WAY)
    workers = training.starts()
    if sorted(worker.rank for worker in workers) != list(range(WORKERS)):
        sys.exit("bench: found %s in place of %d workers:\n%s" % (workers, WORKERS, training.said()))
    length = os.path.getsize(training.folder + "/said.0")
    struck = max(workers, key=lambda worker: worker.rank).pid
    began = clusters.now()
    clusters.kill(struck, signal.SIGKILL)
    is_back = clusters.wait_for(lambda: back_in_step(training.output(length)), 60)
    took = split(training, began) if is_back else None
    training.close()
    return took


def worker_killed_warm(_):
    return worker_killed("muster_preload")


def by_hand():
    """Both workers are killed and started again by hand, at once, as Python and PyTorch come."""
    training = Training()
    port = launchers.free_port()

    def start():
        return [training.run(["/usr/bin/python3", *training.command], RANK=str(rank), LOCAL_RANK=str(rank),
                             WORLD_SIZE=str(WORKERS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
                for rank in range(WORKERS)]

    first = start()
    training.wait_for_steps(UNDER_WAY)
    for process in first:
        process.kill()
        process.wait()
    # Rank 0 of the second pair says it.
    out = "%s/said.%d" % (training.folder, len(training.processes))
    port = launchers.free_port()
    began = clusters.now()
    start()

    def is_back():
        with open(out, errors="replace") as file:
            return back_in_step(file.read())

    training.must("no step by hand", is_back)
    took = split(training, began)
    training.close()
    return took
