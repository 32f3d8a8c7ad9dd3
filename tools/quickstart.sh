#!/usr/bin/env bash
# Sets up, builds, and shows what muster is for: a real training job that loses a worker and ends with
# the same bits.
#
#   tools/quickstart.sh
#
# Trains a small network on Fashion-MNIST with two workers, twice: once undisturbed, and once with one
# worker killed by SIGKILL in the middle. The last line says how it went:
#   quickstart: ok accuracy=0.87 world=2 restarts=1 resumed_step=600 params=0123456789abcdef
set -euo pipefail
cd "$(dirname "$0")/.."

# The run is killed after the checkpoint of this step or a later one.
kill_after_step=${QUICKSTART_KILL_AFTER_STEP:-600}

say() { printf '\n== %s\n' "$1"; }
give_up() {
  echo "quickstart: FAILED: $1" >&2
  exit 1
}

tools/setup.sh
say "building (the first time takes a few minutes)"
bazel build --noshow_progress --show_result=0 //launcher:muster //examples/fashion_mnist 2>&1 |
  { grep -v '^INFO:\|^Loading:\|^$' || true; }
[ "${PIPESTATUS[0]}" = 0 ] || give_up "the build failed, see above"
muster=$PWD/bazel-bin/launcher/muster
trainer=$PWD/bazel-bin/examples/fashion_mnist/fashion_mnist

work=$(mktemp -d)
job=
clean_up() {
  if [ -n "$job" ] && kill -0 "$job" 2>/dev/null; then
    kill -TERM "$job"
    wait "$job" || true
  fi
  rm -rf "$work"
}
trap clean_up EXIT

train() { # NAME: runs the job in the foreground of its own subshell, output to the screen and a file
  exec "$muster" run --standalone --nproc-per-node=2 --max-restarts=3 --no-python \
    "$trainer" --checkpoint-dir="$work/$1" </dev/null
}
value() { # NAME=... out of a result line
  sed -n "s/.*[ ]$2=\([^ ]*\).*/\1/p" <<<"$1"
}
result() { grep -a 'fashion_mnist: accuracy=' "$work/$1.log" | tail -n 1 || true; }

touch "$work/undisturbed.log" "$work/disturbed.log"

say "training with two workers, undisturbed"
(train undisturbed) >"$work/undisturbed.log" 2>&1 &
job=$!
tail -f --pid="$job" -n +1 "$work/undisturbed.log" &
wait "$job" || give_up "the undisturbed run ended with exit code $?"
job=
undisturbed=$(result undisturbed)
[ -n "$undisturbed" ] || give_up "the undisturbed run printed no result"

say "again, and this time worker 1 is killed after the checkpoint of step $kill_after_step"
QUICKSTART_RUN=$work train disturbed >"$work/disturbed.log" 2>&1 &
job=$!
tail -f --pid="$job" -n +1 "$work/disturbed.log" &
committed() { sed -n 's/.*checkpoint step=\([0-9]*\).*/\1/p' "$work/disturbed.log" | tail -n 1; }
until [ "$(committed)" -ge "$kill_after_step" ] 2>/dev/null; do
  kill -0 "$job" 2>/dev/null || give_up "the job ended before it could be disturbed"
  sleep 0.02
done
victim=
for environment in /proc/[0-9]*/environ; do
  if tr '\0' '\n' 2>/dev/null <"$environment" | grep -qx "QUICKSTART_RUN=$work" &&
    tr '\0' '\n' 2>/dev/null <"$environment" | grep -qx 'RANK=1'; then
    victim=$(basename "$(dirname "$environment")")
  fi
done
[ -n "$victim" ] || give_up "worker 1 was not found"
kill -KILL "$victim"
echo "== kill -KILL $victim (rank 1)"
wait "$job" || give_up "the disturbed run ended with exit code $?"
job=
wait

disturbed=$(result disturbed)
[ -n "$disturbed" ] || give_up "the disturbed run printed no result"
say "undisturbed: $undisturbed"
echo "== disturbed:   $disturbed"
[ "$(value "$disturbed" restarts)" = 1 ] || give_up "expected restarts=1"
[ "$(value "$disturbed" params)" = "$(value "$undisturbed" params)" ] ||
  give_up "the parameters differ: $(value "$disturbed" params) with the kill, $(value "$undisturbed" params) without"
awk -v a="$(value "$disturbed" accuracy)" 'BEGIN {exit !(a >= 0.85)}' ||
  give_up "the accuracy is $(value "$disturbed" accuracy), expected at least 0.85"
echo "== both ended with bitwise the same parameters"
echo "quickstart: ok accuracy=$(value "$disturbed" accuracy) world=$(value "$disturbed" world) restarts=$(value "$disturbed" restarts) resumed_step=$(value "$disturbed" resumed_step) params=$(value "$disturbed" params)"
