#!/usr/bin/python3
"""The cases of the area SCHED (tests/CASES.md) that need no scheduler: pods that come in any order.
Slurm's own daemons are in tests/scheduler/."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import net_kit
import process_kit

# How long the name isn't there, and then nobody answers at its address.
WITHOUT_NAME, WITHOUT_ANSWER = (20, 10) if cluster_kit.is_full() else (2, 1)
SHOW = 'echo "$RANK of $WORLD_SIZE"'


class Names(net_kit.Case):
    """BL-67: the rendezvous' name resolves later, and its pod answers later still."""

    def test_bl67_pods_start_before_their_peers_name_exists(self):
        pod, other = self.network(2, hosts=lambda _: "").nodes
        began = time.monotonic()
        agent = pod.run("--nnodes=1:1", "--rdzv-backend=c10d", "--rdzv-endpoint=pod-0.svc:29400",
                        "--rdzv-conf=join_timeout=120,last_call_timeout=1", "--no-python", "sh", "-c", SHOW)
        agent.wait_for_output('"pod-0.svc" does not resolve')
        self.let_pass(WITHOUT_NAME, unless=lambda: self.must_wait(agent))
        # In place: the file is mounted over the node's own.
        with open(self.path_of("hosts.0"), "a") as hosts:
            hosts.write("%s pod-0.svc\n" % other.address)
        self.let_pass(WITHOUT_ANSWER, unless=lambda: self.must_wait(agent))
        daemon = other.muster("rendezvous", "--listen=:29400", "--insecure")
        daemon.wait_for_output("listens at")
        before = time.monotonic()
        self.assert_ends(agent, 0)
        self.assertEqual(agent.out.strip(), "0 of 1")
        self.assertLess(time.monotonic() - before, 10, "it resolves and tries anew all the time")
        # One line for each thing that it waits for, and at most one more in 10 s.
        said = re.findall(r"^muster: .*(?:resolve|wait|refuse|reach).*$", agent.err, re.MULTILINE)
        self.assertLessEqual(len(said), 4 + (time.monotonic() - began) / 10, agent.err)
        daemon.signal(15)
        self.assert_ends(daemon, 0)

    def must_wait(self, agent):
        self.assertTrue(agent.is_running(), agent.said())

    def path_of(self, name):
        return os.path.join(self.work, name)


if __name__ == "__main__":
    process_kit.main()
