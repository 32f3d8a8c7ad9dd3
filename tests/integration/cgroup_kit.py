"""Control groups of a test's own, of version 1 or 2. A test that the machine refuses one is skipped,
with the reason."""
import os
import time
import unittest


def _mount_of(controller):
    """(version, folder of this process's own cgroup) of the hierarchy that has the controller."""
    own = {}
    with open("/proc/self/cgroup") as file:
        for line in file:
            number, names, path = line.rstrip("\n").split(":", 2)
            for name in names.split(","):
                own[name] = path
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file]
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind == "cgroup" and controller in options:
            return 1, fields[4] + own.get(controller, "/").rstrip("/")
    for fields in mounts:
        if fields[fields.index("-") + 1] == "cgroup2":
            return 2, fields[4] + own.get("", "/").rstrip("/")
    raise unittest.SkipTest("no cgroup file system is mounted")


class Cgroup:
    """A group below this process's own one. Removed by the test's clean-up, with what is in it."""

    def __init__(self, case, controller):
        self.version, above = _mount_of(controller)
        self.folder = os.path.join(above, "muster_test_" + case.tag)
        try:
            if self.version == 2:
                with open(os.path.join(above, "cgroup.subtree_control"), "w") as file:
                    file.write("+" + controller)
            os.mkdir(self.folder)
        except OSError as error:
            raise unittest.SkipTest("no cgroup with %s can be made here: %s" % (controller, error))
        case.addCleanup(self.remove)

    def write(self, name, text):
        try:
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(str(text))
        except OSError as error:
            raise unittest.SkipTest("%s/%s can't be set: %s" % (self.folder, name, error))

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def limit_memory(self, size):
        self.write("memory.limit_in_bytes" if self.version == 1 else "memory.max", size)

    def enter(self):
        """For `preexec`: what is started then runs in the group."""
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    def pids(self):
        return [int(pid) for pid in self.read("cgroup.procs").split()]

    def freeze(self, pid):
        """Version 1 only: there SIGKILL waits until the thaw."""
        self.write("cgroup.procs", pid)
        self.write("freezer.state", "FROZEN")

    def thaw(self):
        self.write("freezer.state", "THAWED")

    def remove(self):
        if os.path.exists(os.path.join(self.folder, "freezer.state")):
            self.thaw()
        for _ in range(500):
            try:
                for pid in self.pids():
                    os.kill(pid, 9)
            except OSError:
                pass
            try:
                os.rmdir(self.folder)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
