#!/usr/bin/env bash
# Tests tools/bench.sh: a signal ends it with 128 and its number, in whatever it is at, and all that it
# started with it. In a copy of tools/ whose steps only start processes and wait.
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

[ "$failures" = 0 ] && echo "bench_test: ok"
exit $((failures > 0))
