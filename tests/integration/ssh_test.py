#!/usr/bin/python3
"""`muster run --hosts`: what it does with a stand-in for ssh, which runs the command on this machine in
a bare environment and another folder, as sshd would. A real sshd is in ../scheduler/sshd_test.py.
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit
from process_kit import wait_for

# The host is the word before the last one. What runs carries the test's tag from the start on.
SSH = """#!/bin/sh
host= command=
for word in "$@"; do host=$command; command=$word; done
case $host in
  unknown) echo "ssh: Could not resolve hostname unknown: Name or service not known" >&2; exit 255;;
  denied) echo "some banner" >&2; echo "denied: Permission denied (publickey)." >&2; exit 255;;
  silent) exec sleep 1000;;
  chatty) echo "Welcome to chatty"; echo "a banner" >&2;;
  older) echo "muster remote 1 0.0.9 4711"; exec sleep 1000;;
  deaf) echo "muster remote 1 VERSION 4711"; exec sleep 1000;;
  127.0.0.4) other=PET_MAX_RESTARTS=3;;
  127.0.0.5) other=PET_MAX_RESTARTS=3; command="(sleep 1; cat) | $command";;
  127.0.0.6) command="$command; sleep 1000";;
esac
cd /
exec env -i PATH=/usr/bin:/bin MUSTER_TEST_TAG=$MUSTER_TEST_TAG FAKE_HOST=$host $other sh -c "$command"
"""
# Of these hosts one has another mind, one the same, but later, and one keeps its connection open.
DIFFERS, DIFFERS_LATER, LINGERS = "127.0.0.4", "127.0.0.5", "127.0.0.6"
# No child of the shell: dash may lose a SIGINT that comes while one ends.
UNTIL_ENDED = ": > up.$RANK; exec sleep 1000"


class Ssh(process_kit.Case):
    def setUp(self):
        super().setUp()
        version = self.run_to_end("version").out.split()[1]
        self.ssh = self.write("ssh", SSH.replace("VERSION", version), 0o755)

    def over_ssh(self, *words, **options):
        return self.start("run", "--ssh-command=" + self.ssh, *words, **options)

    def wait_for_files(self, names):
        names = set(names)
        wait_for(lambda: names <= set(os.listdir(self.work)), str(names))

    def assert_ends_soon(self, process, code, *sentences):
        began = time.monotonic()
        self.assert_ends(process, code, *sentences)
        self.assertLess(time.monotonic() - began, 20)

    def lines(self, process):
        return sorted(process.out.splitlines())


class Start(Ssh):
    def test_two_hosts_with_two_workers_each(self):
        process = self.over_ssh("-H", "127.0.0.2:2,127.0.0.3:2", "--prefix=never", "--no-python", "sh", "-c",
                                "echo $RANK of $WORLD_SIZE, $LOCAL_RANK on $FAKE_HOST")
        self.assert_ends(process, 0)
        self.assertEqual(self.lines(process), [
            "%d of 4, %d on 127.0.0.%d" % (rank, rank % 2, 2 + rank // 2) for rank in range(4)])

    def test_slots_from_a_file_and_mpiruns_words(self):
        path = self.write("my hosts", "# two\n127.0.0.2 slots = 2 max_slots=4\n127.0.0.3:3\n127.0.0.4\n")
        for words in (["--hostfile", path], ["-machinefile", path]):
            process = self.over_ssh(*words, "-np", "4", "--prefix=never", "--no-python",
                                    "sh", "-c", "echo $RANK $FAKE_HOST")
            self.assert_ends(process, 0, path + ":2: max_slots=4 has no effect")
            self.assertEqual(self.lines(process), [
                "0 127.0.0.2", "1 127.0.0.2", "2 127.0.0.3", "3 127.0.0.3"])

    def test_arguments_environment_and_folder_arrive_byte_for_byte(self):
        values = ["", "two  blanks", "it's \"quoted\"", "$HOME `id` \\n; #", "\u00fc\u20ac", "a\nb"]
        script = self.write("show.py", "import os, sys\n"
                            "print(repr((os.getcwd(), os.environ['V'], os.environ['W'], os.environ['PATH'],"
                            "os.environ.get('HIDDEN'), os.environ['PET_ROLE'], sys.argv[1:])))\n")
        folder = os.path.join(self.work, "a 'folder' \u00fc")
        os.mkdir(folder)
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "-x", "V", "-x", "W=" + values[2], "--prefix=never",
                                script, *values, cwd=folder,
                                env={"V": values[3], "HIDDEN": "1", "PET_ROLE": "r", "PWD": folder,
                                     "PATH": "/opt/no:/usr/bin:/bin"})
        self.assert_ends(process, 0)
        self.assertEqual(process.out.splitlines(), 2 * [
            repr((folder, values[3], values[2], "/opt/no:/usr/bin:/bin", None, "r", values))])

    def test_another_folder(self):
        process = self.over_ssh("-H", "127.0.0.2", "--wdir=/usr", "--no-python", "pwd")
        self.assert_ends(process, 0)
        self.assertIn("/usr\n", process.out)

    def test_this_host_needs_no_ssh(self):
        process = self.start("run", "--hosts=localhost:2", "--ssh-command=/no/ssh", "--prefix=never", "--no-python",
                             "sh", "-c", "echo $RANK of $WORLD_SIZE")
        self.assert_ends(process, 0)
        self.assertEqual(self.lines(process), ["0 of 2", "1 of 2"])

    def test_the_static_layout(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--rdzv-backend=static", "--prefix=never",
                                "--no-python", "sh", "-c", "echo $GROUP_RANK $MASTER_ADDR")
        self.assert_ends(process, 0)
        self.assertEqual(self.lines(process), ["0 127.0.0.2", "1 127.0.0.2"])

    def test_what_a_profile_prints_is_no_output(self):
        # The first host's name is where they meet; this one's isn't looked up.
        process = self.over_ssh("-H", "127.0.0.2,chatty", "--prefix=never", "--no-python", "echo", "x")
        self.assert_ends(process, 0, "a banner")
        self.assertEqual(process.out, "x\nx\n")

    def test_hosts_in_the_environment_do_not_start_it_twice(self):
        process = self.start("run", "--prefix=never", "--no-python", "echo", "x",
                             env={"PET_HOSTS": "127.0.0.2,127.0.0.3", "PET_SSH_COMMAND": self.ssh})
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "x\nx\n")

    def test_lines_of_several_hosts_are_whole(self):
        script = self.write("lines.py", "import os, sys\nline = os.environ['RANK'] * 3000\n"
                            "for _ in range(1000): sys.stdout.write(line[:1500]); sys.stdout.flush(); "
                            "sys.stdout.write(line[1500:] + '\\n')\n")
        process = self.over_ssh("-H", "127.0.0.2:2,127.0.0.3:2", "--prefix=never", script)
        self.assert_ends(process, 0)
        self.assertEqual(self.lines(process), sorted(str(rank) * 3000 for rank in range(4) for _ in range(1000)))

    def test_without_standard_input(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--prefix=never", "--no-python", "echo", "x",
                                preexec=lambda: os.close(0))
        self.assert_ends(process, 0)
        self.assertEqual(process.out, "x\nx\n")

    def test_started_by_one_that_ignores_the_end_of_children(self):
        process = self.over_ssh("-H", "localhost,127.0.0.3", "--prefix=never", "--no-python", "echo", "x",
                                preexec=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assert_ends_soon(process, 0)
        self.assertEqual(process.out, "x\nx\n")

    def test_half_a_plan_starts_nothing(self):
        def field(kind, text):
            return "%s%d:%s\n" % (kind, len(text), text)
        whole = "".join(field(*f) for f in [
            ("h", "x"), ("m", "mark"), ("f", self.work), ("w", "--no-python"), ("w", "touch"), ("w", "begun"),
            ("w", "last")])
        for size in (len(whole) - len(field("w", "last")), len(whole) - 1):
            with open(self.write("plan", "muster plan 1 %016d\n%s" % (len(whole), whole[:size]))) as plan:
                process = self.start("remote", stdin=plan)
                self.assert_ends(process, 69)
        self.assertNotIn("begun", os.listdir(self.work))

    def test_the_remote_command_is_not_for_people(self):
        process = self.run_to_end("remote", "x")
        self.assert_ends(process, 64, "it isn't for use by hand")
        process = self.run_to_end("remote")
        self.assert_ends(process, 69)


class Failures(Ssh):
    def fails(self, words, code, *sentences):
        process = self.over_ssh(*words, "--no-python", "sh", "-c", UNTIL_ENDED)
        self.assert_ends_soon(process, code, *sentences)
        self.assertNotIn("up.0", os.listdir(self.work))
        return process

    def test_a_worker_that_fails_ends_all_and_is_told_once(self):
        process = self.over_ssh("-H", "127.0.0.2:2,127.0.0.3:2", "--no-python", "sh", "-c",
                                "[ $RANK = 3 ] && exit 7; sleep 1000")
        self.assert_ends_soon(process, 7, "exitcode  : 7")
        self.assertEqual(process.err.count("Root Cause"), 1, process.err)
        self.assertEqual(len(re.findall("muster: sh: job .* failed: worker rank 3", process.err)), 1, process.err)

    def test_a_code_of_255_is_not_taken_for_ssh_s(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--no-python", "sh", "-c", "exit 255")
        self.assert_ends_soon(process, 255, "Root Cause")
        self.assertNotIn("connection was lost", process.err)

    def test_a_restart_is_on_all_hosts(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--max-restarts=1", "--prefix=never", "--no-python",
                                "sh", "-c", process_kit.ALL_ARE_UP + "echo $RANK.$TORCHELASTIC_RESTART_COUNT; "
                                "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || { [ $RANK = 1 ] && exit 3; exec sleep 1000; }")
        self.assert_ends(process, 0)
        self.assertEqual([line for line in self.lines(process) if line.endswith(".1")], ["0.1", "1.1"])

    def test_a_host_that_cannot_be_reached(self):
        process = self.fails(["-H", "127.0.0.2,unknown"], 69, "host unknown can't be reached, ssh says "
                             "\"ssh: Could not resolve hostname unknown: Name or service not known\"",
                             "ssh unknown true` work")
        self.assertEqual(process.err.count("\n"), 1, process.err)

    def test_a_host_that_denies(self):
        self.fails(["-H", "denied,127.0.0.2"], 69, "\"denied: Permission denied (publickey).\"")

    def test_no_muster_there(self):
        self.fails(["-H", "127.0.0.2", "--remote-muster=/no/muster"], 127,
                   "host 127.0.0.2: no muster can be run at /no/muster there", "--remote-muster")

    def test_another_version_there(self):
        self.fails(["-H", "127.0.0.2,older"], 78, "host older has muster 0.0.9")

    def test_something_else_there(self):
        self.fails(["-H", "127.0.0.2", "--remote-muster=/bin/false"], 69, "/bin/false ended with code 1")

    def test_no_answer_there(self):
        self.fails(["-H", "127.0.0.2,silent", "--rdzv-conf=join_timeout=1"], 69,
                   "host silent: muster there isn't ready after 1 s")

    def test_no_ssh_here(self):
        self.fails(["-H", "127.0.0.2", "--ssh-command=/no/ssh"], 127, "/no/ssh can't be started")

    def test_no_folder_there(self):
        self.fails(["-H", "127.0.0.2,127.0.0.3", "--wdir=/no"], 64, "the folder /no can't be entered", "--wdir")

    def test_no_program_on_one_host(self):
        # The other one would wait for it.
        program = self.write("program", "#!/bin/sh\nsleep 1000\n", 0o755)
        wrapper = self.write("ssh2", "#!/bin/sh\ncase \"$*\" in *127.0.0.3*) rm -f %s;; esac\nexec %s \"$@\"\n" %
                             (program, self.ssh), 0o755)
        process = self.start("run", "-H", "127.0.0.3,127.0.0.2", "--ssh-command=" + wrapper, "--no-python", program)
        self.assert_ends_soon(process, 127, "does not exist; check the path")

    def test_a_connection_that_is_lost_ends_the_others(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--no-python", "sh", "-c", UNTIL_ENDED)
        self.wait_for_files(["up.0", "up.1"])
        os.kill(self.children(process)["127.0.0.3"], signal.SIGKILL)
        self.assert_ends_soon(process, 69, "host 127.0.0.3")

    def test_fewer_hosts_go_on_where_they_are_enough(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--nnodes=1:2", "--no-python", "sh", "-c",
                                "touch up.$RANK; until [ -e finish ]; do sleep 0.05; done")
        self.wait_for_files(["up.0", "up.1"])
        os.kill(self.children(process)["127.0.0.3"], signal.SIGKILL)
        process.wait_for_output("the job goes on with 1 of 2 hosts")
        self.write("finish", "")
        self.assert_ends(process, 0)

    def test_files_of_hosts_that_are_wrong(self):
        path = self.write("hosts", "127.0.0.2\n127.0.0.3 slots=many\n")
        self.fails(["--hostfile=" + path], 64, path + ":2: \"slots=many\" is not valid")
        self.fails(["--hostfile=/no/hosts"], 64, "--hostfile=/no/hosts can't be read: No such file or directory")
        self.fails(["--hostfile=/"], 64, "--hostfile=/ can't be read: Is a directory")
        self.fails(["--hostfile=/dev/zero"], 64, "--hostfile=/dev/zero can't be read: File too large")

    def test_words_of_mpirun_that_are_others_here(self):
        self.fails(["-H", "127.0.0.2", "-ppn", "2"], 64, "option -ppn is mpirun's; write --nproc-per-node=N")
        self.fails(["-H", "127.0.0.2", "-x", "A,B"], 64, "-x: \"A,B\" is not valid", "-x A -x B=1")

    def test_a_full_disk_is_said_once(self):
        with open("/dev/full", "wb") as full:
            process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--no-python", "echo", "x", stdout=full)
            self.assert_ends(process, 0, "muster: some output to stdout is not shown: No space left on device")
        self.assertEqual(process.err.count("is not shown"), 1, process.err)

    def children(self, process):
        """What was started for each host, by its name."""
        found = {}
        for pid in process_kit.all_pids():
            if process_kit.parent_of(pid) != process.pid:
                continue
            for entry in process_kit.environment_of(pid):
                if entry.startswith(b"FAKE_HOST="):
                    found[entry[10:].decode()] = pid
        return found


class Refusals(Ssh):
    """A host's own environment says --max-restarts=3, the others don't."""

    def test_a_refusal_ends_the_wait_of_the_others(self):
        # Whoever comes first opens the job: the refused one may be the host of the rendezvous, too.
        for hosts in ("127.0.0.2," + DIFFERS, DIFFERS + ",127.0.0.2", "127.0.0.2," + DIFFERS_LATER):
            process = self.over_ssh("-H", hosts, "--no-python", "sh", "-c", UNTIL_ENDED)
            self.assert_ends_soon(process, 78, "--max-restarts", "3", "0")
        self.assertNotIn("up.0", os.listdir(self.work))

    def test_a_refusal_is_shown_while_others_still_end(self):
        process = self.over_ssh("-H", "127.0.0.2,%s,%s" % (DIFFERS_LATER, LINGERS), "--no-python", "true")
        process.wait_for_output("--max-restarts")
        self.assertTrue(process.is_running(), process.said())
        self.assert_ends_soon(process, 78)
        self.assertEqual(sum("--max-restarts" in line for line in process.err.splitlines()), 1, process.err)

    def test_a_refused_host_is_told_of_where_the_others_are_enough(self):
        process = self.over_ssh("-H", "127.0.0.2," + DIFFERS_LATER, "--nnodes=1:2", "--rdzv-conf=last_call_timeout=4",
                                "--prefix=never", "--no-python", "sh", "-c", "echo $WORLD_SIZE")
        self.assert_ends(process, 0, "--max-restarts", "muster: the job goes on with 1 of 2 hosts\n")
        self.assertEqual(process.out, "1\n")


class Ends(Ssh):
    """Nothing may be left of any: the kit looks for it."""

    def run_long(self, *words, **options):
        process = self.over_ssh("-H", "127.0.0.2:2,127.0.0.3:2", *words, "--no-python", "sh", "-c", UNTIL_ENDED,
                                **options)
        self.wait_for_files("up.%d" % rank for rank in range(4))
        return process

    def test_ctrl_c_ends_all(self):
        terminal = cluster_kit.Terminal()
        self.addCleanup(terminal.close)
        process = self.run_long(preexec=terminal.take, stdin=terminal.slave)
        terminal.type(b"\x03")
        self.assert_ends_soon(process, 130, "stopped by SIGINT")
        self.assertEqual(process.err.splitlines().count("muster: stopped by SIGINT"), 1, process.err)
        # What a further signal does to all of them only the launching side knows.
        self.assertEqual(process.err.count("second signal"), 1, process.err)
        self.assertIn("muster: SIGINT is passed on to 2 hosts; a second signal kills the workers there, a third one "
                      "ends the wait for them\n", process.err)
        self.assertNotIn("on all of them", process.err)
        for host in ("127.0.0.2", "127.0.0.3"):
            self.assertIn("muster: host %s: 2 workers of this node were stopped" % host, process.err)

    def test_sigterm_ends_all(self):
        process = self.run_long()
        process.signal(signal.SIGTERM)
        self.assert_ends_soon(process, 143)

    def test_sigkill_ends_all(self):
        process = self.run_long()
        process.signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)

    def test_ctrl_c_before_the_job_has_begun(self):
        process = self.over_ssh("-H", "127.0.0.2,silent", "--no-python", "true")
        wait_for(lambda: [pid for pid in process_kit.tagged(self.tag)
                          if b"sleep" in process_kit.read("/proc/%d/cmdline" % pid)], "the silent host")
        process.signal(signal.SIGINT)
        self.assert_ends_soon(process, 130, "stopped by SIGINT before the job had begun")

    def test_a_flood_of_output_keeps_nobody_from_ending_it(self):
        process = self.over_ssh("-H", "127.0.0.2:2,127.0.0.3:2", "--no-python", "sh", "-c", ": > up.$RANK; exec yes",
                                stdout=subprocess.DEVNULL)
        self.wait_for_files("up.%d" % rank for rank in range(4))
        process.signal(signal.SIGINT)
        self.assert_ends_soon(process, 130, "stopped by SIGINT")

    def test_a_connection_that_outlives_the_job(self):
        process = self.over_ssh("-H", "127.0.0.2," + LINGERS, "--prefix=never", "--no-python", "echo", "x")
        self.assert_ends_soon(process, 0)
        self.assertEqual(process.out, "x\nx\n")

    def test_a_third_signal_waits_for_nobody(self):
        process = self.over_ssh("-H", "127.0.0.2,deaf", "--no-python", "true")
        wait_for(lambda: [pid for pid in process_kit.tagged(self.tag) if b"FAKE_HOST=127.0.0.2" in
                          process_kit.environment_of(pid) and b"run" in
                          process_kit.read("/proc/%d/cmdline" % pid).split(b"\0")], "the host that listens")
        # One kind alone might be pending twice and come once.
        process.signal(signal.SIGINT)
        process.wait_for_output("SIGINT is passed on to 2 hosts")
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGHUP)
        self.assert_ends_soon(process, 130, "; what runs there ends when it sees that the connection is closed")

    def test_a_second_signal_ends_the_grace(self):
        # Once both workers have the first one: two that are pending at an agent would be one.
        script = self.write("stay.py", "import os, signal, time\nrank = os.environ['RANK']\n"
                            "for number in (signal.SIGINT, signal.SIGTERM):\n"
                            "    signal.signal(number, lambda *_: open('got.' + rank, 'w').close())\n"
                            "open('up.' + rank, 'w').close()\nwhile True: time.sleep(0.1)\n")
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", script)
        self.wait_for_files(["up.0", "up.1"])
        process.signal(signal.SIGINT)
        self.wait_for_files(["got.0", "got.1"])
        process.signal(signal.SIGINT)
        self.assert_ends_soon(process, 130, "a second signal kills the workers there")

    def test_sigusr1_reaches_the_workers(self):
        process = self.over_ssh("-H", "127.0.0.2,127.0.0.3", "--no-python", "--prefix=never", "sh", "-c",
                                "trap 'echo got it $RANK; exit 0' USR1; : > up.$RANK; "
                                "while :; do sleep 0.05; done")
        self.wait_for_files(["up.0", "up.1"])
        process.signal(signal.SIGUSR1)
        self.assert_ends(process, 0)
        self.assertEqual(self.lines(process), ["got it 0", "got it 1"])


if __name__ == "__main__":
    process_kit.main()
