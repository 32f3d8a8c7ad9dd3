#!/usr/bin/python3
"""`muster rendezvous --state-dir`: what outlives its SIGKILL."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from cluster_kit import Cluster
from process_kit import ROOT, read, wait_for

WORKER = os.environ.get("COUNTING_WORKER") or os.path.join(ROOT, "tests/storm/counting_worker")


class StateDir(Cluster):
    def start_daemon(self, *words):
        return super().start_daemon("--state-dir=" + os.path.join(self.work, "state"), *words)

    def kill_and_restart(self, daemon):
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        return self.start_daemon()

    def counting_pair(self):
        return [self.node(i, "--no-python", WORKER, self.work) for i in (1, 2)]

    def events(self, what):
        """[{"round": 1, "rank": 0, ...}] of the lines that begin so."""
        found = []
        for line in read(os.path.join(self.work, "events")).decode().splitlines():
            words = line.replace(" of ", " world ").split()
            if words[0] == what:
                found.append(dict(zip(words[1::2], map(int, words[2::2]))))
        return found

    def wait_for_saves(self, more=3):
        """`more` further checkpoints; the step of the newest."""
        before = len(self.events("saved"))
        wait_for(lambda: len(self.events("saved")) >= before + more, "%d more checkpoints" % more)
        return self.events("saved")[-1]["step"]

    def finish_counting(self, nodes, step):
        # Beyond what they reach until they see it.
        goal = step + 500
        self.write("goal.tmp", str(goal))
        os.rename(os.path.join(self.work, "goal.tmp"), os.path.join(self.work, "goal"))
        for node in nodes:
            self.assert_ends(node, 0)
        done = self.events("done")
        self.assertEqual(sorted(event["rank"] for event in done), [0, 1])
        self.assertEqual({event["step"] for event in done}, {goal})
        self.assertEqual(len({event["digest"] for event in done}), 1)
        self.assertEqual(self.events("saved")[-1]["step"], goal)

    def test_a_job_that_commits_goes_on_over_a_kill(self):
        daemon = self.start_daemon()
        nodes = self.counting_pair()
        self.wait_for_saves()
        daemon = self.kill_and_restart(daemon)
        step = self.wait_for_saves()
        self.finish_counting(nodes, step)
        self.assertEqual([event["round"] for event in self.events("begins")], [1, 1],
                         "the workers were left alone")
        self.end_daemon(daemon)

    def test_its_rounds_and_commits_outlive_all_nodes_too(self):
        daemon = self.start_daemon()
        nodes = self.counting_pair()
        committed = self.wait_for_saves()
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        for node in nodes:
            node.signal(signal.SIGKILL)
            node.wait()
        wait_for(lambda: not process_kit.tagged(self.tag), "the end of their workers")
        daemon = self.start_daemon()
        nodes = self.counting_pair()
        step = self.wait_for_saves()
        begins = self.events("begins")
        self.assertEqual([event["round"] for event in begins], [1, 1, 2, 2])
        for event in begins[2:]:
            self.assertGreaterEqual(event["step"], committed)
        self.finish_counting(nodes, step)
        self.end_daemon(daemon)

    def test_who_comes_after_a_kill_to_a_job_that_has_ended_gets_its_result(self):
        daemon = self.start_daemon()
        for job, code in (("lost", 7), ("won", 0)):
            node = self.node(1, "--no-python", "sh", "-c", "exit %d" % code, nnodes="1", job=job)
            self.assert_ends(node, code)
        daemon = self.kill_and_restart(daemon)
        for job, code, said in (("lost", 7, "job lost had already failed (exit code 7)"),
                                ("won", 0, "job won had already succeeded")):
            with self.subTest(job=job):
                late = self.node(2, "--no-python", "sh", "-c", "echo it runs", nnodes="1", job=job)
                self.assert_ends(late, code, said)
                self.assertEqual(late.out, "")
        self.end_daemon(daemon)


if __name__ == "__main__":
    process_kit.main()
