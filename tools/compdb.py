#!/usr/bin/env python3
"""Writes compile_commands.json from `bazel aquery` (downloads nothing)."""
import json, os, subprocess, sys
def bazel(*a):
    return subprocess.run(["bazel", *a], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
root = bazel("info", "execution_root").strip()
ws = bazel("info", "workspace").strip()
actions = json.loads(bazel("aquery", "--output=jsonproto", 'mnemonic("CppCompile", %s)' % (sys.argv[1] if len(sys.argv) > 1 else "//..."))).get("actions", [])
out = []
for a in actions:
    args = [x for x in a["arguments"] if x != "-fno-canonical-system-headers"]  # clang does not know it
    src = args[args.index("-c") + 1]
    if src.startswith(("external/", "bazel-out/")):
        continue
    out.append({"directory": root, "file": os.path.join(ws, src), "arguments": args})
json.dump(out, open(os.path.join(ws, "compile_commands.json"), "w"), indent=1)
print(len(out), "commands")
