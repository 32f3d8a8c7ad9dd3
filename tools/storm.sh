#!/usr/bin/env bash
# Storms of random faults on a real job, one seed after the other: nodes, workers, guardians and the
# rendezvous are killed, stopped and cut off, and the job must end with the exact count.
#
#   tools/storm.sh [--seeds N] [--faults N] [--seed S]    20 seeds of 200 faults from seed 1
#
# A seed that fails names the folder where all that happened is kept.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
tools/setup.sh
bazel build --noshow_progress --show_result=0 //launcher:muster //tests/storm:counting_worker 2>&1 |
  { grep -v '^INFO:\|^$' || true; }
export MUSTER_BINARY=$PWD/bazel-bin/launcher/muster
export STORM_WORKER=$PWD/bazel-bin/tests/storm/counting_worker
exec /usr/bin/python3 tests/storm/run.py "$@"
