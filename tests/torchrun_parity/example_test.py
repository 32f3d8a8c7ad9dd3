#!/usr/bin/python3
"""examples/torch_ddp under torchrun and under muster: the same losses at every step, in every layout, after a kill.

`Elder` is Debian's PyTorch, `Newest` the one of `tools/setup.sh --with-torch`; each is skipped where it isn't there.
"""
import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("TEST_SRCDIR") and os.path.join(
    os.environ["TEST_SRCDIR"], os.environ.get("TEST_WORKSPACE", "muster")) or os.getcwd()
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration")]
import contenders
import process_kit

TRAIN = os.path.join(ROOT, "examples", "torch_ddp", "train.py")
DATA = "/usr/share/datasets/fashion-mnist"
STEPS = 60
# Two workers in every layout: what they compute is the same whoever started them.
ARGUMENTS = ["--model=tiny", "--images=640", "--batch=32", "--accumulate=2", "--epochs=3", "--steps=%d" % STEPS,
             "--test-images=100"]
STEP = re.compile(r"step (\d+) (epoch \d+ loss \S+ accuracy \S+)$")
# Importing PyTorch takes a machine that builds something a while.
PATIENCE = 240


class Layouts:
    """What both PyTorches are asked."""
    python = None
    reference = None

    def setUp(self):
        if not os.path.isdir(DATA):
            self.skipTest("the data set isn't there: Debian's package dataset-fashion-mnist")
        self.torchrun = self.launcher()
        super().setUp()
        self.torchrun_folder = os.path.join(self.folder, "torchrun")
        os.mkdir(self.torchrun_folder)
        self.environment.update(PYTHON_EXEC=self.torchrun.command[0], GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
                                PYTHONDONTWRITEBYTECODE="1", HOME=self.work,
                                # The newest PyTorch makes it in the temporary folder otherwise.
                                TORCHINDUCTOR_CACHE_DIR=self.torchrun_folder)

    def launcher(self):
        if self.python is None:
            self.skipTest("the newest PyTorch isn't there (tools/setup.sh --with-torch)")
        try:
            launcher = contenders.Torchrun(self.python)
        except (LookupError, OSError) as error:
            self.skipTest("no PyTorch to compare with: %s" % error)
        print("compared with " + launcher.about(), file=sys.stderr)
        return launcher

    def launch(self, who, options, arguments=()):
        words = [*options, TRAIN, *ARGUMENTS, *arguments]
        if who == "muster":
            return process_kit.Process(self, [process_kit.MUSTER, "run", "--prefix=never", *words])
        # It leaves its folders behind. The store that 2.15 lends to its workers has the keys of the attempt before in
        # it: after a restart a rank often finds an address that nobody listens at any more.
        environment = {**self.torchrun.environment, "TMPDIR": self.torchrun_folder,
                       "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        words = [*self.torchrun.options(options), TRAIN, *ARGUMENTS, *arguments]
        return process_kit.Process(self, [*self.torchrun.command, *words], env=environment)

    def losses(self, processes):
        """{step: its line}; a step that was made twice must have come out the same."""
        found = {}
        for process in processes:
            self.assertEqual(process.wait(PATIENCE), 0, process.said())
            for line in process.out.splitlines():
                match = STEP.search(line)
                if match:
                    self.assertEqual(found.setdefault(int(match[1]), match[2]), match[2], line)
        self.assertEqual(sorted(found), list(range(1, STEPS + 1)), processes[0].said())
        self.assertIn("done: %d steps by 2 workers" % STEPS, "".join(p.out for p in processes))
        return found

    def expected(self):
        """One node under torchrun: what everything is compared with."""
        if type(self).reference is None:
            port = process_kit.free_port()
            type(self).reference = self.losses([self.launch("torchrun", [
                "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:%d" % port])])
        return self.reference

    def test_one_node(self):
        reference = self.expected()
        self.assertEqual(self.losses([self.launch("muster", ["--standalone", "--nproc-per-node=2"])]), reference)
        # The comparison can tell: another seed gives other losses.
        other = self.launch("muster", ["--standalone", "--nproc-per-node=2"], ["--seed=2"])
        self.assertNotEqual(self.losses([other]), reference)

    def test_two_nodes(self):
        for who in ("torchrun", "muster"):
            with self.subTest(launcher=who):
                port = process_kit.free_port()
                nodes = [self.launch(who, ["--nnodes=2", "--node-rank=%d" % i, "--master-addr=127.0.0.1",
                                           "--master-port=%d" % port]) for i in (0, 1)]
                self.assertEqual(self.losses(nodes), self.expected())

    def test_elastic(self):
        # torchrun's own elastic layout is in the table; here it is the losses that count.
        port = process_kit.free_port()
        nodes = [self.launch("muster", [
            "--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:%d" % port, "--rdzv-id=job",
            "--rdzv-conf=last_call_timeout=120"]) for _ in (0, 1)]
        self.assertEqual(self.losses(nodes), self.expected())

    def worker(self, rank):
        """The process of this rank."""
        def find():
            for pid in process_kit.tagged(self.tag):
                words = process_kit.read("/proc/%d/cmdline" % pid).split(b"\0")
                if b"RANK=%d" % rank in process_kit.environment_of(pid) and TRAIN.encode() in words:
                    return pid
            return None
        return process_kit.wait_for(find, "rank %d" % rank)

    def test_after_a_kill(self):
        for who in ("torchrun", "muster"):
            with self.subTest(launcher=who):
                port = process_kit.free_port()
                job = self.launch(who, [
                    "--nproc-per-node=2", "--max-restarts=1", "--rdzv-backend=c10d",
                    "--rdzv-endpoint=127.0.0.1:%d" % port],
                    ["--checkpoint=%s/%s" % (self.work, who), "--checkpoint-every=3"])
                job.wait_for_output("step 4 ", PATIENCE)
                os.kill(self.worker(1), signal.SIGKILL)
                self.assertEqual(self.losses([job]), self.expected())
                self.assertRegex(job.out, r"goes on after step \d+ \(epoch \d, image \d+\)")

    def test_started_again_by_hand(self):
        keep = ["--checkpoint=%s/run" % self.work, "--checkpoint-every=7"]
        options = ["--standalone", "--nproc-per-node=2"]
        first = self.launch("muster", options, keep)
        first.wait_for_output("step 16 ", PATIENCE)
        first.signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE), 143, first.said())
        # One launcher's checkpoint is the other one's.
        port = process_kit.free_port()
        second = self.launch("torchrun", ["--nproc-per-node=2", "--rdzv-backend=c10d",
                                          "--rdzv-endpoint=127.0.0.1:%d" % port], keep)
        self.assertEqual(second.wait(PATIENCE), 0, second.said())
        reference = self.expected()
        lines = [STEP.search(line) for line in (first.out + second.out).splitlines()]
        made = [(int(m[1]), m[2]) for m in lines if m]
        self.assertEqual([line for step, line in made], [reference[step] for step, _ in made])
        self.assertEqual({step for step, _ in made}, set(reference))


class Elder(Layouts, process_kit.Case):
    python = contenders.PYTHON


class Newest(Layouts, process_kit.Case):
    python = contenders.newest_python()


if __name__ == "__main__":
    process_kit.main()
