"""Where muster answers otherwise than torchrun on purpose, in more than one case: a rule each, with its reason.

A rule takes torchrun's answers and makes of them what muster's have to be. A rule that changes nothing in any
case, and one whose answer muster doesn't give, are faults: the list can't rot. What concerns a single case stands
with the case (parity_case.Other); what muster still has to learn is in gaps.py.
"""
import copy
import dataclasses
import re
import typing


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    why: str
    # (case, answers) -> None; changes the answers.
    apply: typing.Callable
    # Which torchrun's answers it is about.
    versions: typing.Callable = lambda version: True


def environments(answers):
    """Each worker's variables, and those of all."""
    return [v for v in answers.get("environment", {}).values() if v]


def newer_name_for_nccl(case, answers):
    for variables in environments(answers):
        if "NCCL_ASYNC_ERROR_HANDLING" in variables:
            given = dict(case.environment)
            value = variables.pop("NCCL_ASYNC_ERROR_HANDLING")
            variables["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = given.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
            if "NCCL_ASYNC_ERROR_HANDLING" in given:
                variables["NCCL_ASYNC_ERROR_HANDLING"] = value


def is_plain(options):
    """One node, nothing said of where to meet."""
    return not any(re.match(r"--(master-port|rdzv-|nnodes=[02-9]|nnodes=1:[2-9])", word) for word in options)


def plain_is_standalone(case, answers):
    given = dict(case.environment)
    if not is_plain(case.options) or "PET_MASTER_PORT" in given or "PET_RDZV_ENDPOINT" in given:
        return
    for variables in environments(answers):
        if variables.get("MASTER_PORT") == "29500":
            variables["MASTER_PORT"] = "free"
            variables["TORCHELASTIC_RUN_ID"] = "random"
    if "logs" in answers:
        answers["logs"] = {re.sub(r"(^|/)none_", r"\1random_", key): value for key, value in answers["logs"].items()}


def named_when_there_are_several(case, answers):
    # What has a prefix already, by --tee, keeps it.
    ranks = {key.split(".")[1] for key in answers["ranks"]}
    if "prefix" in answers and len(ranks) > 1:
        for rank, prefixes in answers["prefix"].items():
            answers["prefix"][rank] = sorted({p or "[default%s]:" % rank for p in prefixes})


def in_summaries(change):
    """A rule for the lines of each launcher's summary: change(case, lines) -> lines."""
    def apply(case, answers):
        if "summary" in answers:
            answers["summary"] = [change(case, lines) for lines in answers["summary"]]
    return apply


# What a process does to itself; other signals come from somewhere.
OWN_FAULTS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


def sender_unknown(case, lines):
    def change(line):
        found = re.match(r"  traceback : Signal \d+ \((\w+)\) received by PID \*$", line)
        return line + ", sent from outside muster, the sender is unknown" if found and found[1] not in OWN_FAULTS \
            else line
    return [change(line) for line in lines]


def signal_once(case, lines):
    return [re.sub(r"^(  exitcode  : -\d+ \(pid: \*\))  \(SIG\w+\)$", r"\1", line) for line in lines]


def only_failed_ones(case, lines):
    """Without those that had to go because of the first failure."""
    if "Failures:" not in lines:
        return lines
    start, end = lines.index("Failures:") + 1, lines.index("Root Cause (first observed failure):") - 1
    if not any("received by PID" in line and "SIGTERM" in line for line in lines[start:end]):
        return lines
    return lines[:start] + ["  <NO_OTHER_FAILURES>"] + lines[end:]


def error_file_not_kept(case, lines):
    if any(word.startswith("--log-dir") for word in case.options):
        return lines
    return [re.sub(r"^(  error_file: )\.\.\./.*", r"\1<N/A>", line) for line in lines]


def last_words(case, lines):
    if not case.has_last_words:
        return lines
    return lines[:-1] + ["  last lines of stderr:", "    ..."] + lines[-1:]


ELDER = dict(versions=lambda version: version < (2,))
NEWER = dict(versions=lambda version: version >= (2,))

RULES = (
    Rule("newer name for NCCL", "muster sets the variable that newer PyTorch reads; what was given passes as it is",
         newer_name_for_nccl, **ELDER),
    Rule("plain is standalone", "a plain start of one node takes a free port, as the newest torchrun does, so that two "
         "jobs on one machine never meet", plain_is_standalone, **ELDER),
    Rule("several workers are named", "with several workers a line of the console says whose it is, tee'd or not "
         "(--prefix=never: as torchrun)", named_when_there_are_several),
    Rule("signal once", "the name of the signal stands in the line below", in_summaries(signal_once), **NEWER),
    Rule("only failed ones", "workers that were stopped because another one failed haven't failed: how many there were "
         "is said apart", in_summaries(only_failed_ones), **NEWER),
    Rule("sender unknown", "a signal that muster didn't send is said to come from outside",
         in_summaries(sender_unknown)),
    Rule("error file not kept", "without --log-dir nothing is left in the temporary folder, so no path is named; "
         "what the file said is shown", in_summaries(error_file_not_kept)),
    Rule("last words", "the last lines of stderr say more than the address of a page on the web",
         in_summaries(last_words)),
)


def expected(case, answers, version, used=None):
    """What muster has to answer, as far as rules and the case itself say otherwise than torchrun."""
    wanted = copy.deepcopy(answers)
    for rule in RULES:
        if not rule.versions(version):
            continue
        before = copy.deepcopy(wanted)
        rule.apply(case, wanted)
        if used is not None and wanted != before:
            used.setdefault(rule.name, []).append(case.name)
    for other in case.others:
        wanted[other.fact] = other.ours
    return wanted
