"""From what a run left behind to facts that two launchers can be compared by: no paths, ports, pids, times.

    exit         per launcher: ok, failed
    ranks        ATTEMPT.RANK of every worker that ran
    environment  per worker: the variables that torchrun sets, and the names of others that were added; under "all"
                 what has one value for all
    argv, folder, input, notes    per worker
    stdout, stderr  per rank: the lines that it wrote, in order; under "?" what else was there (stdout alone)
    prefix       per rank: what stood before its lines
    logs         files below the log folder, with their lines
    error_file   the launcher's own TORCHELASTIC_ERROR_FILE, {work}/own_error.json
    summary      the failure summary, line by line
"""
import hashlib
import json
import os
import re

SET_BY_TORCHRUN = (
    "LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "LOCAL_WORLD_SIZE", "WORLD_SIZE",
    "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
    "TORCHELASTIC_SIGNALS_TO_HANDLE")
# The harness's own, and what no launcher is asked to keep: /bin/sh and Python set them.
NOT_COMPARED = re.compile(r"^(PARITY_|PYTHON|PET_|MUSTER_|PWD$|OLDPWD$|SHLVL$|_$|LC_|HOME$|PATH$|TMPDIR$)")
STANDARD = ("pid", "environment", "argv", "folder", "input", "leads_session", "path0", "line_by_line", "ignored")
LINE = re.compile(r"^(\[[^\]|]*\]: ?)?(\d+)\|(.*)$")
LONG = 60
INNER = "    ..."
UUID = re.compile(r"^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$")


class Plain:
    """Replaces what differs from run to run by names."""

    def __init__(self, raw):
        self.raw = raw

    def text(self, value):
        for name in ("logs", "work", "tmp"):
            value = value.replace(self.raw.words[name], "{%s}" % name)
        return value

    def variable(self, name, value):
        words = self.raw.words
        if name == "MASTER_PORT":
            return "{port}" if value == words["port"] else value if value == "29500" else "free"
        if name == "MASTER_ADDR":
            own = (os.uname().nodename, "localhost", "127.0.0.1", "::1")
            return "this machine" if value.split(".")[0] in own or value in own else value
        if name == "TORCHELASTIC_RUN_ID":
            return "random" if UUID.match(value) else value
        if name == "TORCHELASTIC_ERROR_FILE" and value:
            where = "{logs}" if value.startswith(words["logs"]) else "elsewhere"
            return where + "/.../" + "/".join(value.split("/")[-3:])
        return self.text(value)


def environment_of(worker, plain, given):
    own = worker["environment"]
    facts = {name: plain.variable(name, own[name]) for name in SET_BY_TORCHRUN if name in own}
    facts["others"] = sorted(name for name, value in own.items()
                             if name not in SET_BY_TORCHRUN and not NOT_COMPARED.match(name)
                             and given.get(name) != value)
    return facts


def common_first(environments):
    """{worker: facts} with what all have alike under "all"."""
    if not environments:
        return {}
    values = list(environments.values())
    common = {name: value for name, value in values[0].items() if all(v.get(name) == value for v in values)}
    own = {key: {n: v for n, v in facts.items() if n not in common} for key, facts in environments.items()}
    return {"all": common, **own}


def lines_by_rank(texts):
    """({rank: lines}, {rank: prefixes}, other lines)."""
    lines, prefixes, others = {}, {}, []
    for text in texts:
        for line in text.decode(errors="backslashreplace").splitlines():
            found = LINE.match(line)
            if not found:
                others.append(line)
                continue
            lines.setdefault(found[2], []).append(found[3])
            prefixes.setdefault(found[2], set()).add((found[1] or "").rstrip())
    return lines, {rank: sorted(found) for rank, found in prefixes.items()}, others


def plain_log_name(path):
    """RUN-ID_RANDOM/attempt_N/...: the random part has 8 letters of torchrun's, 6 of muster's."""
    parts = path.split("/")
    for i, part in enumerate(parts[1:]):
        found = re.match(r"(.*?)_([a-z0-9_]{8}|[A-Za-z0-9]{6})$", parts[i])
        if re.match(r"attempt_\d+$", part) and found:
            parts[i] = ("random" if UUID.match(found[1]) else found[1]) + "_*"
            break
    return "/".join(parts)


def log_files(raw, plain):
    found = {}
    for folder, _, names in os.walk(raw.words["logs"]):
        for name in names:
            if name == ".muster_run":
                continue  # ours alone, as docs/torchrun.md says
            path = os.path.join(folder, name)
            key = plain_log_name(os.path.relpath(path, raw.words["logs"]))
            with open(path, "rb") as file:
                data = file.read()
            lines = plain.text(data.decode(errors="backslashreplace")).split("\n")
            if name == "error.json":
                lines = sorted(json.loads(data))
            elif name.startswith("filtered_"):
                # Ranks come as they come.
                lines.sort()
            found[key] = lines
    return found


def of_this_run(text):
    """Without job, process and node."""
    return re.sub(r"\bnode \S+", "node *", re.sub(r"\bpid \d+", "pid *", re.sub(UUID.pattern[1:-1], "*", text)))


def own_error_file(raw):
    path = os.path.join(raw.words["work"], "own_error.json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        error = json.load(file)
    message = error.get("message")
    if not isinstance(message, dict):
        return {"message": message, "timestamp": type(error.get("timestamp")).__name__}
    extra = message.get("extraInfo", {})
    return {"message": of_this_run(message.get("message")), "keys": sorted(message), "extra": sorted(extra),
            "errorCode": message.get("errorCode"),
            "last line": [of_this_run(line) for line in extra.get("py_callstack", "").strip().splitlines()[-1:]],
            "timestamp": type(extra.get("timestamp")).__name__}


def summary_lines(text, plain):
    """What stands between each two lines of ===, with its values made plain."""
    lines = text.decode(errors="backslashreplace").splitlines()
    edges = [i for i, line in enumerate(lines) if re.match(r"^={5,}$", line)]
    out = []
    for line in [l for i in range(0, len(edges) - 1, 2) for l in lines[edges[i]:edges[i + 1] + 1]]:
        line = plain.text(line)
        line = re.sub(r"^([=-])\1{4,}$", r"\1\1\1\1\1", line)
        line = re.sub(r"^(  (?:time|host) +: ).*", r"\1*", line)
        line = re.sub(r"pid:? \d+", "pid: *", line)
        line = re.sub(r"PID \d+", "PID *", line)
        line = re.sub(r"^(  (?:error_file|log) *: )[{/].*/(attempt_\d+/\d+/\w+\.\w+)$", r"\1.../\2", line)
        line = re.sub(r"^(  error_file *: )/.*$", r"\1*", line)
        out.append(line.rstrip())
    return without_frames(out)


def without_frames(lines):
    """Of what is indented within a summary (frames of a traceback, words of a worker) only that it is there."""
    lines = [INNER if line.startswith("    ") else line for line in lines if line]
    return [line for i, line in enumerate(lines) if line != INNER or lines[i - 1] != INNER]


def shortened(value):
    """Long texts and lists by their size and a hash: equal exactly if they are equal."""
    if isinstance(value, dict):
        return {key: shortened(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(v) for v in value] if len(value) <= LONG else \
            shortened(value[:3]) + ["... %d in all, %s" % (len(value), digest(json.dumps(value)))]
    if isinstance(value, str) and len(value) > 4 * LONG:
        return value[:20] + "... %d in all, %s" % (len(value), digest(value))
    return value


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def facts_of(case, raw):
    """All facts that the case compares."""
    plain = Plain(raw)
    stdout, prefixes, others = lines_by_rank(raw.out)
    stderr, more_prefixes, _ = lines_by_rank(raw.err)
    if others:
        # Those of several ranks come as they come.
        stdout["?"] = sorted(plain.text(line) for line in others)
    for rank, found in more_prefixes.items():
        prefixes[rank] = sorted(set(prefixes.get(rank, [])) | set(found))

    def each(make):
        return {key: make(worker) for key, worker in sorted(raw.workers.items())}

    known = {
        "exit": lambda: ["never ended" if isinstance(c, str) else "ok" if c == 0 else "failed" for c in raw.codes],
        "ranks": lambda: sorted(raw.workers),
        "environment": lambda: common_first(each(lambda w: environment_of(w, plain, raw.environment))),
        "argv": lambda: each(lambda w: [plain.text(word) for word in w["argv"]]),
        "folder": lambda: each(lambda w: [plain.text(w["folder"]), plain.text(w["path0"]), w["line_by_line"]]),
        "input": lambda: each(lambda w: w["input"]),
        "notes": lambda: each(lambda w: {k: v for k, v in w.items() if k not in STANDARD}),
        "stdout": lambda: stdout,
        "stderr": lambda: stderr,
        "prefix": lambda: prefixes,
        "logs": lambda: log_files(raw, plain),
        "error_file": lambda: own_error_file(raw),
        "summary": lambda: [summary_lines(text, plain) for text in raw.err],
    }
    return {name: shortened(known[name]()) for name in case.all_facts()}
