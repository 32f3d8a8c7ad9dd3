#!/usr/bin/python3
"""Writes compile_commands.json for clangd and clang-tidy, from `bazel aquery`; builds nothing.

  compdb.py [TARGET_PATTERN]     default //...
"""
import json
import os
import subprocess
import sys


def bazel(*args):
    return subprocess.run(["bazel", *args], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else "//..."
    root = bazel("info", "execution_root").strip()
    workspace = bazel("info", "workspace").strip()
    query = 'mnemonic("CppCompile", %s)' % pattern
    commands = []
    for action in json.loads(bazel("aquery", "--output=jsonproto", query)).get("actions", []):
        # clang doesn't know this flag of gcc's.
        arguments = [a for a in action["arguments"] if a != "-fno-canonical-system-headers"]
        source = arguments[arguments.index("-c") + 1]
        if not source.startswith(("external/", "bazel-out/")):
            commands.append({"directory": root, "file": os.path.join(workspace, source),
                             "arguments": arguments})
    with open(os.path.join(workspace, "compile_commands.json"), "w") as out:
        json.dump(commands, out, indent=1)
    print("compdb: %d commands" % len(commands))


if __name__ == "__main__":
    main()
