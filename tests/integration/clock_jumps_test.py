#!/usr/bin/python3
"""Wall clocks jump and machines booted at different times: no lease, deadline or wait may notice.

The wall clock that jumps is the program's own (wall_clock.cc), never the machine's.
"""
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_kit

PRELOADED = os.environ.get("WALL_CLOCK_LIBRARY") or os.path.join(
    process_kit.ROOT, "tests", "integration", "libwall_clock.so")
HOUR = 3600
LEASE = 2
# `fail` makes rank 1's worker fail once.
WORKER = """
echo "runs round $MUSTER_ROUND: $RANK of $WORLD_SIZE"
until [ -e finish ]; do
  [ $RANK = 1 ] && [ $MUSTER_RESTARTS_CHARGED = 0 ] && [ -e fail ] && exit 3
  date +wall=%s; sleep 0.1
done
"""


class Jumps(process_kit.Case):
    def setUp(self):
        super().setUp()
        self.clock = os.path.join(self.work, "clock")
        self.set_clock(0)
        self.environment.update(LD_PRELOAD=PRELOADED, WALL_CLOCK_OFFSET=self.clock)

    def set_clock(self, seconds):
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb") as file:
            file.write(struct.pack("=q", seconds))

    def start_job(self, prefixes=((), ())):
        self.port = process_kit.free_port()
        self.daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port,
                                 "--lease=%d" % LEASE)
        self.daemon.wait_for_output("listens at")
        self.agents = [process_kit.Process(
            self, [*prefix, process_kit.MUSTER, "run", "--nnodes=2", "--max-restarts=1",
                   "--rdzv-endpoint=127.0.0.1:%d" % self.port, "--rdzv-id=job",
                   "--local-addr=127.0.0.%d" % (i + 1), "--no-python", "sh", "-c", WORKER])
            for i, prefix in enumerate(prefixes)]
        self.wait_for_round(1)

    def wait_for_round(self, number):
        for agent in self.agents:
            agent.wait_for_output("runs round %d:" % number)

    def assert_untouched(self, rounds):
        end = time.monotonic() + 1.5 * LEASE
        process_kit.wait_for(lambda: time.monotonic() > end, "time to pass")
        for agent in self.agents:
            self.assertEqual(agent.out.count("runs round"), rounds, agent.said() + self.daemon.said())
            self.assertNotIn("lost contact", agent.err)

    def finish(self):
        self.write("finish", "")
        for agent in self.agents:
            self.assert_ends(agent, 0)
        self.daemon.signal(signal.SIGTERM)
        self.assert_ends(self.daemon, 0)

    def wall_times(self):
        return [int(line[5:]) for line in self.agents[0].out.splitlines()
                if line.startswith("wall=")]

    def test_forwards_and_backwards(self):
        self.start_job()
        for offset in (HOUR, -HOUR):
            self.set_clock(offset)
            process_kit.wait_for(
                lambda: any(abs(t - time.time() - offset) < HOUR / 2 for t in self.wall_times()),
                "a worker that sees the jump")
            self.assert_untouched(rounds=1)
        # A failure, its stop and the next round, all while the clock is off.
        self.write("fail", "")
        self.wait_for_round(2)
        self.set_clock(3 * HOUR)
        self.assert_untouched(rounds=2)
        self.finish()

    def test_while_contact_is_lost(self):
        self.start_job()
        self.daemon.signal(signal.SIGKILL)
        for agent in self.agents:
            agent.wait_for_output("lost contact")
        # Longer than the reconnect timeout, were it taken seriously.
        self.set_clock(HOUR)
        self.daemon = self.start("rendezvous", "--listen=127.0.0.1:%d" % self.port,
                                 "--lease=%d" % LEASE)
        for agent in self.agents:
            agent.wait_for_output("again")
        self.finish()

    def test_machines_that_booted_at_different_times(self):
        enter = ["unshare", "--time", "--boottime=1000000", "--monotonic=2000000", "--fork",
                 "--kill-child"]
        probe = subprocess.run([*enter, "cat", "/proc/uptime"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False)
        if probe.returncode:
            self.skipTest("time namespaces can't be made here: " + probe.stdout.decode().strip())
        self.assertGreater(float(probe.stdout.split()[0]), 1000000)
        self.start_job(prefixes=((), enter))
        self.assert_untouched(rounds=1)
        self.write("fail", "")
        self.wait_for_round(2)
        self.finish()


if __name__ == "__main__":
    process_kit.main()
