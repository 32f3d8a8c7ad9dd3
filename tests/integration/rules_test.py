#!/usr/bin/python3
"""The rules of a job over its whole life, with real processes: when it isn't started again, which
nodes are let in or set aside, and which ranks they get."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from cluster_kit import PLACE, UNTIL_FINISH, Cluster

STEPS = os.path.join(process_kit.ROOT, "tests", "integration", "hang_worker")
WAITS = PLACE + UNTIL_FINISH
NODE = 'echo "node $GROUP_RANK of $GROUP_WORLD_SIZE"'


class Pairs(Cluster):
    """One node is enough, a second one has a place; a rendezvous of its own."""

    def setUp(self):
        super().setUp()
        self.daemon = self.start_daemon()

    def one(self, number, *words):
        return self.node(number, "--rdzv-conf=last_call_timeout=0.5", *words, nnodes="1:2")

    def finish(self, nodes):
        super().finish(nodes)
        self.end_daemon(self.daemon)


class Restarts(Cluster):
    def test_a_program_that_never_lives_is_given_up(self):
        process = self.standalone("--max-restarts=100", "--max-early-failures=3", "--no-python",
                                  "sh", "-c", "echo try; exit 5")
        self.assert_ends(process, 5, "no round has lived 1 s (--min-uptime) and 3 in a row failed "
                                     "(--max-early-failures=3)")
        self.assertEqual(process.out, "try\n" * 3)

    def test_as_many_restarts_as_torchrun_without_a_word(self):
        process = self.standalone("--max-restarts=3", "--no-python", "sh", "-c", "echo try; exit 5")
        self.assert_ends(process, 5, "all 3 restarts of --max-restarts are used up")
        self.assertEqual(process.out, "try\n" * 4)

    def test_restarts_within_an_hour(self):
        process = self.standalone("--max-restarts=100", "--max-restarts-per-hour=2", "--no-python",
                                  "sh", "-c", "echo try; exit 5")
        self.assert_ends(process, 5, "--max-restarts-per-hour=2")
        self.assertEqual(process.out, "try\n" * 3)

    def test_a_job_that_fails_at_the_same_step_every_time_is_stopped(self):
        process = self.standalone("--nproc-per-node=2", "--max-restarts=100",
                                  "--max-stuck-restarts=2", "--no-python", STEPS, "fail", "1")
        self.assert_ends(process, 7, "rank 1 failed at step 5 in each of the last 3 rounds "
                                     "(--max-stuck-restarts=2)")


class Agreement(Pairs):
    def test_two_live_jobs_with_one_run_id_are_told_apart(self):
        first = self.one(1, "--no-python", "sh", "-c", WAITS)
        first.wait_for_output("0/1")
        other = self.one(2, "--no-python", "sh", "-c", "echo other")
        self.assert_ends(other, 78, "has the program \"sh -c 'echo other'\", but node",
                         "until [ -e finish", "another --rdzv-id for another job")
        self.assertEqual(other.out, "")
        self.finish([first])
        self.assertEqual(first.out.count("attempt"), 1, "it was not disturbed")

    def test_nodes_may_run_other_programs_if_told_so(self):
        nodes = [self.one(i, "--allow-other-programs", "--no-python", "sh", "-c",
                          "echo %d; " % i + WAITS) for i in (1, 2)]
        for node in nodes:
            node.wait_for_output("/2 attempt")
        self.finish(nodes)

    def test_other_rules_are_refused_by_their_flag(self):
        first = self.one(1, "--max-stuck-restarts=2", "--no-python", "sh", "-c", WAITS)
        first.wait_for_output("0/1")
        other = self.one(2, "--no-python", "sh", "-c", WAITS)
        self.assert_ends(other, 78, "--max-stuck-restarts 3, but node", "with 2")
        self.finish([first])

    def test_two_nodes_with_one_rank_in_an_elastic_job(self):
        first = self.one(1, "--node-rank=1", "--no-python", "sh", "-c", WAITS)
        first.wait_for_output("0/1")
        double = self.one(2, "--node-rank=1", "--no-python", "sh", "-c", WAITS)
        self.assert_ends(double, 78, "(127.0.0.1) and ", "(127.0.0.2) both have --node-rank=1")
        self.finish([first])


class Places(Cluster):
    def test_node_ranks_in_an_elastic_job(self):
        nodes = [self.node(i, "--node-rank=%d" % (3 - i), "--no-python", "sh", "-c", NODE, nnodes=3)
                 for i in (1, 2, 3)]
        for i, node in zip((1, 2, 3), nodes):
            self.assert_ends(node, 0)
            self.assertEqual(node.out, "node %d of 3\n" % (3 - i))

    def test_newcomers_are_ranked_by_topology(self):
        keys = {1: "rack10", 2: "rack9-n2", 3: "rack9-n1"}
        nodes = [self.node(i, "--no-python", "sh", "-c", NODE, nnodes=3,
                           env={"MUSTER_TOPOLOGY_KEY": keys[i]}) for i in (1, 2, 3)]
        for node, place in zip(nodes, (2, 1, 0)):
            self.assert_ends(node, 0)
            self.assertEqual(node.out, "node %d of 3\n" % place)


class Changes(Pairs):
    def test_a_lost_node_is_set_aside_and_is_the_last_resort(self):
        words = ["--max-node-failures=1", "--no-python", "sh", "-c", WAITS]
        healthy, flapping = [self.one(i, *words) for i in (1, 2)]
        for node in (healthy, flapping):
            node.wait_for_output("/2 attempt")
        alone = healthy.out.count("0/1 attempt")
        flapping.signal(signal.SIGKILL)
        process_kit.wait_for(lambda: healthy.out.count("0/1 attempt") > alone, "the smaller world")
        rounds = healthy.out.count("attempt")
        again = self.one(2, *words)
        again.wait_for_output("is set aside until the next checkpoint")
        self.assertIn("set aside", self.status())
        self.assertEqual(healthy.out.count("attempt"), rounds, "nobody is disturbed for it")
        # Without the other one the job can't go on but with this one.
        healthy.signal(signal.SIGKILL)
        again.wait_for_output("so it takes part")
        again.wait_for_output("0/1 attempt")
        self.finish([again])

    def test_who_comes_when_a_worker_has_finished_gets_the_result_alone(self):
        script = PLACE + "[ $RANK = 0 ] && exit 0; " + UNTIL_FINISH
        words = ["--nproc-per-node=2", "--prefix=never", "--no-python", "sh", "-c", script]
        first = self.one(1, *words)
        first.wait_for_output("1/2 attempt 0")
        first.wait_for_output("0/2 attempt 0")
        # Its exit is told at once, but the process must have got so far.
        process_kit.wait_for(
            lambda: not any(b"RANK=0" in process_kit.environment_of(pid)
                            for pid in process_kit.descendants(first.pid)
                            if process_kit.is_alive(pid)), "the end of rank 0")
        late = self.one(2, *words)
        late.wait_for_output("waits for the result")
        self.finish([first, late])
        self.assertEqual(first.out.count("attempt"), 2)
        self.assertEqual(late.out, "")


if __name__ == "__main__":
    process_kit.main()
