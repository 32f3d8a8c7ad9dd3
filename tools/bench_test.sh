#!/usr/bin/env bash
# Tests tools/bench.sh: a signal ends it with 128 and its number, in whatever it is at, and all that it
# started with it. In a copy of tools/ whose steps only start processes and wait. And what the rows of
# training are made of: when a program reached its first line, and the parts of a measurement.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

mkdir -p "$work/tree" "$work/bin"
cp -r tools "$work/tree/tools"
cat >"$work/hold.py" <<'EOF'
# Writes its pid into $STARTED, then waits for ever; with `deaf` it ignores what asks it to end.
import os, signal, sys
if "deaf" in sys.argv:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
with open(os.environ["STARTED"], "a") as file:
    file.write("%d\n" % os.getpid())
while True:
    signal.pause()
EOF
# A benchmark of peers as they come: in sessions of their own, deaf, orphaned, stopped.
cat >"$work/peers.py" <<'EOF'
import os, signal, subprocess, sys, tempfile
hold = [sys.executable, os.environ["HOLD"]]
open(tempfile.mkdtemp() + "/log", "w").close()
subprocess.Popen(hold, start_new_session=True)
subprocess.Popen(hold + ["deaf"])
stopped = subprocess.Popen(hold, start_new_session=True)
stopped.send_signal(signal.SIGSTOP)
subprocess.run(["setsid", "sh", "-c", '"$@" & exit 0', "sh", *hold, "deaf"], check=True)
with open(os.environ["STARTED"], "a") as file:
    file.write("%d\n%d\n" % (os.getpid(), stopped.pid))
if "--ends=7" in sys.argv:
    sys.exit(7)
signal.pause()
EOF
cat >"$work/waits.sh" <<'EOF'
echo $$ >>"$STARTED"
/usr/bin/python3 "$HOLD" deaf &
/usr/bin/python3 "$HOLD" &
wait
EOF
cp "$work/peers.py" "$work/tree/tools/peers/launch.py"
export STARTED=$work/started HOLD=$work/hold.py TMPDIR=$work/tmp PATH=$work/bin:$PATH
mkdir "$TMPDIR"
step_that() { # NAME of the script, ends | waits
  { echo '#!/bin/sh'; [ "$2" = ends ] || cat "$work/waits.sh"; echo 'exit 0'; } >"$1"
  chmod +x "$1"
}

is_alive() { [ -d "/proc/$1" ] && ! grep -q '^State:.*[ZX] (' "/proc/$1/status" 2>/dev/null; }
wait_until_up() { # WHAT, how many processes
  local end=$((SECONDS + 60))
  until [ "$(grep -c . "$STARTED")" -ge "$2" ]; do
    [ "$SECONDS" -lt "$end" ] || { fail "waited in vain for $1"; return; }
    sleep 0.05
  done
}
expect_end() { # WHAT, expected exit code; bench.sh is $bench
  local rc=0 pid end=$((SECONDS + 60))
  while is_alive "$bench" && [ "$SECONDS" -lt "$end" ]; do sleep 0.05; done
  is_alive "$bench" && { fail "$1: it doesn't end"; kill -KILL "$bench"; }
  wait "$bench" || rc=$?
  [ "$rc" = "$2" ] || fail "$1: exit code $rc, expected $2: $(cat "$work/said")"
  while read -r pid; do
    is_alive "$pid" || continue
    fail "$1: process $pid is left"
    kill -KILL "$pid"
  done <"$STARTED"
  [ -z "$(ls -A "$TMPDIR")" ] || fail "$1: files are left: $(ls -A "$TMPDIR")"
}
# As from a shell at a terminal, where SIGINT isn't ignored.
start() { # options of the benchmark...
  : >"$STARTED"
  /usr/bin/python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$work/tree/tools/bench.sh" launch "$@" >"$work/said" 2>&1 &
  bench=$!
}
stopped_in() { # WHAT, how many processes it has then
  local signal
  for signal in TERM:143 INT:130; do
    start
    wait_until_up "$1" "$2"
    kill "-${signal%:*}" "$bench"
    expect_end "$1, SIG${signal%:*}" "${signal#*:}"
  done
}

step_that "$work/tree/tools/setup.sh" waits
step_that "$work/bin/bazel" ends
stopped_in "setup" 3
step_that "$work/tree/tools/setup.sh" ends
step_that "$work/bin/bazel" waits
stopped_in "build" 3
step_that "$work/bin/bazel" ends
stopped_in "peers" 5

start --ends=7
expect_end "a benchmark that leaves its peers" 7
printf '#!/bin/sh\necho broken; exit 3\n' >"$work/bin/bazel"
start
expect_end "a build that fails" 3
grep -q broken "$work/said" || fail "the build's words are not shown: $(cat "$work/said")"

# With first_line.py before it a program runs as it does alone, and its start is in the log.
mkdir "$work/program"
echo 'WORD = "beside"' >"$work/program/beside.py"
cat >"$work/program/main.py" <<'EOF'
import sys, beside
print(__name__, sys.argv, sys.path[0], __file__, beside.WORD)
sys.exit(9)
EOF
export EVENT_LOG=$work/events PYTHONDONTWRITEBYTECODE=1 RANK=1 WORLD_SIZE=2
now() { /usr/bin/python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'; }
rc=0
alone=$(/usr/bin/python3 "$work/program/main.py" a 'b c') || rc=$?
before=$(now)
code=0
behind=$(/usr/bin/python3 tools/peers/first_line.py "$work/program/main.py" a 'b c') || code=$?
after=$(now)
[ "$code $behind" = "$rc $alone" ] || fail "behind first_line.py: '$code $behind', alone '$rc $alone'"
read -r time _ _ rank world _ <"$EVENT_LOG"
if [ "$(wc -l <"$EVENT_LOG") $rank $world" != "1 1 2" ] || [ "$time" -le "$before" ] || [ "$time" -ge "$after" ]; then
  fail "the first line, between $before and $after, was noted as: $(cat "$EVENT_LOG")"
fi

# What is measured in parts has a row for each, with a budget of its own.
rows=$(PYTHONPATH=tools/peers /usr/bin/python3 - 2>/dev/null <<'EOF'
import restart
took = {"muster": iter([(4, 1, 3), (6, 2, 4), (5, 1.5, 3.5)]), "by_hand": iter([(9, 2, 7)] * 3), "torchrun": iter([None])}
case = ("training", "all of it", "s", lambda name: next(took[name]), ["by_hand", "torchrun"], None, lambda limit: 8)
for row in restart.measure(case, 3, False, {"by_hand", "torchrun"}):
    print(row["muster"], row["peers"], row["budget"], row["notes"])
EOF
)
[ "$rows" = "5 {'by_hand': 9} 8 {'torchrun': 'not in 60 s'}
1.5 {'by_hand': 2} 0.1 {'torchrun': 'not in 60 s'}
3.5 {'by_hand': 7} None {'torchrun': 'not in 60 s'}" ] || fail "the rows of the parts: $rows"

[ "$failures" = 0 ] && echo "bench_test: ok"
exit $((failures > 0))
