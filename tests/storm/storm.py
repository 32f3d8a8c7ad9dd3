"""A job of 4 nodes x 2 workers in a storm of faults; it must end with the exact count.

The nodes have networks of their own where those can be made (net_kit.py); elsewhere they share
loopback, and the storm leaves partitions out and says so. Whatever isn't the plan's doing is a fault of
muster: an agent that ends by itself, a commit that was acknowledged and isn't there later, a count that
isn't exact, a process, port or file that is left.
"""
import os
import re
import shutil
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import fault_plan
import net_kit
import process_kit

WORKER = os.environ.get("STORM_WORKER") or os.path.join(
    process_kit.ROOT, "tests", "storm", "counting_worker")
SLOTS = 4
WORKERS = 2
MIN_NODES = 2
LEASE = 0.3
PORT = 29400
# The guardian was killed or stopped: the agent gives its node up.
LOST_GUARDIAN = 70
# From the last fault to the end, on a machine that does other things as well.
SETTLE = process_kit.DEADLINE
# Steps that are left when the storm is over: the job has to get going again.
LAST_STEPS = 100
EVENT = re.compile(r"(\w+) round (\d+) rank (\d+) of (\d+) step (\d+) count (-?\d+) digest (-?\d+)")


def expected(steps):
    """(count, digest) after so many steps, counted in one process. See counting_worker.cc."""
    count = digest = 0
    for step in range(1, steps + 1):
        total = sum((step * 31 + item * 17) % 101 for item in range(64))
        count += total
        digest = (digest * 6364136223846793005 + total) % 2**64
    return count, digest - 2**64 if digest >= 2**63 else digest


def children(pid):
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            words = process_kit.read("/proc/%d/task/%s/children" % (pid, task)).split()
            found += [int(word) for word in words]
    except FileNotFoundError:
        pass
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class LoopbackNode:
    """A node without a network of its own."""

    def __init__(self, case, index):
        self.case = case
        self.address = "127.0.0.%d" % (index + 1)

    def muster(self, *words, **options):
        return process_kit.Process(self.case, [process_kit.MUSTER, *words], **options)


class Slot:
    """One node's place in the job: its agent, and after that one's death the next."""

    def __init__(self, node, words, temporary):
        self.node = node
        self.words = words
        # A folder in which each agent gets one for its temporary files.
        self.temporary = temporary
        self.lives = 0
        self.agent = None
        # When a replacement is due; None while an agent runs.
        self.due = None
        # Exit codes that the plan has brought about.
        self.excused = set()
        # The job has ended well here.
        self.is_done = False

    def start(self):
        self.excused = set()
        self.due = None
        self.lives += 1
        self.folder = "%s_%d" % (self.temporary, self.lives)
        os.mkdir(self.folder)
        self.agent = self.node.muster(*self.words, env={"TMPDIR": self.folder})

    def guardian(self):
        """Its pid, or None: the agent is starting or ending."""
        return next(iter(children(self.agent.pid)), None)

    def workers(self):
        guardian = self.guardian()
        return children(guardian) if guardian else []

    def everyone(self):
        guardian = self.guardian()
        return [pid for pid in (self.agent.pid, guardian) if pid] + self.workers()


class Storm:
    """One seed. `say` takes lines of the trace."""

    def __init__(self, case, nodes, network, say):
        self.case = case
        self.network = network
        self.say = say
        self.began = time.monotonic()
        self.rendezvous_node = nodes[SLOTS]
        port = PORT if network else process_kit.free_port()
        endpoint = "%s:%d" % (self.rendezvous_node.address, port)
        self.rendezvous_words = ["rendezvous", "--listen=" + endpoint, "--lease=%g" % LEASE,
                                 "--state-dir=" + os.path.join(case.work, "state")]
        if network:
            self.rendezvous_words.append("--insecure")
        os.mkdir(os.path.join(case.work, "state"))
        self.rendezvous = None
        self.slots = [Slot(node, ["run", "--nnodes=%d:%d" % (MIN_NODES, SLOTS),
                                  "--nproc-per-node=%d" % WORKERS, "--rdzv-endpoint=" + endpoint,
                                  "--rdzv-id=storm", "--rdzv-conf=last_call_timeout=1",
                                  "--local-addr=" + node.address, "--max-restarts=1000000",
                                  # Faults may well strike at one step again and again.
                                  "--max-early-failures=0", "--max-stuck-restarts=0",
                                  "--no-python", WORKER, case.work],
                           os.path.join(case.temporary, "slot_%d" % index))
                      for index, node in enumerate(nodes[:SLOTS])]
        # The step to end at, once the storm is over.
        self.goal = 0
        # (when, what) of what the faults have left to do.
        self.later = []

    def path(self, name):
        return os.path.join(self.case.work, name)

    def note(self, text):
        self.say("%8.3f  %s" % (time.monotonic() - self.began, text))

    def events(self):
        return [(m.group(1), *map(int, m.groups()[1:]))
                for m in EVENT.finditer(process_kit.read(self.path("events")).decode())]

    # ---- the course of things --------------------------------------------------------------

    def begin(self):
        self.start_rendezvous()
        for slot in self.slots:
            slot.start()
        process_kit.wait_for(lambda: self.tend() or any(
            e[0] == "saved" for e in self.events()), "the first checkpoint")

    def start_rendezvous(self):
        self.rendezvous = self.rendezvous_node.muster(*self.rendezvous_words)
        self.rendezvous.wait_for_output("listens at")

    def run(self, plan):
        for number, fault in enumerate(plan):
            self.rest(fault.pause)
            self.note("%3d %s" % (number, fault_plan.text(fault)))
            getattr(self, fault.kind.replace(" ", "_"))(fault)
        # What still stands still or apart comes back.
        while self.later or any(slot.due is not None for slot in self.slots):
            self.rest(0.01)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while True:
            self.tend()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.005))

    def tend(self):
        """Does what is due, and looks whether anything ended that shouldn't have."""
        now = time.monotonic()
        due = [entry for entry in self.later if entry[0] <= now]
        self.later = [entry for entry in self.later if entry[0] > now]
        for _, what in due:
            what()
        for index, slot in enumerate(self.slots):
            if slot.due is None and not slot.agent.is_running():
                if slot.is_done:
                    continue
                code = slot.agent.popen.returncode
                self.note("agent of slot %d ended with %d" % (index, code))
                if code == 0 and self.goal:
                    slot.is_done = True
                    continue
                if code not in slot.excused:
                    raise AssertionError("the agent of slot %d ended with %d by itself:\n%s" %
                                         (index, code, slot.agent.said()))
                slot.due = now
            if slot.due is not None and slot.due <= now:
                slot.start()
                self.note("slot %d: new agent %d" % (index, slot.agent.pid))
        if self.rendezvous is not None and not self.rendezvous.is_running():
            raise AssertionError("the rendezvous ended with %d by itself:\n%s" % (
                self.rendezvous.popen.returncode, self.rendezvous.said()))

    def after(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def settle(self):
        """After the last fault: the job reaches a goal, every node ends well."""
        newest = max(e[4] for e in self.events())
        self.goal = newest + LAST_STEPS
        with open(self.path("goal.new"), "w") as file:
            file.write("%d\n" % self.goal)
        os.rename(self.path("goal.new"), self.path("goal"))
        self.note("the storm is over at step %d; the goal is %d" % (newest, self.goal))
        # A node may still be lost to a fault, and be replaced.
        process_kit.wait_for(lambda: self.tend() or all(slot.is_done for slot in self.slots),
                             "the end of the job on every node", SETTLE)
        self.rendezvous.signal(signal.SIGTERM)
        self.case.assertEqual(self.rendezvous.wait(), 0, self.rendezvous.said())
        self.rendezvous = None
        self.judge(self.goal)

    def judge(self, goal):
        events = self.events()
        count, digest = expected(goal)
        done = [e for e in events if e[0] == "done"]
        last = max(e[1] for e in done)
        ranks = sorted(e[2] for e in done if e[1] == last)
        size = next(e[3] for e in done if e[1] == last)
        self.case.assertEqual(ranks, list(range(size)), "all workers of round %d are done" % last)
        for event in done:
            self.case.assertEqual(event[4:], (goal, count, digest), event)
        # A commit that was acknowledged is there for every later round.
        saved = [(e[1], e[4]) for e in events if e[0] == "saved"]
        for event in (e for e in events if e[0] == "begins"):
            lost = [s for s in saved if s[0] < event[1] and s[1] > event[4]]
            self.case.assertEqual(lost, [], "%s goes back behind what was saved" % (event,))
            self.case.assertEqual(event[5:], expected(event[4]), event)
        for life in os.listdir(self.case.temporary):
            # Fails if an agent has left something behind.
            os.rmdir(os.path.join(self.case.temporary, life))
        left = [name for name in os.listdir(self.path("checkpoints")) if name.endswith(".tmp")]
        self.case.assertEqual(left, [], "half-written checkpoints are left")
        rounds = len({e[1] for e in events})
        self.note("exact at step %d: count %d; %d rounds, %d checkpoints" %
                  (goal, count, rounds, len(saved)))

    # ---- the faults ------------------------------------------------------------------------

    def gone(self, slot, fault, *codes):
        """The slot's agent will end because of this fault."""
        slot.excused.update(codes)
        if codes == (-signal.SIGKILL,):
            slot.agent.popen.wait()
            slot.due = time.monotonic() + fault.back

    def slot_of(self, fault):
        slot = self.slots[fault.slot]
        return slot if slot.due is None and slot.agent.is_running() else None

    def kill_worker(self, fault):
        slot = self.slot_of(fault)
        workers = slot.workers() if slot else []
        if fault.worker < len(workers):
            send(workers[fault.worker], signal.SIGKILL)
        else:
            self.note("    misses")

    def kill_starting_worker(self, fault):
        """The next worker that starts on this node, as soon as it is there."""
        slot = self.slot_of(fault)
        before = set(slot.workers()) if slot else set()

        def strike(tries=200):
            new = [pid for pid in slot.workers() if pid not in before]
            if new:
                send(new[0], signal.SIGKILL)
            elif tries:
                self.after(0.003, lambda: strike(tries - 1))
        if slot:
            strike()

    def kill_agent(self, fault):
        slot = self.slot_of(fault)
        if slot:
            send(slot.agent.pid, signal.SIGKILL)
            self.gone(slot, fault, -signal.SIGKILL)
            if LOST_GUARDIAN in slot.excused:
                # So is who would have removed its temporary files, or soon may be.
                shutil.rmtree(slot.folder, ignore_errors=True)

    def kill_guardian(self, fault):
        slot = self.slot_of(fault)
        guardian = slot.guardian() if slot else None
        if guardian:
            slot.excused.add(LOST_GUARDIAN)
            send(guardian, signal.SIGKILL)

    def kill_node(self, fault):
        slot = self.slot_of(fault)
        if slot:
            for pid in slot.everyone():
                send(pid, signal.SIGKILL)
            self.gone(slot, fault, -signal.SIGKILL)
            # Who would have removed its temporary files is dead.
            shutil.rmtree(slot.folder)

    def stop(self, pids, fault):
        stopped = [pid for pid in pids if send(pid, signal.SIGSTOP)]
        self.after(fault.length, lambda: [send(pid, signal.SIGCONT) for pid in stopped])

    def stop_worker(self, fault):
        slot = self.slot_of(fault)
        self.stop(slot.workers()[fault.worker:fault.worker + 1] if slot else [], fault)

    def stop_agent(self, fault):
        slot = self.slot_of(fault)
        self.stop([slot.agent.pid] if slot else [], fault)

    def stop_guardian(self, fault):
        slot = self.slot_of(fault)
        guardian = slot.guardian() if slot else None
        if guardian:
            slot.excused.add(LOST_GUARDIAN)
            self.stop([guardian], fault)

    def stop_node(self, fault):
        slot = self.slot_of(fault)
        if slot:
            # The guardian stands still as long as the agent, who may find it so.
            slot.excused.add(LOST_GUARDIAN)
            self.stop(slot.everyone(), fault)

    def stop_rendezvous(self, fault):
        if self.rendezvous is not None:
            self.stop([self.rendezvous.pid], fault)

    def restart_rendezvous(self, fault):
        if self.rendezvous is None:
            return
        process, self.rendezvous = self.rendezvous, None
        process.signal(signal.SIGKILL)
        process.popen.wait()
        self.after(fault.length, self.start_rendezvous)

    # One partition at a time: the next one ends it.

    def part(self, fault, lose):
        self.network.heal()
        mark = self.partition = object()
        lose()

        def heal():
            if self.partition is mark:
                self.network.heal()
        self.after(fault.length, heal)

    def cut_off_node(self, fault):
        node = self.slots[fault.slot].node
        self.part(fault, lambda: self.network.partition(
            [node], [n for n in self.network.nodes if n is not node]))

    def cut_node_from_rendezvous(self, fault):
        node = self.slots[fault.slot].node
        self.part(fault, lambda: self.network.partition([node], [self.rendezvous_node]))

    def deafen_node(self, fault):
        node = self.slots[fault.slot].node
        self.part(fault, lambda: self.network.lose(target=node))

    def mute_node(self, fault):
        node = self.slots[fault.slot].node
        self.part(fault, lambda: self.network.lose(source=node))

    def split_in_halves(self, fault):
        nodes = [slot.node for slot in self.slots]
        one = [nodes[fault.slot], nodes[(fault.slot + 1) % SLOTS]]
        other = [n for n in self.network.nodes if n not in one]
        self.part(fault, lambda: self.network.partition(one, other))


class Case(net_kit.Case):
    """A test that storms. What happened is kept when it fails, and where is said."""

    def setUp(self):
        # Not net_kit's: without networks the storm still has processes to strike.
        self.why_no_network = net_kit.why_not()
        self.namespaces = []
        self.tools = []
        self._frozen = set()
        process_kit.Case.setUp(self)

    def make_nodes(self):
        if self.why_no_network:
            print("storm: partitions are left out, networks can't be made here: " +
                  self.why_no_network)
            return [LoopbackNode(self, i) for i in range(SLOTS + 1)], None
        network = self.network(SLOTS + 1)
        return network.nodes, network

    def storm(self, seed, count):
        nodes, network = self.make_nodes()
        plan = fault_plan.make(seed, count, SLOTS, WORKERS, with_partitions=network is not None)
        trace = []
        storm = Storm(self, nodes, network, trace.append)
        storm.note("seed %d, %d faults" % (seed, count))
        try:
            storm.begin()
            storm.run(plan)
            storm.settle()
            self.look_for_sockets(nodes if network else [])
        except BaseException as error:
            trace.append("FAILED: %s" % error)
            print("storm: seed %d failed; what happened is in %s" % (seed, self.keep(seed, trace)))
            self.clear_away()
            raise
        took = time.monotonic() - storm.began
        print("storm: seed %d: %d faults in %.0f s: %s" % (seed, count, took, trace[-1].strip()),
              flush=True)

    def clear_away(self):
        """After a failure: what is left then is no further one."""
        for pid in process_kit.tagged(self.tag):
            send(pid, signal.SIGKILL)
        for name in os.listdir(self.temporary):
            shutil.rmtree(os.path.join(self.temporary, name))

    def look_for_sockets(self, nodes):
        """What listens, or still is connected, in the networks of the job."""
        for node in nodes:
            for name in ("tcp", "tcp6"):
                rows = process_kit.read("/proc/%d/net/%s" % (node.holder.pid, name)).decode()
                # 06 and 0 are what the kernel keeps of connections that are over.
                left = [row for row in rows.splitlines()[1:] if row.split()[3] in ("01", "0A")]
                self.assertEqual(left, [], "sockets are left on %s" % node.name)
            names = process_kit.read("/proc/%d/net/unix" % node.holder.pid).decode()
            self.assertNotIn("@muster-", names)

    def keep(self, seed, trace):
        parent = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR") or tempfile.gettempdir()
        folder = tempfile.mkdtemp(prefix="muster_storm_%d_" % seed, dir=parent)
        with open(os.path.join(folder, "trace"), "w") as file:
            file.write("\n".join(trace) + "\n")
        for process in self.processes:
            name = "%s_%d" % (next((w for w in ("rendezvous", "run") if w in process.argv), "other"),
                              process.pid)
            with open(os.path.join(folder, name), "w") as file:
                file.write("%s\n%s" % (" ".join(process.argv), process.said()))
        for name in ("events", "goal", "checkpoints", "state"):
            path = os.path.join(self.work, name)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(folder, name))
            elif os.path.exists(path):
                shutil.copy(path, folder)
        return folder
