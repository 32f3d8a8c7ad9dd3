#!/usr/bin/python3
"""Several jobs on one machine at once: none sees another. Two `torchrun --standalone` of 1.13 share a port; the second
joins the first one's store and dies with it. The newest one takes a free port, as muster always did.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("TEST_SRCDIR") and os.path.join(
    os.environ["TEST_SRCDIR"], os.environ.get("TEST_WORKSPACE", "muster")) or os.getcwd()
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration")]
import process_kit

# Each job has a folder of its own; its workers wait there until all of their job are up, and then for the word.
WORKER = """
import json, os, sys, time
folder, attempts = sys.argv[1], int(sys.argv[2])
rank, attempt = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
names = ("RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
         "MUSTER_AGENT_SOCKET")
path = os.path.join(folder, "%d.%s" % (attempt, rank))
with open(path + ".part", "w") as file:
    json.dump({name: os.environ.get(name) for name in names}, file)
os.rename(path + ".part", path)
def wait_for(names):
    end = time.monotonic() + 60
    while not all(os.path.exists(os.path.join(folder, name)) for name in names):
        if time.monotonic() > end:
            sys.exit(99)
        time.sleep(0.01)
wait_for(["%d.%d" % (attempt, i) for i in range(int(os.environ["WORLD_SIZE"]))])
if attempt < attempts:
    # All go, so that none is ended by another one's end before it has read the folder.
    sys.exit(3)
wait_for(["go"])
"""


class Jobs(process_kit.Case):
    def setUp(self):
        super().setUp()
        self.environment["PATH"] = "/usr/bin:/bin"
        self.script = self.write("worker.py", WORKER)
        self.count = 0

    def begin(self, workers=2, restarts=0, options=("--standalone",)):
        """A job, and the folder its workers look at."""
        self.count += 1
        folder = os.path.join(self.work, "job%d" % self.count)
        os.mkdir(folder)
        job = self.start("run", *options, "--nproc-per-node=%d" % workers, "--max-restarts=%d" % max(restarts, 1),
                         self.script, folder, restarts)
        job.in_folder = folder
        job.workers = workers
        return job

    def let_go(self, job):
        with open(os.path.join(job.in_folder, "go"), "w"):
            pass

    def facts(self, job, attempt=0):
        """What the workers of this attempt were told, once all run."""
        paths = [os.path.join(job.in_folder, "%d.%d" % (attempt, rank)) for rank in range(job.workers)]
        process_kit.wait_for(lambda: all(map(os.path.exists, paths)), "attempt %d in %s" % (attempt, job.in_folder))
        return [json.loads(process_kit.read(path)) for path in paths]

    def check_apart(self, jobs):
        """Worlds of their own sizes, and nothing shared by two jobs."""
        for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "MUSTER_AGENT_SOCKET"):
            values = [{worker[name] for worker in self.facts(job)} for job in jobs]
            self.assertTrue(all(len(value) == 1 for value in values), (name, values))
            self.assertEqual(len(set.union(*values)), len(jobs), (name, values))
        for job in jobs:
            self.assertEqual([worker["RANK"] for worker in self.facts(job)], list(map(str, range(job.workers))))
            self.assertEqual({worker["WORLD_SIZE"] for worker in self.facts(job)}, {str(job.workers)})

    def test_two_standalone_jobs(self):
        first, second = self.begin(2), self.begin(3)
        self.check_apart([first, second])
        self.let_go(first)
        self.assert_ends(first, 0)
        self.assertTrue(second.is_running(), second.said())
        self.assertEqual(os.listdir(second.in_folder).count("0.0"), 1)
        self.let_go(second)
        self.assert_ends(second, 0)

    def test_two_plain_jobs(self):
        jobs = [self.begin(2, options=()), self.begin(2, options=())]
        self.check_apart(jobs)
        for job in reversed(jobs):
            self.let_go(job)
            self.assert_ends(job, 0)

    def test_ten_standalone_jobs(self):
        jobs = [self.begin(1 + i % 3) for i in range(10)]
        self.check_apart(jobs)
        # Every second one fails, the others don't notice.
        for job in jobs[::2]:
            job.signal(15)
        for job in jobs[::2]:
            self.assert_ends(job, 143)
        self.assertTrue(all(job.is_running() for job in jobs[1::2]))
        for job in jobs[1::2]:
            self.let_go(job)
        for job in jobs[1::2]:
            self.assert_ends(job, 0)
            self.assertEqual(sorted(os.listdir(job.in_folder)),
                             sorted(["go"] + ["0.%d" % rank for rank in range(job.workers)]), "it was started again")

    def test_one_ends_while_others_restart(self):
        ending = self.begin(2)
        self.facts(ending)
        restarting = [self.begin(2, restarts=3) for _ in range(3)]
        for job in restarting:
            self.facts(job)
        self.let_go(ending)
        self.assert_ends(ending, 0)
        for job in restarting:
            for attempt in range(4):
                told = self.facts(job, attempt)
                self.assertEqual({worker["TORCHELASTIC_RUN_ID"] for worker in told},
                                 {worker["TORCHELASTIC_RUN_ID"] for worker in self.facts(job)})
                self.assertEqual({worker["TORCHELASTIC_RESTART_COUNT"] for worker in told}, {str(attempt)})
            self.let_go(job)
        for job in restarting:
            self.assert_ends(job, 0)


if __name__ == "__main__":
    process_kit.main()
