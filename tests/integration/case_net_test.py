#!/usr/bin/python3
"""The case of the area NET that needs no namespace (tests/CASES.md): ports."""
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_kit
import process_kit

PAIRS = 25 if cluster_kit.is_full() else 8
SHOW = ("--nproc-per-node=2", "--prefix=never", "--no-python", "sh", "-c",
        "echo $MASTER_PORT $WORLD_SIZE $TORCHELASTIC_RUN_ID; sleep 0.1")


class Holder:
    """Listens on a port of 127.0.0.1 and greets whoever comes."""

    def __init__(self, greeting):
        self.greeting = greeting
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.guests = []
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        while True:
            try:
                guest, _ = self.listener.accept()
            except OSError:
                return
            self.guests.append(guest)
            guest.sendall(self.greeting)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for guest in self.guests:
            guest.close()


class Ports(process_kit.Case):
    """BL-41: jobs with defaults on one machine don't collide; a busy port is named."""
    # The ways to give a port: to a job of one node, which never joins, and of several, which may.
    WHERE = (["--master-port=%d"],
             ["--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", "--master-port=%d"],
             ["--nnodes=1:2", "--rdzv-endpoint=127.0.0.1:%d"])

    @staticmethod
    def named(words, port):
        return [word.replace("%d", str(port)) for word in words]

    def check(self, job):
        """Its two workers are a world of their own; their port."""
        self.assert_ends(job, 0)
        lines = {tuple(line.split()) for line in job.out.splitlines()}
        self.assertEqual(len(lines), 1, job.out)
        port, world_size, run_id = lines.pop()
        self.assertEqual(world_size, "2")
        self.assertNotEqual(int(port), 29500)
        return port, run_id

    def test_bl41_pairs_of_jobs_with_defaults(self):
        run_ids = set()
        for _ in range(PAIRS):
            pair = [self.start("run", *SHOW) for _ in range(2)]
            ports = [self.check(job) for job in pair]
            self.assertNotEqual(ports[0][0], ports[1][0])
            run_ids.update(run_id for _, run_id in ports)
        self.assertEqual(len(run_ids), 2 * PAIRS)

    def test_bl41_many_jobs_at_once(self):
        for words in (["run"], ["run", "--standalone"], ["run", "--nnodes=1"],
                      ["run", "--rdzv-backend=c10d"]):
            with self.subTest(words=words):
                jobs = [self.start(*words, *SHOW) for _ in range(8)]
                for job in jobs:
                    self.check(job)

    def test_bl41_a_busy_port_is_named_with_its_holder(self):
        with Holder(b"220 mail\r\n") as holder:
            for words in self.WHERE:
                with self.subTest(words=words):
                    process = self.run_to_end("run", *self.named(words, holder.port),
                                              "--no-python", "true")
                    self.assert_ends(process, 69, "port %d" % holder.port,
                                     "process %d (" % os.getpid())
                    self.assertEqual(process.err.count("\n"), 1, process.err)
            process = self.run_to_end("rendezvous", "--listen=127.0.0.1:%d" % holder.port)
            self.assert_ends(process, 69, "port %d" % holder.port, "process %d (" % os.getpid())

    def test_bl41_a_holder_that_says_nothing_is_named_and_waited_for_no_longer_than_asked(self):
        # It may be a rendezvous that stands still for a moment.
        with Holder(b"") as holder:
            for words in self.WHERE[1:]:
                with self.subTest(words=words):
                    process = self.start("run", *self.named(words, holder.port),
                                         "--rdzv-conf=join_timeout=3", "--no-python", "true")
                    process.wait_for_output("port %d" % holder.port)
                    self.assertIn("process %d (" % os.getpid(), process.err)
                    self.assert_ends(process, 69)

    def test_bl41_a_job_with_a_given_port_does_not_join_another(self):
        port = process_kit.free_port()
        first = self.start("run", "--master-port=%d" % port, "--no-python", "sh", "-c",
                           "echo up $WORLD_SIZE; until [ -e finish ]; do sleep 0.05; done")
        first.wait_for_output("up 1")
        second = self.run_to_end("run", "--master-port=%d" % port, "--no-python", "echo", "ran")
        self.assert_ends(second, 69, "port %d" % port)
        self.assertEqual(second.out, "")
        self.write("finish", "")
        self.assert_ends(first, 0)


if __name__ == "__main__":
    process_kit.main()
