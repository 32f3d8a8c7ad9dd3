"""A job over nodes with networks of their own: a rendezvous on node 0, an agent on each other node.

Workers watch over what no test could see from outside in time: each leaves its pid, and when it
starts it names the workers of other rounds that still run anywhere ("beside ...").
"""
import os
import signal

import net_kit
import process_kit
from process_kit import wait_for

PORT = 29400
# Short, so that tests are; a slow machine only makes what follows a lease late.
LEASE = 1
# Left to a lease and what comes after it, where a test only waits for time to pass.
WELL_PAST_THE_LEASE = 2.5 * LEASE
# `finish` in the working directory ends it. A process that was killed and not reaped yet (Z) doesn't
# run; one that is stopped (T) could go on.
WORKER = """
for f in up.*; do
  case $f in 'up.*'|up.$MUSTER_ROUND.*) continue;; esac
  grep -q '^State:.[RSDTt]' /proc/$(cat $f)/status 2>/dev/null && echo "beside $f"
done
echo $$ > tmp.$MUSTER_ROUND.$RANK.$$ && mv tmp.$MUSTER_ROUND.$RANK.$$ up.$MUSTER_ROUND.$RANK
echo "runs round $MUSTER_ROUND: $RANK of $WORLD_SIZE"
until [ -e finish ]; do sleep 0.05; done
"""


class Job(net_kit.Case):
    """Agents are numbered from 1; agent i is on node i."""

    # `muster rendezvous` has these beside its address.
    DAEMON = ("--lease=%g" % LEASE, "--insecure")

    def start_job(self, agents, nnodes=None, words=(), worker=("sh", "-c", WORKER), spare_nodes=0,
                  daemon=None):
        """A rendezvous and that many agents, all of whose workers run in one round."""
        self.worker = worker
        self.nnodes = nnodes or str(agents)
        self.words = list(words)
        self.net = self.network(1 + agents + spare_nodes)
        self.nodes = self.net.nodes
        self.start_rendezvous(*(daemon or self.DAEMON))
        self.agents = {}
        for i in range(1, agents + 1):
            self.start_agent(i)
        self.round = self.wait_for_round(list(self.agents), agents)

    def start_rendezvous(self, *words):
        self.daemon = self.nodes[0].muster("rendezvous", "--listen=:%d" % PORT, *words)
        self.daemon.wait_for_output("listens at")

    def start_agent(self, i):
        self.agents[i] = self.nodes[i].run(
            "--nnodes=" + self.nnodes, "--rdzv-endpoint=%s:%d" % (self.nodes[0].address, PORT),
            "--rdzv-id=job", "--rdzv-conf=last_call_timeout=0.2", *self.words, "--no-python",
            *self.worker)
        return self.agents[i]

    def rounds_of(self, i):
        """The rounds in which agent i's worker has run, in order, with the size of each world."""
        return [(int(line.split()[2].rstrip(":")), int(line.split()[-1]))
                for line in self.agents[i].out.splitlines() if line.startswith("runs round ")]

    def wait_for_round(self, agents, world_size, after=0):
        """Waits until workers of all these agents run in one round after that one; its number."""
        def one_round():
            newest = {(self.rounds_of(i) or [(0, 0)])[-1] for i in agents}
            number, size = next(iter(newest))
            for i in agents:
                self.assertTrue(self.agents[i].is_running(), self.agents[i].said())
            return len(newest) == 1 and number > after and size == world_size and number
        try:
            return wait_for(one_round, "a world of %d of agents %s" % (world_size, agents))
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, self.all_said())) from None

    def worker_of(self, i, number):
        """The pid of agent i's worker of that round."""
        for name in os.listdir(self.work):
            if name.startswith("up.%d." % number):
                pid = int(process_kit.read(os.path.join(self.work, name)))
                if self.agents[i].pid in ancestors(pid):
                    return pid
        raise AssertionError("agent %d has no worker in round %d" % (i, number))

    def assert_untouched(self, agents, seconds=WELL_PAST_THE_LEASE):
        """For a while no worker of these agents is replaced by another."""
        before = {i: self.rounds_of(i) for i in agents}
        def check():
            for i in agents:
                self.assertEqual(self.rounds_of(i), before[i], self.all_said())
                self.assertTrue(self.agents[i].is_running(), self.agents[i].said())
        self.let_pass(seconds, check)
        check()

    def finish(self, agents=None):
        """Lets the workers exit 0; all agents end with 0, and no world has run beside another."""
        self.write("finish", "")
        for i in agents or self.agents:
            self.assert_ends(self.agents[i], 0)
        self.assert_never_beside()
        self.end_rendezvous()

    def assert_never_beside(self):
        for agent in self.agents.values():
            self.assertNotIn("beside", agent.out, self.all_said())

    def end_rendezvous(self):
        self.daemon.signal(signal.SIGTERM)
        self.assert_ends(self.daemon, 0)

    def all_said(self):
        return "".join("agent %d: %s\n" % (i, agent.said()) for i, agent in self.agents.items()) + \
            "rendezvous: %s\n" % self.daemon.said()


def ancestors(pid):
    found = []
    while pid and pid > 1:
        pid = process_kit.parent_of(pid)
        found.append(pid)
    return found
