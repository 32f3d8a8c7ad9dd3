#!/usr/bin/python3
"""Faults of links between nodes: within the lease the others go on, and whoever was cut off comes
back as a newcomer. A rule for each, on real processes and real networks."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import net_cluster
import process_kit


class CutOff(net_cluster.Job):
    """Three nodes, of which two are enough; the last one is cut off, then the fault ends."""

    def cut_and_heal(self, cut, heal):
        self.start_job(3, nnodes="2:3")
        before = self.round
        cut()
        alone = self.wait_for_round([1, 2], 2, after=before)
        self.agents[3].wait_for_output("its workers are killed")
        heal()
        # It is taken in again, as one that runs nothing.
        self.wait_for_round([1, 2, 3], 3, after=alone)
        self.finish()

    def test_bl07_the_cable_is_pulled(self):
        self.cut_and_heal(lambda: self.nodes[3].unplug(), lambda: self.nodes[3].plug_in())

    def test_bl07_the_link_is_taken_down(self):
        self.cut_and_heal(lambda: self.nodes[3].link_down(), lambda: self.nodes[3].link_up())

    def test_a_node_is_heard_no_more(self):
        self.cut_and_heal(lambda: self.net.lose(source=self.nodes[3]), lambda: self.net.heal())

    def test_a_node_hears_no_more(self):
        self.cut_and_heal(lambda: self.net.lose(target=self.nodes[3]), lambda: self.net.heal())

    def test_a_partition_and_its_end(self):
        self.cut_and_heal(lambda: self.net.partition(self.nodes[:3], self.nodes[3:]),
                          lambda: self.net.heal())

    def test_an_address_changes(self):
        self.start_job(2, nnodes="1:2")
        before = self.round
        self.nodes[2].change_address("10.77.3.3")
        # Its connection is dead and nobody says so: its lease ends, and it comes from where it is now,
        # perhaps before the others have gone on without it.
        self.agents[2].wait_for_output("its workers are killed")
        self.wait_for_round([1, 2], 2, after=before)
        status = self.nodes[0].muster("status", "--rdzv-endpoint=127.0.0.1:%d" % net_cluster.PORT)
        self.assert_ends(status, 0)
        self.assertIn("10.77.3.3", status.out)
        self.assertNotIn("10.77.0.3", status.out)
        self.finish()


class Replaced(net_cluster.Job):
    def test_a_partition_with_a_replacement(self):
        self.start_job(2, spare_nodes=1)
        before = self.round
        self.net.partition(self.nodes[:2] + self.nodes[3:], self.nodes[2:3])
        self.start_agent(3)
        # The replacement's worker looks for those of the node that was cut off: none runs.
        with_it = self.wait_for_round([1, 3], 2, after=before)
        self.net.heal()
        self.agents[2].wait_for_output("waits as a spare")
        self.assert_untouched([1, 3], seconds=1)
        self.assertEqual(self.rounds_of(1)[-1][0], with_it)
        self.finish()


class Poor(net_cluster.Job):
    """Links that are bad but not dead: the job forms, restarts after a failure, and ends."""

    # It may lose a node for a while where frames get lost: that is no failure.
    WORKER = ("sh", "-c", 'echo "runs round $MUSTER_ROUND: $RANK of $WORLD_SIZE"; sleep 1; '
                          '[ $MUSTER_RESTARTS_CHARGED = 0 ] && [ $RANK = 0 ] && exit 3; '
                          '[ $MUSTER_RESTARTS_CHARGED = 0 ] && exec sleep 600; sleep 1')

    def run_on(self, spoil):
        self.net = self.network(3)
        self.nodes = self.net.nodes
        for node in self.nodes[1:]:
            spoil(node)
        self.worker, self.nnodes, self.words = self.WORKER, "2", ["--max-restarts=1"]
        self.start_rendezvous("--lease=3", "--insecure")
        self.agents = {}
        for i in (1, 2):
            self.start_agent(i)
        for agent in self.agents.values():
            self.assert_ends(agent, 0)
        self.end_rendezvous()

    def test_ten_percent_are_lost(self):
        def spoil(node):
            self.net.lose(source=node, share=0.1)
            self.net.lose(target=node, share=0.1)
        self.run_on(spoil)

    def test_a_delay_of_200_ms(self):
        self.run_on(lambda node: node.delay(0.2))
        for agent in self.agents.values():
            # Nothing was lost: one round for the failure, no more.
            self.assertEqual(agent.out.count("runs round"), 2, self.all_said())

    def test_a_rate_limit(self):
        self.run_on(lambda node: node.limit_rate("64kbit"))
        for agent in self.agents.values():
            self.assertEqual(agent.out.count("runs round"), 2, self.all_said())


if __name__ == "__main__":
    process_kit.main()
