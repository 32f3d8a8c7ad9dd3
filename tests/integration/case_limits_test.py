#!/usr/bin/python3
"""The cases of the area LIMITS (tests/CASES.md): a container's small /dev/shm."""
import contextlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for

KILLS = 50 if cluster_kit.is_full() else 5


class SharedMemory(process_kit.Case):
    """BL-49, in a mount namespace whose /dev/shm has 64 KiB. Skipped where there can't be one."""

    SMALL = ("mount --make-rprivate / && mount -t tmpfs -o size=64k none /dev/shm && exec \"$@\"")

    def setUp(self):
        made = subprocess.run(["unshare", "-Urm", "sh", "-c", self.SMALL, "sh", "true"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if made.returncode:
            self.skipTest("a mount namespace can't be made here: " + made.stdout.decode().strip())
        super().setUp()

    def run_small(self, *words):
        return process_kit.Process(self, ["unshare", "-Urm", "sh", "-c", self.SMALL, "sh",
                                          process_kit.MUSTER, "run", "--standalone", *words])

    def test_bl49_collectives_do_not_need_what_is_not_there(self):
        job = self.run_small("--nproc-per-node=4", "--no-python", cluster_kit.ALLREDUCE)
        self.assert_ends(job, 0)
        self.assertEqual(job.out.count("right"), 4, job.said())

    def test_bl49_killed_workers_leave_nothing_in_shared_memory(self):
        job = self.run_small("--nproc-per-node=2", "--max-restarts=%d" % KILLS, "--max-early-failures=0",
                             "--max-stuck-restarts=0", "--no-python", cluster_kit.CASE_WORKER, "loop")
        for kill in range(KILLS + 1):
            job.wait_for_output("round %d " % (kill + 1))
            self.assertEqual(os.listdir("/proc/%d/root/dev/shm" % job.pid), [])
            guardian = process_kit.guardian_of(job.pid)
            workers = wait_for(lambda: [pid for pid in process_kit.all_pids()
                                        if process_kit.parent_of(pid) == guardian], "workers")
            for pid in workers if kill < KILLS else []:
                # The second may have been stopped by now.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.write("finish", "")
        self.assert_ends(job, 0)


if __name__ == "__main__":
    process_kit.main()
