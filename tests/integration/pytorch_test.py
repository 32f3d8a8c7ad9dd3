#!/usr/bin/python3
"""A two-rank PyTorch script under every layout. Skipped where Python has no PyTorch."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

PYTHON = "/usr/bin/python3"
SCRIPT = os.path.join(process_kit.ROOT, "tests", "integration", "gloo_worker.py")


def why_not():
    result = subprocess.run([PYTHON, "-c", "import torch.distributed as d; d.is_available() or 1/0"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if result.returncode == 0:
        return ""
    return "%s has no torch.distributed: %s" % (
        PYTHON, result.stdout.decode().strip().splitlines()[-1])


REASON = why_not()


class PyTorch(process_kit.Case):
    def setUp(self):
        if REASON:
            self.skipTest(REASON)
        super().setUp()
        self.environment.update(PYTHON_EXEC=PYTHON, GLOO_SOCKET_IFNAME="lo")

    def check(self, processes, world):
        for process in processes:
            self.assert_ends(process, 0)
        lines = sorted("".join(process.out for process in processes).splitlines())
        total = world * (world + 1) // 2
        self.assertEqual(lines, ["rank %d of %d: sum %d" % (i, world, total)
                                 for i in range(world)])

    def test_standalone(self):
        self.check([self.start("run", "--standalone", "--nproc-per-node=2", "--prefix=never",
                               SCRIPT)], 2)

    def test_preloaded(self):
        process = self.start("run", "--standalone", "--nproc-per-node=2", "--prefix=never",
                             "--preload=torch,numpy", SCRIPT)
        self.check([process], 2)
        self.assertNotIn("without --preload", process.err)

    def test_static_layout(self):
        port = process_kit.free_port()
        self.check([self.start("run", "--nnodes=2", "--node-rank=%d" % i, "--master-port=%d" % port,
                               SCRIPT) for i in (0, 1)], 2)

    def test_elastic_layout(self):
        port = process_kit.free_port()
        self.check([self.start("run", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-id=job",
                               "--rdzv-endpoint=127.0.0.1:%d" % port, SCRIPT) for _ in (0, 1)], 2)


if __name__ == "__main__":
    process_kit.main()
