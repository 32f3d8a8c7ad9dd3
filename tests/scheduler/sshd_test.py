#!/usr/bin/python3
"""`muster run --hosts` by ssh to real sshds: two hosts and the machine it is typed on, each with a network of
its own (sshd_kit.py).
"""
import os
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import process_kit
import sshd_kit


# No child of the shell: dash may lose a SIGINT that comes while one ends.
UNTIL_ENDED = ": > up.$RANK; exec sleep 1000"


class Sshd(sshd_kit.Hosts):
    def over_ssh(self, *words, hosts="node-0:2,node-1:2", **options):
        return self.here.run("--hosts=" + hosts, "--ssh-command=" + self.ssh(),
                             "-x", "TMPDIR", *words, **options)

    def run_long(self):
        process = self.over_ssh("--no-python", "sh", "-c", UNTIL_ENDED)
        self.wait_for_files("up.%d" % rank for rank in range(4))
        return process

    def test_two_hosts_with_two_workers_each(self):
        process = self.over_ssh("--prefix=never", "--no-python", "sh", "-c",
                                "echo $RANK of $WORLD_SIZE, $LOCAL_RANK on $(hostname), master $MASTER_ADDR")
        self.assert_ends(process, 0)
        self.assertEqual(sorted(process.out.splitlines()), [
            "%d of 4, %d on node-%d, master 10.77.0.1" % (rank, rank % 2, rank // 2) for rank in range(4)])
        self.assert_nothing_runs()

    def test_arguments_environment_and_folder_arrive(self):
        values = ["", "two  blanks", "it's \"quoted\"", "$HOME `id` \\n; #", "\u00fc\u20ac", "a\nb"]
        script = self.write("show.py", "import os, sys\nprint(ascii((os.getcwd(), os.environ['V'], "
                            "os.environ['W'], os.environ['PET_ROLE'], os.environ.get('HIDDEN'), sys.argv[1:])))\n")
        folder = os.path.join(self.work, "a 'folder' \u00fc")
        os.mkdir(folder)
        process = self.over_ssh("--wdir", folder, "-x", "V", "-x", "W=" + values[3], "--prefix=never", script, *values,
                                hosts="node-0,node-1",
                                env={"V": values[2], "PET_ROLE": "r", "HIDDEN": "1"})
        self.assert_ends(process, 0)
        self.assertEqual(process.out.splitlines(), 2 * [
            ascii((folder, values[2], values[3], "r", None, values))])

    def test_from_one_of_the_hosts(self):
        # Called by its own name no ssh is needed, and the other one finds it by that.
        process = self.a.run("--hosts=localhost,node-1", "--ssh-command=" + self.ssh(),
                             "-x", "TMPDIR", "--prefix=never", "--no-python", "sh", "-c", "echo $RANK $(hostname)")
        self.assert_ends(process, 0)
        self.assertEqual(sorted(process.out.splitlines()), ["0 node-0", "1 node-1"])

    def test_a_worker_that_fails(self):
        process = self.over_ssh("--no-python", "sh", "-c", "[ $RANK = 3 ] && { echo why >&2; exit 7; }; sleep 1000")
        self.assert_ends(process, 7, "rank      : 3", "host      : node-1", "exitcode  : 7")
        self.assertEqual(process.err.count("Root Cause"), 1, process.err)
        self.assert_nothing_runs()

    def test_ctrl_c(self):
        process = self.run_long()
        began = time.monotonic()
        process.signal(signal.SIGINT)
        self.assert_ends(process, 130, "stopped by SIGINT")
        self.assertLess(time.monotonic() - began, 10, process.said())
        self.assert_nothing_runs()

    def test_sigkill(self):
        process = self.run_long()
        process.signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.assert_nothing_runs()

    def test_the_connection_to_one_host_is_lost(self):
        process = self.run_long()
        sessions = [pid for pid in process_kit.descendants(self.daemons[1].pid)
                    if b"sshd" in process_kit.read("/proc/%d/cmdline" % pid)]
        for pid in sessions:
            os.kill(pid, signal.SIGKILL)
        self.assert_ends(process, 69, "host node-1: the connection was lost")
        self.assert_nothing_runs()

    def test_a_host_that_is_not_known(self):
        process = self.over_ssh("--no-python", "true", hosts="node-0,node-9")
        self.assert_ends(process, 69, "host node-9 can't be reached, ssh says \"ssh: Could not resolve hostname node-9")

    def test_nobody_listens(self):
        # With a user's name even this host is one for ssh.
        process = self.over_ssh("--no-python", "true", hosts="node-0,root@node-2")
        self.assert_ends(process, 69, "host root@node-2 can't be reached, ssh says \"ssh: connect to host node-2 port 22: "
                                      "Connection refused\"")
        self.assert_nothing_runs()

    def test_a_key_that_is_not_authorized(self):
        shutil.copy(self.key("other_key.pub"), self.key("authorized"))
        process = self.over_ssh("--no-python", "true")
        self.assert_ends(process, 69, "Permission denied (publickey", "true` work without a question")

    def test_a_host_key_that_is_not_known(self):
        self.put("known", process_kit.read(self.key("known")).decode().splitlines()[1] + "\n")
        process = self.over_ssh("--no-python", "true")
        self.assert_ends(process, 69, "host node-0 can't be reached, ssh says \"Host key verification failed.\"")

    def test_no_muster_there(self):
        process = self.over_ssh("--remote-muster=/no/muster", "--no-python", "true")
        self.assert_ends(process, 127, ": no muster can be run at /no/muster there (",
                         "install it there, or name its path with --remote-muster")


if __name__ == "__main__":
    process_kit.main()
