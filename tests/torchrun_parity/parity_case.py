"""One line of the parity table: a small program, a command line, and what is compared.

A case is written once, with the spelling of the newest torchrun; `contenders.py` turns it into the command of
each launcher. What the launchers answer is a dict of facts by name (`facts.py`); a case lists where muster
deliberately answers otherwise, each with its reason.
"""
import dataclasses
import typing

# Names of facts; see facts.py.
EXIT, RANKS, ENVIRONMENT, ARGV, FOLDER, INPUT = "exit", "ranks", "environment", "argv", "folder", "input"
STDOUT, STDERR, PREFIX, LOGS, ERROR_FILE, SUMMARY = "stdout", "stderr", "prefix", "logs", "error_file", "summary"
NOTES = "notes"
SIMPLE = (EXIT, RANKS, STDOUT)


@dataclasses.dataclass(frozen=True)
class Other:
    """Where muster answers otherwise on purpose: the fact, its answer, the reason."""
    fact: str
    ours: typing.Any
    why: str


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    # Launcher options, as for the newest torchrun. In all words and variables {port} is a free port, {work} the
    # working folder, {logs} a folder for logs, {launcher} the launcher's own command (in programs: launcher()).
    options: tuple = ()
    # Source of train.py, below `from probe import *`.
    program: str = "say('here')"
    # What follows the options: program and its arguments.
    command: tuple = ("train.py",)
    environment: tuple = ()
    # What is compared, beside exit, ranks and stdout.
    facts: tuple = ()
    others: tuple = ()
    # More than one launcher: the options of each, in place of `options`.
    nodes: tuple = ()
    # Other files: (name, text).
    files: tuple = ()
    # Below the working folder: where the launcher is started.
    start_in: str = "."
    # A signal to the launcher, or to a rank, once all marked themselves ready: (whom, signal number).
    strike: tuple = ()
    # Standard input of the launcher; None: /dev/null.
    stdin: typing.Optional[bytes] = None
    # Facts that nobody compares: words for people.
    without: tuple = ()
    # Facts that torchrun answers otherwise from run to run; `others` says what muster does.
    unsteady: tuple = ()
    # The failed worker says something on stderr before it goes.
    has_last_words: bool = False
    # The exit code that muster's rules give, where it isn't 0; torchrun's is always 1.
    code: int = 0
    # The oldest torch whose launcher knows this.
    since: tuple = (1, 13)
    # The worker imports torch.
    needs_torch: bool = False
    # The ranks that are expected to say that they are ready before the strike.
    ready: int = 0

    def all_facts(self):
        return tuple(f for f in SIMPLE + tuple(f for f in self.facts if f not in SIMPLE) if f not in self.without)

    def launches(self):
        return self.nodes or (self.options,)
