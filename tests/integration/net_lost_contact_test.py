#!/usr/bin/python3
"""Contact with the rendezvous is lost: its process is gone, its host is silent, it stands still, it
comes back empty, or a middlebox resets the connections. Whose workers live on, and whose don't."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import net_cluster
import process_kit
from net_cluster import WELL_PAST_THE_LEASE
from process_kit import wait_for

SDK_WORKER = os.path.join(process_kit.ROOT, "tests", "integration", "sdk_worker")
# Where nothing may go wrong though the machine is busy.
LONG_LEASE = ("--lease=10", "--insecure")
TRIES = 5
KILLED = "its workers are killed"


class Contact(net_cluster.Job):
    def start(self, mode, agents=2, sdk=False, **options):
        if sdk:
            options["worker"] = (SDK_WORKER,)
        self.start_job(agents, words=["--lost-contact=" + mode], **options)

    def kill_rendezvous(self):
        self.daemon.signal(signal.SIGKILL)
        self.daemon.wait()

    def wait_until_lost(self):
        for agent in self.agents.values():
            agent.wait_for_output("lost contact")

    def wait_until_killed(self):
        for agent in self.agents.values():
            agent.wait_for_output(KILLED)

    def wait_until_back(self, times=1):
        wait_for(lambda: all(agent.err.count(" again\n") >= times
                             for agent in self.agents.values()), "contact again")

    def assert_costs_nothing(self, fault):
        """`fault` strikes, and no worker is touched. What agents have to do in time (100 ms to attach
        again, 250 ms from one probe to the next) a busy machine may do too late: then it costs a
        round, as it should, and is tried again."""
        for attempt in range(1, TRIES + 1):
            fault()
            self.wait_until_back(attempt)
            # What is lost in spite of that is known by now, or within a grace and a stop.
            self.let_pass(1)
            newest = {self.rounds_of(i)[-1] for i in self.agents}
            if newest == {(self.round, len(self.agents))}:
                return
            self.round = self.wait_for_round(list(self.agents), len(self.agents), after=self.round)
        self.fail("touched by each of %d faults\n%s" % (TRIES, self.all_said()))


class ProcessGone(Contact):
    """Its port refuses connections."""

    def test_auto_lives_on(self):
        self.start("auto")

        def absence():
            self.kill_rendezvous()
            self.let_pass(WELL_PAST_THE_LEASE)
            self.start_rendezvous(*self.DAEMON)
        self.assert_costs_nothing(absence)
        self.finish()

    def test_stop_ends_with_the_lease(self):
        self.start("stop")
        self.kill_rendezvous()
        self.wait_until_killed()
        self.start_rendezvous(*self.DAEMON)
        self.wait_for_round([1, 2], 2, after=self.round)
        self.finish()

    def test_one_that_comes_back_empty_forms_no_second_world(self):
        # Newcomers are there before it is, so that they attach first.
        self.start("auto", nnodes="1:2", spare_nodes=2)
        self.kill_rendezvous()
        self.wait_until_lost()
        newcomers = [self.start_agent(3), self.start_agent(4)]
        for newcomer in newcomers:
            newcomer.wait_for_output("no rendezvous answers")
        self.start_rendezvous(*self.DAEMON)
        for newcomer in newcomers:
            newcomer.wait_for_output("waits as a spare")
        self.assert_untouched([1, 2], seconds=1.5)
        self.finish()


class HostSilent(Contact):
    """Nothing at all is answered: nobody can tell whether the others go on."""

    def test_auto_ends_with_the_lease_and_joins_again(self):
        self.start("auto")
        self.nodes[0].unplug()
        self.wait_until_killed()
        self.nodes[0].plug_in()
        self.wait_for_round([1, 2], 2, after=self.round)
        self.finish()

    def check_that_they_live_on(self, **options):
        self.start(**options)
        self.nodes[0].unplug()
        self.wait_until_lost()
        self.assert_untouched([1, 2])
        # To the rendezvous both were lost: when they are back they are told so, and join anew.
        self.nodes[0].plug_in()
        for agent in self.agents.values():
            agent.wait_for_output("was replaced in the job")
            self.assertNotIn(KILLED, agent.err)
        self.wait_for_round([1, 2], 2, after=self.round)
        self.finish()

    def test_sdk_workers_live_on(self):
        self.check_that_they_live_on(mode="auto", sdk=True)

    def test_go_on_lives_on(self):
        self.check_that_they_live_on(mode="go-on")

    def test_sdk_workers_end_with_the_lease_where_the_user_says_so(self):
        self.start("stop", sdk=True)
        self.nodes[0].unplug()
        self.wait_until_killed()
        self.nodes[0].plug_in()
        self.wait_for_round([1, 2], 2, after=self.round)
        self.finish()

    def test_go_on_ends_with_the_reconnect_timeout(self):
        self.start("go-on", daemon=self.DAEMON + ("--reconnect-timeout=3",))
        self.nodes[0].unplug()
        for agent in self.agents.values():
            self.assert_ends(agent, 69, "was lost for 3 s")
        self.end_rendezvous()


class Replaced(Contact):
    def test_bl07_a_cable_is_cut_under_a_collective(self):
        # Nobody waits for the collective's own end: the survivor is told by the rendezvous.
        self.start("auto", nnodes="1:2", worker=(SDK_WORKER, "adding"))
        self.nodes[2].unplug()
        alone = self.wait_for_round([1], 1, after=self.round)
        self.nodes[2].plug_in()
        self.wait_for_round([1, 2], 2, after=alone)
        self.finish()

    def test_sdk_workers_beside_a_newer_world_are_killed_on_return(self):
        self.start("auto", sdk=True, spare_nodes=1)
        self.net.partition(self.nodes[:2] + self.nodes[3:], self.nodes[2:3])
        self.start_agent(3)
        with_it = self.wait_for_round([1, 3], 2, after=self.round)
        # Fenced by its round, the old worker harms nobody; it goes as soon as its agent is told.
        old = self.worker_of(2, self.round)
        self.assertTrue(process_kit.is_alive(old), self.all_said())
        self.net.heal()
        self.agents[2].wait_for_output("was replaced in the job")
        wait_for(lambda: not process_kit.is_alive(old), "the end of the old worker")
        self.agents[2].wait_for_output("waits as a spare")
        self.assert_untouched([1, 3], seconds=1)
        self.assertEqual(self.rounds_of(1)[-1][0], with_it)
        self.finish()


class Middlebox(Contact):
    def test_reset_connections_cost_nothing(self):
        self.start("auto")
        self.assert_costs_nothing(lambda: [self.nodes[i].reset_connections(net_cluster.PORT)
                                           for i in (1, 2)])
        self.finish()


class Frozen(Contact):
    """SIGSTOP and SIGCONT."""

    def test_the_rendezvous_for_a_moment(self):
        self.start("auto", daemon=LONG_LEASE)
        self.freeze(self.daemon.pid)
        self.let_pass(1)
        self.thaw(self.daemon.pid)
        self.assert_untouched([1, 2], seconds=1)
        self.finish()

    def test_the_rendezvous_for_longer_than_the_lease(self):
        self.start("auto")
        self.freeze(self.daemon.pid)
        # It accepts connections and says nothing: its host might as well be cut off.
        self.wait_until_killed()
        self.thaw(self.daemon.pid)
        self.wait_for_round([1, 2], 2, after=self.round)
        self.finish()

    def test_the_rendezvous_for_longer_than_the_lease_with_sdk_workers(self):
        self.start("auto", sdk=True)

        def stall():
            self.freeze(self.daemon.pid)
            self.let_pass(WELL_PAST_THE_LEASE)
            self.thaw(self.daemon.pid)
        # It knows that it stood still, so nobody was lost.
        self.assert_costs_nothing(stall)
        self.finish()

    def test_an_agent(self):
        self.start("auto", agents=3, nnodes="2:3")
        self.freeze(self.agents[3].pid)
        alone = self.wait_for_round([1, 2], 2, after=self.round)
        self.thaw(self.agents[3].pid)
        self.wait_for_round([1, 2, 3], 3, after=alone)
        self.finish()

    def test_an_agent_for_a_moment(self):
        self.start("auto", daemon=LONG_LEASE)
        self.freeze(self.agents[1].pid)
        self.let_pass(1)
        self.thaw(self.agents[1].pid)
        self.assert_untouched([1, 2], seconds=1)
        self.finish()

    def test_bl07_an_agent_and_its_worker(self):
        # Ranks add up together: who is left doesn't wait for a time-out of the collective.
        self.start_job(2, nnodes="1:2", worker=(SDK_WORKER, "adding"))
        worker = self.worker_of(2, self.round)
        for pid in (self.agents[2].pid, worker):
            self.freeze(pid)
        alone = self.wait_for_round([1], 1, after=self.round)
        # By its guardian, at about the same time.
        wait_for(lambda: not process_kit.is_alive(worker), "the end of the frozen worker")
        self.thaw(self.agents[2].pid)
        self.wait_for_round([1, 2], 2, after=alone)
        self.finish()

    def test_a_guardian_is_a_guardian_lost(self):
        # Its workers have nobody to watch over them: its agent ends them, and the node leaves.
        self.start("auto", agents=3, nnodes="2:3")
        guardian = process_kit.guardian_of(self.agents[3].pid)
        worker = self.worker_of(3, self.round)
        self.freeze(guardian)
        self.assert_ends(self.agents[3], 70, "guardian", "stopped by a signal")
        self.assertFalse(process_kit.is_alive(worker))
        self.wait_for_round([1, 2], 2, after=self.round)
        self.finish([1, 2])

    def test_a_guardian_for_a_moment(self):
        self.start("auto", daemon=LONG_LEASE)
        guardian = process_kit.guardian_of(self.agents[1].pid)
        self.freeze(guardian)
        self.let_pass(0.1)
        self.thaw(guardian)
        self.assert_untouched([1, 2], seconds=1)
        self.finish()


if __name__ == "__main__":
    process_kit.main()
