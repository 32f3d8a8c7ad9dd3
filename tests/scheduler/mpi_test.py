#!/usr/bin/python3
"""`mpirun --map-by ppr:1:node muster run`: mpirun reaches two hosts by ssh (sshd_kit.py) and starts one copy on each.

Skipped where Open MPI isn't installed, too.
"""
import os
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import process_kit
import sshd_kit


@unittest.skipIf(shutil.which("mpirun") is None, "not installed: mpirun (openmpi-bin)")
class Mpi(sshd_kit.Hosts):
    def mpirun(self, copies, *words):
        agent = self.write("agent", "#!/bin/sh\nexec %s \"$@\"\n" % self.ssh(), 0o755)
        return self.here.start(
            "mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include",
            "10.77.0.0/16", "--host", "node-0:2,node-1:2", "--map-by", "ppr:%d:node" % copies, "-x", "TMPDIR",
            "-x", process_kit.TAG_NAME, process_kit.MUSTER, "run", *words)

    def test_one_copy_on_each_host(self):
        process = self.mpirun(1, "--rdzv-endpoint=10.77.0.1:29400", "--nproc-per-node=2", "--prefix=never",
                              "--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE on $(hostname)")
        self.assert_ends(process, 0, "node 0 of 2", "node 1 of 2")
        self.assertEqual(sorted(process.out.splitlines()),
                         ["%d of 4 on node-%d" % (rank, rank // 2) for rank in range(4)])
        self.assert_nothing_runs()

    def test_several_copies_on_a_host_are_refused(self):
        process = self.mpirun(2, "--rdzv-endpoint=10.77.0.1:29400", "--no-python", "true")
        self.assertNotEqual(process.wait(), 0)
        self.assertIn("has started 2 copies of muster on this node", process.err)
        self.assert_nothing_runs()

    def test_a_worker_that_fails(self):
        process = self.mpirun(1, "--rdzv-endpoint=10.77.0.1:29400", "--no-python", "sh", "-c",
                              "[ $RANK = 1 ] && exit 7; sleep 1000")
        self.assert_ends(process, 7, "exitcode  : 7")
        self.assert_nothing_runs()


if __name__ == "__main__":
    process_kit.main()
