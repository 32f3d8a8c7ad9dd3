#!/usr/bin/python3
"""Nodes that leave in order: preemption by signal, by file and by notice signal, `muster drain`,
and when a new node is taken in. The workers train over the SDK and save when they are told to."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit
from process_kit import ROOT, read, wait_for

WORKER = os.environ.get("LEAVE_WORKER") or os.path.join(ROOT, "tests/integration/leave_worker")
# More than any test makes.
FOREVER = 1000000


def has_socket(pid):
    for entry in os.scandir("/proc/%d/fd" % pid):
        try:
            if os.readlink(entry.path).startswith("socket:"):
                return True
        except FileNotFoundError:
            pass
    return False


class Nodes(process_kit.Case):
    def setUp(self):
        super().setUp()
        self.port = process_kit.free_port()
        self.endpoint = "--rdzv-endpoint=127.0.0.1:%d" % self.port
        self.daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port)
        self.daemon.wait_for_output("listens at")

    def node(self, number, *options, nnodes="1:3", mode="save", steps=FOREVER):
        return self.start("run", "--nnodes=" + nnodes, "--rdzv-id=job", self.endpoint,
                          "--rdzv-conf=last_call_timeout=2,join_timeout=30",
                          "--local-addr=127.0.0.%d" % number, "--shutdown-timeout=20", *options,
                          "--no-python", WORKER, self.work, mode, steps, 5)

    def log(self, rank=0):
        """Of this rank: [(attempt, step)] and [(attempt, saved step)]."""
        steps, saved = [], []
        for line in read(os.path.join(self.work, "steps.%d" % rank)).decode().splitlines():
            words = line.split()
            (saved if len(words) == 3 else steps).append((int(words[0]), int(words[-1])))
        return steps, saved

    def wait_for_steps(self, attempt, ranks=1):
        for rank in range(ranks):
            wait_for(lambda: len([s for a, s in self.log(rank)[0] if a == attempt]) >= 3,
                     "3 steps of rank %d in attempt %d" % (rank, attempt))

    def assert_no_step_is_repeated(self):
        steps = [step for _, step in self.log()[0]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def end(self, *nodes):
        """Ends those that still run, and the rendezvous."""
        for node in nodes:
            node.signal(signal.SIGINT)
        for node in nodes:
            self.assertIn(node.wait(), (130, 75), node.said())
        self.daemon.signal(signal.SIGINT)
        self.daemon.wait()

    def drain(self, *words):
        return self.run_to_end("drain", self.endpoint, *words)


class Leaving(Nodes):
    def test_a_preempted_node_saves_with_all_and_the_others_go_on_from_there(self):
        nodes = [self.node(i, nnodes="1:2") for i in (1, 2)]
        self.wait_for_steps(0, ranks=2)
        nodes[1].signal(signal.SIGTERM)
        self.assert_ends(nodes[1], 75, "this node leaves after a checkpoint that all nodes agree on",
                         "was preempted (SIGTERM) and left after the checkpoint of step")
        self.wait_for_steps(1)
        saved = [self.log(rank)[1] for rank in (0, 1)]
        self.assertEqual(len(saved[0]), 1)
        self.assertEqual(saved[0], saved[1], "all ranks save after the same step")
        step = saved[0][0][1]
        self.assertEqual(self.log()[0][step], (1, step + 1), "the next attempt goes on from there")
        self.assert_no_step_is_repeated()
        self.end(nodes[0])

    def test_nodes_that_leave_together_cost_one_re_forming(self):
        nodes = [self.node(i) for i in (1, 2, 3)]
        self.wait_for_steps(0, ranks=3)
        for node in nodes[1:]:
            node.signal(signal.SIGTERM)
        for node in nodes[1:]:
            self.assert_ends(node, 75)
        self.wait_for_steps(1)
        self.assertIn("ranks 0 to 0 of 1 run on this node", nodes[0].err)
        self.assert_no_step_is_repeated()
        self.end(nodes[0])

    def test_below_min_all_end_with_75(self):
        nodes = [self.node(i, nnodes="2") for i in (1, 2)]
        self.wait_for_steps(0, ranks=2)
        drain = self.drain("--rdzv-id=job", "--wait", "127.0.0.2")
        self.assertEqual(drain.code, 0, drain.said())
        self.assertIn("node 127.0.0.2 has left", drain.err)
        for node in nodes:
            self.assert_ends(node, 75)
        self.assertIn("was drained and left after the checkpoint of step", nodes[1].err)
        self.assertIn("left: drained", nodes[0].err)
        self.assertEqual(len(self.log()[1]), 1)
        self.end()

    def test_a_drained_node_may_come_back(self):
        nodes = [self.node(i, "--scale-up=immediate", nnodes="1:2") for i in (1, 2)]
        self.wait_for_steps(0, ranks=2)
        self.assertEqual(self.drain("127.0.0.2").code, 0)
        self.assert_ends(nodes[1], 75, "was drained")
        self.wait_for_steps(1)
        nodes[1] = self.node(2, "--scale-up=immediate", nnodes="1:2")
        self.wait_for_steps(2, ranks=2)
        self.end(*nodes)

    def test_an_unknown_node_is_not_drained(self):
        node = self.node(1, nnodes="1")
        self.wait_for_steps(0)
        drain = self.drain("no-such-node")
        self.assertEqual(drain.code, 1, drain.said())
        self.assertIn('no node "no-such-node" is in any job here; there are: ', drain.err)
        self.assertIn("(127.0.0.1)", drain.err)
        drain = self.drain("--rdzv-id=other", "127.0.0.1")
        self.assertEqual(drain.code, 1, drain.said())
        self.assertIn('no job "other" is here', drain.err)
        self.end(node)
        away = self.run_to_end("drain", self.endpoint, "127.0.0.1")
        self.assertEqual(away.code, 69, away.said())

    def test_without_a_job_there_is_no_node(self):
        drain = self.drain("--wait", "127.0.0.1")
        self.assertEqual(drain.code, 1, drain.said())
        self.assertIn('no node "127.0.0.1" is in any job here; there is no node', drain.err)
        self.end()

    def test_a_wait_that_is_over_or_interrupted_leaves_the_order_standing(self):
        nodes = [self.node(i, nnodes="1:2", mode="never") for i in (1, 2)]
        self.wait_for_steps(0, ranks=2)
        # Options may follow the node.
        drain = self.run_to_end("drain", "127.0.0.2", "--wait", self.endpoint, "--timeout", "0.2")
        self.assertEqual(drain.code, 1, drain.said())
        self.assertIn('node "127.0.0.2" is to leave, but is still here; the order stands', drain.err)
        waiting = self.start("drain", "127.0.0.2", self.endpoint, "--wait")
        wait_for(lambda: has_socket(waiting.pid), "its call")
        waiting.signal(signal.SIGINT)
        self.assertEqual(waiting.wait(), -signal.SIGINT, waiting.said())
        self.assertEqual(waiting.err, "")
        self.end(*nodes)

    def test_drain_names_what_it_does_not_understand(self):
        for words, sentence in (
                ([], "no node was named"),
                (["a", "b"], 'unexpected word "b" after the node "a"'),
                (["a", "--wait", "--", "--wait"], 'unexpected word "--wait" after the node "a"'),
                (["a", "--wayt"], "did you mean --wait?"),
                (["a", "--rdzv-endpoint=:x"], '--rdzv-endpoint: ":x" is not valid'),
                (["a", "--wait", "--timeout=0"], '--timeout: "0" is not valid'),
                (["a", "--wait", "--timeout=3601"], '--timeout: "3601" is not valid'),
                (["a", "--wait", "--timeout=soon"], '--timeout: "soon" is not valid'),
                (["a", "--timeout=5"], "--timeout says how long --wait waits")):
            with self.subTest(words=words):
                drain = self.drain(*words)
                self.assertEqual(drain.code, 64, drain.said())
                self.assertIn(sentence, drain.err)
                self.assertEqual(drain.err.count("\n"), 1)
        self.end()

    def test_a_notice_is_as_good_as_a_signal(self):
        notice = os.path.join(self.work, "notice")
        nodes = [self.node(1, "--preemption-file=" + notice),
                 self.node(2, "--preemption-signal=USR1"), self.node(3)]
        self.wait_for_steps(0, ranks=3)
        self.write("notice", "")
        nodes[1].signal(signal.SIGUSR1)
        self.assert_ends(nodes[0], 75, "preempted (preemption notice " + notice +
                         ": remove the file before the node is started again)")
        self.assert_ends(nodes[1], 75, "preempted (preemption signal SIGUSR1)")
        self.wait_for_steps(1)
        self.assert_no_step_is_repeated()
        self.end(nodes[2])

    def test_a_notice_that_was_left_over_is_to_be_removed(self):
        other = self.node(2, nnodes="1:2")
        self.wait_for_steps(0)
        notice = self.write("notice", "")
        node = self.node(1, "--preemption-file=" + notice, nnodes="1:2")
        self.assert_ends(node, 143, "stopped before the job had begun by preemption notice " + notice +
                         ", left over from before this start: remove the file before the node is "
                         "started again")
        self.end(other)

    def test_who_waits_for_a_node_with_a_left_over_notice_is_told(self):
        notice = self.write("notice", "")
        other = self.node(2, nnodes="2")
        other.wait_for_output("waiting for 1 more node")
        result = os.path.join(self.work, "result")
        node = self.node(1, "--preemption-file=" + notice, "--result-file=" + result, nnodes="2")
        why = "stopped before the job had begun by preemption notice " + notice
        self.assert_ends(node, 143, why)
        self.assertEqual(json.loads(read(result))["exit_code"], 143)
        other.wait_for_output("could not start: " + why + ", left over from before this start")
        self.end(other)

    def test_a_notice_in_no_folder_is_said(self):
        node = self.node(1, "--preemption-file=" + self.work + "/none/notice")
        self.assert_ends(node, 64, "/none can't be watched (No such file or directory)")
        self.end()

    def test_a_worker_that_never_saves_is_not_waited_for_for_ever(self):
        nodes = [self.node(1, nnodes="1:2", mode="never"),
                 self.node(2, "--shutdown-timeout=2", nnodes="1:2", mode="never")]
        self.wait_for_steps(0, ranks=2)
        nodes[1].signal(signal.SIGTERM)
        self.assert_ends(nodes[1], 143, "no checkpoint was made in time", "stopped by SIGTERM")
        self.wait_for_steps(1)
        self.end(nodes[0])

    def test_a_second_signal_kills(self):
        nodes = [self.node(i, nnodes="1:2", mode="never") for i in (1, 2)]
        self.wait_for_steps(0, ranks=2)
        nodes[1].signal(signal.SIGTERM)
        nodes[1].wait_for_output("this node leaves after a checkpoint")
        nodes[1].signal(signal.SIGTERM)
        self.assert_ends(nodes[1], 143, "stopped by SIGTERM")
        self.wait_for_steps(1)
        self.end(nodes[0])

    def test_where_workers_cant_save_sigterm_stops_them_at_once(self):
        nodes = [self.node(i, nnodes="1:2", mode="report") for i in (1, 2)]
        self.wait_for_steps(0, ranks=2)
        nodes[1].signal(signal.SIGTERM)
        self.assert_ends(nodes[1], 143, "stopped by SIGTERM: stopping the workers")
        self.wait_for_steps(1)
        self.end(nodes[0])

    def test_a_new_node_waits_for_a_checkpoint(self):
        nodes = [self.node(i, "--scale-up=checkpoint", nnodes="1:2") for i in (1,)]
        self.wait_for_steps(0)
        nodes.append(self.node(2, "--scale-up=checkpoint", nnodes="1:2"))
        nodes[1].wait_for_output("this one joins at the next checkpoint (--scale-up)")
        self.assertEqual(self.log()[1], [])
        # The job saves because a node is to leave; that is the next checkpoint.
        nodes[0].signal(signal.SIGTERM)
        self.assert_ends(nodes[0], 75)
        self.wait_for_steps(1)
        self.assert_no_step_is_repeated()
        self.end(nodes[1])


class Host(Nodes):
    """The node that leaves hosts the rendezvous."""

    def setUp(self):
        super().setUp()
        self.daemon.signal(signal.SIGTERM)
        self.assert_ends(self.daemon, 0)

    def pair(self, mode="save"):
        host = self.node(1, nnodes="1:2", mode=mode)
        wait_for(lambda: self.status().code == 0, "the rendezvous")
        other = self.node(2, nnodes="1:2", mode=mode)
        wait_for(lambda: read(os.path.join(self.work, "steps.1")), "two ranks")
        return host, other

    def node(self, number, *options, **more):
        return super().node(number, "--scale-up=immediate", *options, **more)

    def status(self):
        return self.run_to_end("status", self.endpoint)

    def attempt(self):
        return self.log()[0][-1][0]

    def end_other(self, host, other, code):
        self.assertTrue(host.is_running(), host.said())
        other.signal(signal.SIGINT)
        self.assert_ends(other, 130)
        self.assert_ends(host, code)

    def test_a_drained_host_is_said_to_stay_and_shown_until_the_job_ends(self):
        host, other = self.pair()
        before = self.attempt()
        self.assertRegex(self.status().out, r"\(127\.0\.0\.1\).* s +hosts the rendezvous\n")
        drain = self.drain("--wait", "127.0.0.1")
        self.assertEqual(drain.code, 1, drain.said())
        self.assertEqual(
            drain.err, "muster: the workers of node 127.0.0.1 have left, but its muster process "
            "must stay until the job ends, since it hosts the rendezvous: don't switch the node "
            "off while `muster status --rdzv-endpoint 127.0.0.1:%d` names it\n" % self.port)
        self.assertRegex(self.status().out, r"the workers of node \S+\(127\.0\.0\.1\) have left "
                         "job, but its muster process hosts the rendezvous and stays until the job "
                         "ends\n")
        again = self.drain("127.0.0.1")
        self.assertEqual((again.code, again.err), (drain.code, drain.err))
        self.wait_for_steps(before + 1)
        self.end_other(host, other, 75)
        self.assertIn("so its muster process stays until the job ends: don't switch it off before",
                      host.err)

    def test_without_wait_the_drain_of_the_host_says_so_too(self):
        host, other = self.pair()
        before = self.attempt()
        drain = self.drain("127.0.0.1")
        self.assertEqual(drain.code, 0, drain.said())
        self.assertIn("node 127.0.0.1 is to leave, as soon as its job lets it; its muster process "
                      "stays until the job ends, since it hosts the rendezvous", drain.err)
        self.wait_for_steps(before + 1)
        # Batch systems send it after their notice; it must not end the job elsewhere.
        host.wait_for_output("until the other nodes are done; a SIGTERM may follow, and another signal")
        host.signal(signal.SIGTERM)
        host.wait_for_output("SIGTERM after this node has left: it hosts the rendezvous and stays")
        self.wait_for_steps(before + 1)
        self.end_other(host, other, 75)

    def test_a_host_that_waits_alone_leaves_at_once(self):
        host = self.node(1, nnodes="2:3")
        host.wait_for_output("waiting for 1 more node")
        drain = self.drain("--wait", "127.0.0.1")
        self.assertEqual((drain.code, drain.err), (0, "muster: node 127.0.0.1 has left\n"))
        self.assert_ends(host, 75, "this node is sent away (muster drain)\n", "; run it again to go on")
        self.assertNotIn("stays", host.err)

    def check_told_to_go(self, mode, code, *sentences):
        host, other = self.pair(mode)
        before = self.attempt()
        # By then the agents know what the workers can do.
        self.wait_for_steps(before, ranks=2)
        host.signal(signal.SIGTERM)
        host.wait_for_output("this process hosts the rendezvous and stays until the job ends on the "
                             "other nodes; a second signal ends the job on all of them")
        self.wait_for_steps(before + 1)
        host.wait_for_output("this node hosts the rendezvous and stays until the other nodes are done")
        self.assertIn(" have left job, but its muster process hosts the rendezvous and stays until "
                      "the job ends", self.status().out)
        self.end_other(host, other, code)
        for sentence in sentences:
            self.assertIn(sentence, host.err)

    def test_a_host_that_is_told_to_go_says_that_it_stays(self):
        self.check_told_to_go("save", 75, "so its muster process stays until the job ends")

    def test_so_does_one_whose_workers_are_stopped_at_once(self):
        self.check_told_to_go("report", 143, "stopped by SIGTERM: stopping the workers; this process")


class Alone(process_kit.Case):
    def test_a_job_of_one_node_saves_and_ends_with_75(self):
        job = self.start("run", "--standalone", "--nproc-per-node=2", "--no-python", WORKER,
                         self.work, "save", FOREVER, 5)
        for rank in (0, 1):
            wait_for(lambda: read(os.path.join(self.work, "steps.%d" % rank)), "the first step")
        wait_for(lambda: read(os.path.join(self.work, "steps.0")).count(b"\n") > 3, "more steps")
        job.signal(signal.SIGTERM)
        self.assert_ends(job, 75, "left after the checkpoint of step")
        again = self.start("run", "--standalone", "--nproc-per-node=2", "--no-python", WORKER,
                           self.work, "save", 1, 5)
        self.assert_ends(again, 0)
        # It went on from the checkpoint, which is past step 1: nothing was left to do.
        steps = [line for line in read(os.path.join(self.work, "steps.0")).decode().splitlines()
                 if "saved" not in line]
        self.assertEqual(steps, ["0 %d" % (i + 1) for i in range(len(steps))])


if __name__ == "__main__":
    process_kit.main()
