"""Real sshds on two of three hosts, each with a network of its own: node-0 and node-1 let root in by a key that the
third one has. Configuration and keys are in the test's folder.

A test is skipped where OpenSSH's server isn't installed, where networks can't be made, and for others than root.
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import net_kit
import process_kit
from process_kit import wait_for


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "/usr/bin") + ":/usr/sbin:/sbin")


SERVER = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
PidFile none
"""
CLIENT = """
IdentityFile {folder}/key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
"""


@unittest.skipIf(find("sshd") is None, "not installed: sshd (openssh-server)")
@unittest.skipIf(os.geteuid() != 0, "an sshd that logs anybody in has to be root's")
class Hosts(net_kit.Case):
    def setUp(self):
        super().setUp()
        self.keys = os.path.join(self.folder, "keys")
        os.mkdir(self.keys, 0o700)
        self.a, self.b, self.here = self.network(3).nodes
        for name in ("host_key", "key", "other_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.keys, name)],
                           check=True)
        shutil.copy(self.key("key.pub"), self.key("authorized"))
        host_key = " ".join(process_kit.read(self.key("host_key.pub")).decode().split()[:2])
        self.put("known", "".join("%s %s\n" % (node.name, host_key) for node in (self.a, self.b)))
        self.put("server", SERVER.format(folder=self.keys))
        self.put("client", CLIENT.format(folder=self.keys))
        self.daemons = []
        for node in (self.a, self.b):
            # Where its unprivileged half has its root.
            node.call("mount -t tmpfs none /run\nmkdir /run/sshd")
            self.daemons.append(node.tool(find("sshd"), "-D", "-e", "-f", self.key("server")))
            self.daemons[-1].wait_for_output("Server listening on 0.0.0.0 port 22")

    def key(self, name):
        return os.path.join(self.keys, name)

    def put(self, name, text):
        with open(self.key(name), "w") as file:
            file.write(text)

    def ssh(self):
        """ssh as the words of a command line, with what it needs to log in."""
        return "ssh -F '%s'" % self.key("client")

    def wait_for_files(self, names):
        names = set(names)
        wait_for(lambda: names <= set(os.listdir(self.work)), str(names))

    def assert_nothing_runs(self, seconds=20):
        """But for what the test itself keeps running: sshd and the processes that hold the networks."""
        own = {tool.pid for tool in self.tools} | {namespace.holder.pid for namespace in self.namespaces}
        wait_for(lambda: not [pid for pid in process_kit.tagged(self.tag) if pid not in own],
                 "the end of all on both hosts", seconds)
