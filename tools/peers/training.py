"""From the kill of a worker to the next step of real training: examples/torch_ddp, two workers on one node."""
import os
import re
import shlex
import signal
import sys

import clusters
import launchers

TRAIN = os.path.join(launchers.ROOT, "examples", "torch_ddp", "train.py")
# A small network and few images, so that what is measured is the way back, not the first step.
OPTIONS = ["--model=tiny", "--images=2048", "--batch=32", "--epochs=1000", "--checkpoint-every=20"]
WORKERS = 2
MUSTER = clusters.MUSTER + " run --standalone --nproc-per-node=%d --max-restarts=9" % WORKERS
TORCHRUN = ("/usr/bin/python3 " + launchers.HERE + "/torchrun_shim.py --nnodes=1 --nproc_per_node=%d --rdzv_backend=c10d"
            " --rdzv_endpoint=127.0.0.1:{port} --rdzv_id=bench --max_restarts=9 --monitor_interval=" % WORKERS)
VARIANTS = {
    "muster": MUSTER,
    "muster_preload": MUSTER + " --preload=torch,numpy,torch.distributed.elastic.multiprocessing.errors",
    "torchrun": TORCHRUN + "0.1",
    "torchrun_default": TORCHRUN + "5",
}
# The budget with --preload, in seconds.
WANTED = 0.4

STEP = re.compile(r"\bstep \d+ epoch ")
BACK = re.compile(r"goes on after step \d+ ")


class Training(clusters.Log):
    """A run that is under way."""

    def __init__(self):
        super().__init__()
        self.command = [TRAIN, *OPTIONS, "--checkpoint=" + self.folder + "/checkpoint"]

    def output(self, after=0):
        with open(self.folder + "/said.0", errors="replace") as file:
            file.seek(after)
            return file.read()

    def workers(self):
        """Pids of the Python processes that run the program, the launcher aside."""
        found = []
        for pid in clusters.family(self.processes[0].pid)[1:]:
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as file:
                    # Of a fork it is one text with blanks.
                    words = file.read().decode(errors="replace").replace("\0", " ").split()
            except OSError:
                continue
            if words and "python" in os.path.basename(words[0]) and TRAIN in words:
                found.append(pid)
        return found

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


def worker_killed(variant):
    if variant == "by_hand":
        return by_hand()
    training = Training()
    words = shlex.split(VARIANTS[variant].format(port=launchers.free_port()))
    training.run(words + training.command, PYTHON_EXEC="/usr/bin/python3")
    # Past the first checkpoint.
    training.wait_for_steps(25)
    if len(training.workers()) != WORKERS:
        sys.exit("bench: %d workers found in place of %d:\n%s" % (len(training.workers()), WORKERS, training.said()))
    length = os.path.getsize(training.folder + "/said.0")
    began = clusters.now()
    clusters.kill(training.workers()[-1], signal.SIGKILL)
    took = clusters.now() - began if clusters.wait_for(
        lambda: back_in_step(training.output(length)), 60) else None
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
    training.wait_for_steps(25)
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
    took = clusters.now() - began
    training.close()
    return took
