#!/usr/bin/python3
"""Launch and exit of 1, 2, 4 and 8 workers that do nothing, and that import torch; and how fast 8 workers' output
gets to the console and into files. Muster, a bare fork and exec, torchrun, mpirun.

All launchers take turns within each run, so that a busy moment of the machine hits them alike.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import launchers
import results

TRUE = ["/bin/true"]
TORCH = ["/usr/bin/python3", os.path.join(launchers.HERE, "import_torch.py")]
WRITER = ["/usr/bin/python3", "-S", os.path.join(launchers.HERE, "log_writer.py")]
WRITERS = 8
# Of DESIGN: lines are whole and in order at this rate.
WANTED_MB_PER_S = 100


def times(names, n, command, runs):
    """{launcher: seconds of each run}; the first launch of each, which fills caches, isn't counted."""
    samples = {name: [] for name in names}
    for run in range(runs + 1):
        for name in names:
            took = launchers.seconds(name, n, command[1:] if name == "muster_preload" else command)
            if run > 0:
                samples[name].append(took)
    samples["limit"] = samples.pop("floor")
    return samples


def log_options(name, folder):
    if name == "mpirun":
        return ["--tag-output", "--output-filename", folder]
    return ["--tee=3", ("--log_dir=" if name == "torchrun" else "--log-dir=") + folder]


def bytes_in(folder, name):
    return sum(os.path.getsize(os.path.join(where, file)) for where, _, files in os.walk(folder)
               for file in files if file == name)


def rate(name, megabytes):
    """MB/s from the start of the launcher to its end, of output that is tee'd to files and console."""
    folder = tempfile.mkdtemp(prefix="muster_bench_log_")
    command = WRITER + [str(megabytes)]
    try:
        if name == "floor":
            # The limit: the same writers into one file, with nobody between.
            with open(os.path.join(folder, "stdout"), "wb") as file:
                took = launchers.seconds(name, WRITERS, command, stdout=file)
        else:
            took = launchers.seconds(name, WRITERS, command, options=log_options(name, folder),
                                     stdout=subprocess.DEVNULL)
        there = bytes_in(folder, "stdout" if name in ("floor", "mpirun") else "stdout.log")
        # mpirun tags the lines in its files too.
        if there < WRITERS * megabytes * 1000000:
            sys.exit("bench: %s kept %d of %d MB" % (name, there // 1000000, WRITERS * megabytes))
        return WRITERS * megabytes / took
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def log_row(names, megabytes, runs):
    samples = {name: [] for name in names}
    for _ in range(runs):
        for name in names:
            samples[name].append(rate(name, megabytes))
    samples["limit"] = samples.pop("floor")
    return results.row("output of %d workers, tee'd" % WRITERS, "MB/s", samples, budget=WANTED_MB_PER_S,
                       better="higher")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 runs in place of 7, 1 of what takes long")
    parser.add_argument("--runs", type=int, help="how many runs")
    parser.add_argument("--workers", default="1,2,4,8", help="comma list of worker counts")
    parser.add_argument("--cases", default="true,torch,log", help="comma list of: true, torch, log")
    args = parser.parse_args()
    runs = args.runs or (3 if args.quick else 7)
    long_runs = args.runs or (1 if args.quick else 3)
    cases = args.cases.split(",")
    if set(cases) - {"true", "torch", "log"}:
        parser.error("--cases is a comma list of: true, torch, log")

    names = launchers.here(["floor", "muster", "mpirun", "torchrun", "torchrun_newest"])
    counts = [int(x) for x in args.workers.split(",")]
    rows = []
    if "true" in cases:
        for n in counts:
            samples = times(names, n, TRUE, runs)
            middle = results.row("", "s", samples)["limit"]
            rows.append(results.row("%d workers, true" % n, "s", samples, budget=2 * middle + 0.010))
    if "torch" in cases and subprocess.run(TORCH, stderr=subprocess.DEVNULL).returncode == 0:
        rows += [results.row("%d workers, import torch" % n, "s", times(names + ["muster_preload"], n, TORCH, long_runs))
                 for n in counts]
    if "log" in cases:
        rows.append(log_row(names, 5 if args.quick else 25, long_runs))
    results.show("launch", rows)


if __name__ == "__main__":
    main()
