#!/usr/bin/python3
"""Stands in for Bazel's own (Java, downloaded) coverage merger: gcov JSON -> lcov."""
import gzip
import json
import os
import sys

args = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--") and "=" in a)
lines = {}  # file -> {line: hits}
if "coverage_dir" in args:
    for root, _, names in os.walk(args["coverage_dir"]):
        for name in names:
            path = os.path.join(root, name)
            if name.endswith(".gcov.json.gz"):
                docs = [json.load(gzip.open(path))]
            elif name == "_cc_coverage.gcov":
                docs = [json.loads(l) for l in open(path) if l.startswith("{")]
            else:
                continue
            for doc in docs:
                for f in doc["files"]:
                    hits = lines.setdefault(f["file"], {})
                    for l in f["lines"]:
                        hits[l["line_number"]] = hits.get(l["line_number"], 0) + l["count"]
if "reports_file" in args:  # the combined report of all tests
    for dat in open(args["reports_file"]).read().split():
        current = None
        for l in open(dat):
            if l.startswith("SF:"):
                current = lines.setdefault(l[3:].strip(), {})
            elif l.startswith("DA:"):
                n, c = map(int, l[3:].split(",")[:2])
                current[n] = current.get(n, 0) + c
with open(args["output_file"], "w") as out:
    for name, hits in sorted(lines.items()):
        if name.startswith("/"):
            continue  # system headers
        out.write("SF:%s\n" % name)
        for n, c in sorted(hits.items()):
            out.write("DA:%d,%d\n" % (n, c))
        out.write("LH:%d\nLF:%d\nend_of_record\n" % (sum(c > 0 for c in hits.values()), len(hits)))
