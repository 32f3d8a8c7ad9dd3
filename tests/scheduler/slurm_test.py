#!/usr/bin/python3
"""`srun muster run` without a flag about nodes, under Slurm's own daemons: two nodes on one machine.

Skipped where Slurm isn't installed.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import process_kit
from process_kit import wait_for

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port0}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
KillWait=5
RequeueExit=75
# Whatever the machine has, a node has this many processors.
SlurmdParameters=config_overrides
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
NodeName=127.0.0.2 NodeHostname={host} NodeAddr=127.0.0.2 Port={port1} CPUs=4
NodeName=127.0.0.3 NodeHostname={host} NodeAddr=127.0.0.3 Port={port2} CPUs=4
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
def find(program):
    """The daemons are in folders that only root's PATH names."""
    return shutil.which(program, path=os.environ.get("PATH", "/usr/bin") + ":/usr/sbin:/sbin")


MISSING = [name for name in ("slurmctld", "slurmd", "srun", "sbatch") if find(name) is None]


@unittest.skipIf(MISSING, "not installed: " + ", ".join(MISSING))
class Slurm(process_kit.Case):
    def setUp(self):
        super().setUp()
        # A short path: the daemons make sockets in it.
        self.cluster = tempfile.mkdtemp(prefix="muster_slurm_", dir="/tmp")
        os.mkdir(os.path.join(self.cluster, "state"))
        path = os.path.join(self.cluster, "slurm.conf")
        ports = [process_kit.free_port() for _ in range(3)]
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(
                host=socket.gethostname().split(".")[0], folder=self.cluster, port0=ports[0], port1=ports[1],
                port2=ports[2], user=os.environ.get("USER") or subprocess.getoutput("id -un")))
        self.environment["SLURM_CONF"] = path
        self.daemons = [process_kit.Process(self, [find("slurmctld"), "-D", "-f", path])]
        for node in ("127.0.0.2", "127.0.0.3"):
            self.daemons.append(process_kit.Process(self, [find("slurmd"), "-D", "-f", path, "-N", node]))
        wait_for(lambda: self.ask("sinfo", "-h", "-o", "%D %t") == "2 idle", "two idle nodes")

    def tearDown(self):
        for daemon in reversed(self.daemons):
            daemon.popen.terminate()
            daemon.wait()
        shutil.rmtree(self.cluster, ignore_errors=True)
        super().tearDown()

    def ask(self, *words):
        done = subprocess.run(words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
        return done.stdout.decode().strip()

    def srun(self, *words, tasks_per_node=1):
        return process_kit.Process(self, [
            find("srun"), "--nodes=2", "--ntasks-per-node=%d" % tasks_per_node, "--overcommit",
            process_kit.MUSTER, "run", *words])

    def test_two_nodes_without_a_flag_about_them(self):
        process = self.srun("--nproc-per-node=2", "--no-python", "--prefix=never", "sh", "-c",
                            "echo rank $RANK of $WORLD_SIZE group $GROUP_RANK on $SLURM_NODEID at $MASTER_ADDR")
        self.assert_ends(process, 0, "muster: Slurm: node 0 of 2; they meet at 127.0.0.2",
                         "muster: Slurm: node 1 of 2; they meet at 127.0.0.2")
        self.assertEqual(sorted(process.out.splitlines()), [
            "rank %d of 4 group %d on %d at 127.0.0.2" % (rank, rank // 2, rank // 2) for rank in range(4)])

    def test_two_steps_at_once_do_not_meet(self):
        both = [self.srun("--no-python", "--prefix=never", "sh", "-c",
                          "echo %s $RANK of $WORLD_SIZE; sleep 1" % name) for name in "ab"]
        for name, process in zip("ab", both):
            self.assert_ends(process, 0)
            self.assertEqual(sorted(process.out.splitlines()), ["%s 0 of 2" % name, "%s 1 of 2" % name])

    def test_a_failed_worker_ends_the_step_on_both_nodes(self):
        process = self.srun("--no-python", "sh", "-c", "[ $RANK = 1 ] && exit 3; sleep 1000")
        self.assert_ends(process, 3, "exitcode  : 3")

    def test_a_failure_is_restarted_on_both(self):
        process = self.srun("--max-restarts=1", "--no-python", "--prefix=never", "sh", "-c",
                            "echo $RANK.$TORCHELASTIC_RESTART_COUNT; "
                            "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 1 ] && exit 3; sleep 1000")
        self.assert_ends(process, 0)
        self.assertEqual(sorted(line for line in process.out.splitlines() if line.endswith(".1")), ["0.1", "1.1"])

    def test_scancel_leaves_nothing(self):
        process = self.srun("--no-python", "sh", "-c", "touch up.$RANK; sleep 1000")
        wait_for(lambda: {"up.0", "up.1"} <= set(os.listdir(self.work)), "both workers")
        self.ask("scancel", self.ask("squeue", "-h", "-o", "%i"))
        self.assertNotEqual(process.wait(), 0)
        daemons = {daemon.pid for daemon in self.daemons}
        wait_for(lambda: not [pid for pid in process_kit.tagged(self.tag)
                              if pid not in daemons and process_kit.parent_of(pid) not in daemons],
                 "the end of all but Slurm's own")

    def test_one_copy_a_node(self):
        process = self.srun("--no-python", "true", tasks_per_node=2)
        self.assert_ends(process, 64, "Slurm has started 2 copies of muster on this node",
                         "srun --ntasks-per-node=1")

    def test_a_batch_script_is_one_node(self):
        script = self.write("job.sh", "#!/bin/sh\n%s run --nproc-per-node=2 --no-python --prefix=never "
                                      "sh -c 'echo $RANK of $WORLD_SIZE'\n" % process_kit.MUSTER, 0o755)
        out = os.path.join(self.work, "batch.out")
        self.ask("sbatch", "--nodes=2", "--wait", "--output=" + out, script)
        self.assertEqual(sorted(process_kit.read(out).decode().splitlines()), ["0 of 2", "1 of 2"])

    def test_a_job_that_asks_to_be_run_again_is_requeued(self):
        # What a drained or preempted job ends with, and here its worker.
        script = self.write("job.sh", "#!/bin/sh\nsrun --nodes=2 --ntasks-per-node=1 %s run --no-python "
                                      "sh -c 'exit $CODE'\n" % process_kit.MUSTER, 0o755)

        def submit(code):
            said = self.ask("sbatch", "--nodes=2", "--requeue", "--parsable", "--export=ALL,CODE=%d" % code,
                            "--output=/dev/null", script)
            return lambda: self.ask("scontrol", "show", "job", said)

        again, failed = submit(75), submit(3)
        wait_for(lambda: "Restarts=1" in again(), "the job to be requeued")
        self.assertIn("JobState=PENDING", again())
        wait_for(lambda: "JobState=FAILED" in failed(), "the end of the other job")
        self.assertIn("Restarts=0", failed())
        self.assertIn("ExitCode=3:0", failed())


if __name__ == "__main__":
    process_kit.main()
