#!/usr/bin/python3
"""The rules of the tree that a script can see: sizes, layers, words banned in cores, names of files.

  check_tree.py      prints each breach as FILE:LINE: what, and ends with 1 if there is one

Each list below is a rule with its reason; an exception is a line in EXCEPTIONS with its own.
"""
import os
import re
import subprocess
import sys

# Past a stop a file is split by decision, not by length.
SIZE_STOPS = [("_test.cc", 600), (".h", 250), (".cc", 500), (".cu", 500), (".py", 500), (".bzl", 500),
              (".sh", 300)]

# Folder -> folders whose headers it may include, besides its own and the standard library's. The
# longest matching folder counts. "*" is anything.
LAYERS = {
    "base": [],
    "proto": ["base"],
    "rendezvous/core": ["base"],
    "rendezvous/server": ["base", "proto", "rendezvous/core"],
    "rendezvous/client": ["base", "proto"],
    "agent/core": ["base"],
    "agent/guardian": ["base"],
    "agent/process": ["base", "agent/guardian"],
    "agent/server": ["base", "agent/core", "rendezvous/client"],
    "agent/torch_store": ["base", "agent/server"],
    "agent": ["base", "agent/core", "agent/guardian", "agent/process", "agent/server",
              "agent/torch_store", "rendezvous/client"],
    "launcher": ["base", "agent", "agent/core", "agent/guardian", "agent/process", "agent/torch_store",
                 "rendezvous/client", "rendezvous/server", "rendezvous/core"],
    "worker_sdk/context": ["base"],
    "worker_sdk/collectives": ["base", "worker_sdk/context"],
    "worker_sdk/ddp": ["base", "worker_sdk/context", "worker_sdk/collectives"],
    "worker_sdk/data": ["base", "worker_sdk/context"],
    # A checkpoint holds the sampler's position.
    "worker_sdk/checkpoint": ["base", "worker_sdk/context", "worker_sdk/collectives", "worker_sdk/ddp",
                              "worker_sdk/data"],
    "worker_sdk/elastic": ["base", "worker_sdk/context", "worker_sdk/collectives", "worker_sdk/ddp",
                           "worker_sdk/checkpoint", "worker_sdk/data"],
    "worker_sdk": ["base", "worker_sdk/context", "worker_sdk/collectives", "worker_sdk/ddp",
                   "worker_sdk/checkpoint", "worker_sdk/data", "worker_sdk/elastic"],
    "examples": ["worker_sdk"],
    "tests": ["*"],
    "tools": [],
}

# A test, or what several tests share (_test_kit.h), stands beside its file and may use the fakes of other rooms, so only its own layer's rule
# about who must not be known at all holds: nothing includes these.
NOBODY_INCLUDES = ("launcher/", "tests/", "examples/")

# A core has no clock, threads, chance, environment, network or log.
BANNED_IN_CORES = {
    r"\bNow\(": "reads a clock; time is an argument",
    r"\bsleep": "waits",
    r"\brand\b|\brandom_device\b|\bgetrandom\b|base/entropy\.h": "takes a chance; ids are arguments",
    r"\bgetenv\b": "reads the environment",
    r"\bgrpc|\.pb\.h": "knows the wire",
    r"\bspdlog\b": "writes a log",
    r"\bstd::thread\b|\bstd::mutex\b|base/mutex\.h": "has threads",
    r"#include <sys/|#include <unistd\.h>": "calls the system",
}

# Libraries that must not get into a user's process.
BANNED_IN_SDK = {r"\babsl/|\bgrpc|\.pb\.h|google/protobuf|\bspdlog\b": "isn't the standard library"}

# In pieces, so that a search for such marks doesn't find this line.
OPEN_END = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b(?!\(#\d+\))")

NAMES_NOT_FOUND = re.compile(r"(manager|handler|helper|util|utils|common|impl|info)(_test)?\.(h|cc|py)$")

EXCEPTIONS = {
    # (file, rule): reason
}


def tracked():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    return [f for f in out.splitlines() if os.path.isfile(f)]


def folder_of(path, table):
    folder = os.path.dirname(path)
    while folder and folder not in table:
        folder = os.path.dirname(folder)
    return folder


def check_size(path, lines):
    for ending, stop in SIZE_STOPS:
        if path.endswith(ending):
            if len(lines) > stop:
                yield len(lines), "size", "%d lines, the stop is %d: split it by decision" % (len(lines), stop)
            return


def check_layers(path, lines):
    if not path.endswith((".h", ".cc", ".cu")):
        return
    own = folder_of(path, LAYERS)
    if not own:
        return
    is_test = path.endswith(("_test.cc", "_test_kit.h"))
    for number, line in enumerate(lines, 1):
        found = re.match(r'#include "([^"]+)"', line)
        if not found or "/" not in found.group(1):
            continue
        target = found.group(1)
        if not os.path.dirname(target) or target.endswith((".pb.h",)):
            if target.endswith(".pb.h") and own not in ("proto", "rendezvous/server", "rendezvous/client", "tests"):
                yield number, "layer", "%s may not know the wire (%s)" % (own, target)
            continue
        top = folder_of(target, LAYERS)
        if not top or top == own or "*" in LAYERS[own]:
            continue
        if target.startswith(NOBODY_INCLUDES) and not path.startswith(target.split("/")[0] + "/"):
            yield number, "layer", "nothing includes %s" % target
        elif not is_test and top not in LAYERS[own]:
            yield number, "layer", "%s may not include %s" % (own, target)


def check_words(path, lines):
    rules = {}
    if re.match(r"(rendezvous|agent)/core/.*\.(h|cc)$", path) and not path.endswith("_test.cc"):
        rules = BANNED_IN_CORES
    elif re.match(r"(worker_sdk|base)/.*\.(h|cc)$", path):
        rules = BANNED_IN_SDK
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        for pattern, why in rules.items():
            if re.search(pattern, code):
                yield number, "word", "'%s' %s" % (code.strip()[:60], why)
        if path.endswith("_test.cc") and re.search(r"sleep_for|SleepFor|\busleep\(|[^_]sleep\(", code):
            yield number, "sleep", "a test waits for an event with a deadline, it doesn't sleep"
        if path.endswith((".h", ".cc", ".cu", ".py", ".sh")) and OPEN_END.search(line):
            yield number, "open end", "name the issue that closes it, as (#12) behind the mark"


def check_headers(path, lines):
    if not path.endswith(".h"):
        return
    guard = "MUSTER_" + re.sub(r"[/.]", "_", path).upper() + "_"
    if not any(line.strip() == "#ifndef " + guard for line in lines):
        yield 1, "guard", "the include guard must be " + guard
    if not lines or not lines[0].startswith("//"):
        yield 1, "comment", "a header opens with what the thing is for"


def check_build(path, lines):
    if os.path.basename(path) != "BUILD" or path.startswith("third_party"):
        return
    for number, line in enumerate(lines, 1):
        if re.search(r"\bglob\(", line.split("#")[0]):
            yield number, "glob", "name the files: one target per file pair"


def names_of_tests(path, text):
    """Names of the classes (suites) and of the tests, as Class.method, in a test's source."""
    if path.endswith(".py"):
        names = set()
        for line in text.splitlines():
            found = re.match(r"(?:class (\w+)|    def (test\w*))\b", line)
            if found and found.group(1):
                names.add(current := found.group(1))
            elif found:
                names.add("%s.%s" % (current, found.group(2)))
        return names
    found = re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE)
    return {suite for suite, _ in found} | {"%s.%s" % pair for pair in found}


# Which test covers which case from the field.
CASES = "tests/CASES.md"


def check_cases(path, lines):
    if path != CASES:
        # A test that has a case's id in its name (test_bl07_...) is listed there.
        ids = {case for line in lines for case in re.findall(r"bl(\d\d)_", line)
               if re.match(r"\s+def test_bl\d\d_", line)}
        if ids:
            with open(CASES, encoding="utf-8") as f:
                listed = {line[5:7]: line for line in f if line.startswith("| BL-")}
            for case in sorted(ids):
                if "`%s: " % os.path.basename(path) not in listed.get(case, ""):
                    yield 1, "case", "its tests of BL-%s aren't listed in %s" % (case, CASES)
        return
    for number, line in enumerate(lines, 1):
        if not line.startswith("| BL-"):
            continue
        named = re.findall(r"`([\w./]+): (\w+(?:\.\w+)?)`", line.split("|")[3])
        if not named:
            yield number, "case", "no test is named"
        for file, test in named:
            source = file if "/" in file else "tests/integration/" + file
            if not os.path.isfile(source):
                yield number, "case", "there is no %s" % source
                continue
            with open(source, encoding="utf-8") as f:
                if test not in names_of_tests(source, f.read()):
                    yield number, "case", "%s has no test %s" % (source, test)
            folder, name = os.path.split(source)
            with open(os.path.join(folder, "BUILD"), encoding="utf-8") as f:
                if '"%s"' % name not in f.read():
                    yield number, "case", "%s/BUILD doesn't run %s" % (folder, name)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    breaches = 0
    files = tracked()
    for path in files:
        try:
            with open(path, encoding="utf-8") as f:
                lines = f.read().splitlines()
        except UnicodeDecodeError:
            continue
        found = list(check_size(path, lines)) + list(check_layers(path, lines)) + \
            list(check_words(path, lines)) + list(check_headers(path, lines)) + list(check_build(path, lines)) + \
            list(check_cases(path, lines))
        if NAMES_NOT_FOUND.search(path):
            found.append((1, "name", "this word is where a name was not found"))
        for number, rule, what in found:
            if (path, rule) not in EXCEPTIONS:
                print("%s:%d: %s" % (path, number, what))
                breaches += 1
    print("check_tree: %d files, %d breaches" % (len(files), breaches))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
