"""The table, part 3: how workers end, and what becomes of the launcher."""
import signal

from parity_case import ENVIRONMENT, ERROR_FILE, EXIT, LOGS, NOTES, SUMMARY, Case, Other

TWO = ("--nproc-per-node=2",)
ONE_FAILS = "all_up()\nif RANK == 1: sys.exit(%d)\nhold()"


def ends(name, program, code, *facts, options=(), **more):
    return Case(name, options=options, program=program, code=code, facts=facts, **more)


CODES = (
    ends("exit_0", "say('done'); sys.exit(0)", 0),
    ends("exit_0_all_of_three", "say('done')", 0, options=("--nproc-per-node=3",)),
    ends("exit_1", "sys.exit(1)", 1, SUMMARY),
    ends("exit_3", "sys.exit(3)", 3, SUMMARY),
    ends("exit_255", "sys.exit(255)", 255, SUMMARY),
    ends("exit_256_is_0", "os._exit(256 & 255)", 0),
    ends("sys_exit_with_words", "sys.exit('no data')", 1, SUMMARY, has_last_words=True),
    ends("an_exception", "raise ValueError('wrong shape')", 1, SUMMARY, has_last_words=True),
    ends("a_syntax_error", "def (", 1, SUMMARY, has_last_words=True),
    ends("an_import_error", "import no_such_module", 1),
    ends("os_exit_without_flush", "say('said'); os._exit(4)", 4),
    ends("one_of_two_fails", ONE_FAILS % 5, 5, SUMMARY, options=TWO),
    ends("rank_0_fails", "all_up()\nif RANK == 0: sys.exit(6)\nhold()", 6, SUMMARY, options=TWO),
    ends("one_fails_after_others_are_done", "all_up()\nif RANK == 1: wait_mark('done', 0); sys.exit(7)\nmark('done')",
         7, options=TWO),
    ends("the_others_get_sigterm", "all_up()\nif RANK == 1: wait_mark('ready', 0); sys.exit(2)\n"
         "leave_on(signal.SIGTERM)\nhold()", 2, NOTES, options=TWO),
    ends("missing_script", "", 127, command=("no_such.py",)),
    ends("missing_module", "", 1, options=("-m",), command=("no.such.module",)),
    ends("missing_program", "", 127, options=("--no-python",), command=("/no/such",)),
    ends("missing_on_the_path", "", 127, options=("--no-python",), command=("no-such-program",)),
    ends("not_executable", "", 126, options=("--no-python",), command=("/etc/passwd",)),
    ends("a_folder_as_the_program", "", 126, options=("--no-python",), command=("/etc",)),
    ends("a_false_program", "", 1, options=("--no-python",), command=("false",)),
    ends("a_true_program", "", 0, options=("--no-python", *TWO), command=("true",)),
)

SIGNALS = tuple(
    ends("ended_by_%s" % name.lower(), "os.kill(os.getpid(), signal.SIG%s)\nhold()" % name,
         128 + getattr(signal, "SIG" + name), SUMMARY)
    for name in ("KILL", "SEGV", "ABRT", "TERM", "USR1")) + (
    ends("one_is_killed", "all_up()\nif RANK == 1: os.kill(os.getpid(), 9)\nhold()", 137, SUMMARY, options=TWO),
    ends("a_rank_is_killed_from_outside", "mark('ready')\nhold()", 137, options=TWO, strike=(1, signal.SIGKILL),
         ready=2),
) + tuple(
    ends("launcher_gets_%s" % name.lower(),
         "leave_on(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)\nhold()",
         128 + getattr(signal, "SIG" + name), NOTES, options=TWO,
         strike=("launcher", getattr(signal, "SIG" + name)), ready=2)
    for name in ("TERM", "INT", "HUP", "QUIT")) + (
    ends("a_deaf_worker_is_killed", "signal.signal(signal.SIGTERM, signal.SIG_IGN); mark('ready')\n"
         "all_up()\nif RANK == 1: wait_mark('ready', 0); sys.exit(2)\nhold()", 2, options=TWO,
         environment=(("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "1"),)),
    ends("usr1_to_the_launcher", "leave_on(signal.SIGUSR1)\nhold()", 0, strike=("launcher", signal.SIGUSR1), ready=1,
         others=(Other(EXIT, ["ok"], "SIGUSR1 and SIGUSR2 are passed on to the workers, who know what they mean; "
                                     "torchrun ends by them at once and leaves its workers behind"),)),
)

RESTARTS = (
    ends("a_restart_that_helps", "if ATTEMPT == 0: all_up(); sys.exit(3)\nsay('attempt %d' % ATTEMPT)", 0, ENVIRONMENT,
         options=("--max-restarts=1", *TWO)),
    ends("restarts_are_used_up", "say('attempt %d' % ATTEMPT); all_up(); mark('said')\n"
         "[wait_mark('said', r) for r in range(WORLD)]; sys.exit(3)", 3, options=("--max-restarts=2", *TWO)),
    ends("restarts_of_one", "say('attempt %d' % ATTEMPT); sys.exit(ATTEMPT < 2)", 0, options=("--max-restarts=3",)),
    ends("a_restart_after_a_signal", "if ATTEMPT == 0: os.kill(os.getpid(), 9)\nsay('again')", 0,
         options=("--max-restarts=1",)),
    ends("all_start_again", "all_up()\nif ATTEMPT == 0 and RANK == 1: sys.exit(3)\nif ATTEMPT == 0: hold()\n"
         "say('again')", 0, options=("--max-restarts=1", "--nproc-per-node=3")),
    ends("restarts_in_the_elastic_layout", "say('attempt %d' % ATTEMPT); all_up()\nsys.exit(ATTEMPT == 0)", 0,
         ENVIRONMENT, options=("--max-restarts=1", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}",
                               "--rdzv-id=r")),
    ends("logs_of_each_attempt", "say('attempt %d' % ATTEMPT); sys.exit(3)", 3, LOGS,
         options=("--max-restarts=1", "--tee=3", "--log-dir={logs}")),
    ends("two_nodes_restart_together", "all_up()\nsys.exit(ATTEMPT == 0)\n", 0, nodes=2 * ((
        "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=job",
        "--max-restarts=2"),)),
    ends("one_node_of_two_fails", "all_up()\nif RANK == 1: sys.exit(4)\nleave_on(signal.SIGTERM)\nhold()", 4,
         nodes=tuple(("--nnodes=2", "--node-rank=%d" % i, "--master-addr=127.0.0.1", "--master-port={port}")
                     for i in range(2))),
)

RECORD = """
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise RuntimeError("wrong shape in %d" % RANK)
main()
"""
ERRORS = (
    ends("an_error_file", "write_error('wrong shape'); sys.exit(1)", 1, SUMMARY),
    ends("an_error_file_and_a_code", "write_error('wrong shape'); sys.exit(9)", 9, SUMMARY),
    ends("an_error_file_of_one_of_two", "all_up()\nif RANK == 1: write_error('it was me'); sys.exit(9)\nhold()", 9,
         SUMMARY, options=TWO),
    ends("an_error_file_is_kept", "write_error('wrong shape'); sys.exit(1)", 1, LOGS, options=("--log-dir={logs}",)),
    ends("an_error_file_and_a_signal", "write_error('about to go'); os.kill(os.getpid(), 9); hold()", 137, SUMMARY),
    ends("an_error_file_that_is_no_json", "open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write('no json'); "
         "sys.exit(1)", 1),
    ends("an_error_file_of_text", "open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write("
         "json.dumps({'message': 'text alone', 'timestamp': '1700000000'})); sys.exit(1)", 1, SUMMARY),
    ends("an_error_file_in_a_good_end", "write_error('never mind')", 0),
    ends("the_launchers_own_error_file", "write_error('wrong shape'); sys.exit(8)", 8, ERROR_FILE,
         environment=(("TORCHELASTIC_ERROR_FILE", "{work}/own_error.json"),)),
    ends("the_launchers_own_error_file_of_two", "all_up()\nif RANK == 1: write_error('by rank 1'); sys.exit(8)\n"
         "hold()", 8, ERROR_FILE, options=TWO,
         environment=(("TORCHELASTIC_ERROR_FILE", "{work}/own_error.json"),)),
    ends("no_own_error_file_without_the_workers", "sys.exit(8)", 8, ERROR_FILE,
         environment=(("TORCHELASTIC_ERROR_FILE", "{work}/own_error.json"),)),
    ends("record_writes_what_is_shown", RECORD, 1, SUMMARY, ERROR_FILE, needs_torch=True, has_last_words=True,
         environment=(("TORCHELASTIC_ERROR_FILE", "{work}/own_error.json"),)),
)

INNER = """
import subprocess
command = json.loads(os.environ['PARITY_LAUNCHER'])
dash = '_' if 'shim' in command[-1] else '-'
inner = os.path.join(OUT, 'inner')
os.makedirs(inner, exist_ok=True)
environment = dict(os.environ, PARITY_OUT=inner)
end = subprocess.run(command + ['--rdzv%sbackend=c10d' % dash, '--rdzv%sendpoint=localhost:0' % dash,
                                '--nproc%sper%snode=2' % (dash, dash), 'inner.py'], env=environment)
"""
NESTED = (
    ends("nested", INNER + "say('inner ended with %d' % end.returncode)", 0,
         files=(("inner.py", "from probe import *\nsay('inner rank %d of %d' % (RANK, WORLD))\n"),)),
    ends("nested_error_files", INNER + "sys.exit(end.returncode)", 8, ERROR_FILE, SUMMARY,
         files=(("inner.py", "from probe import *\nall_up()\nif RANK == 1: write_error('deep below'); sys.exit(8)\n"
                             "hold()\n"),),
         environment=(("TORCHELASTIC_ERROR_FILE", "{work}/own_error.json"),)),
)

CASES = CODES + SIGNALS + RESTARTS + ERRORS + NESTED
