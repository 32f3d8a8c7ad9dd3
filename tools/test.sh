#!/usr/bin/env bash
# Sets up, builds and runs every test, and ends with the line 'N passed, N failed, N skipped'.
#
#   tools/test.sh              everything: unit, simulation, integration, sanitizers, examples
#   tools/test.sh --quick      without the sanitizers and the examples
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

quick=no
for arg in "$@"; do
  case "$arg" in
    --quick) quick=yes ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *)
      echo "test.sh: unknown option '$arg'; see tools/test.sh --help" >&2
      exit 64
      ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools/setup.sh --with-tests || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

# Each step leaves a line "passed failed skipped" in $work/counts.
bazel_step() { # NAME, arguments of `bazel test`...
  local name=$1
  shift
  echo "== $name"
  bazel test --noshow_progress --show_result=0 --test_summary=terse --keep_going \
    --build_event_json_file="$work/$name.json" "$@" 2>&1 | grep -v '^INFO:\|^Loading:\|^$'
  python3 tools/count_tests.py "$name" "${PIPESTATUS[0]}" "$work/$name.json" >>"$work/counts"
}
script_step() { # NAME, command...: one test
  local name=$1
  shift
  echo "== $name"
  if "$@" >"$work/$name.log" 2>&1 </dev/null; then
    tail -n 1 "$work/$name.log"
    echo "1 0 0" >>"$work/counts"
  else
    echo "-- $name failed; its last lines:"
    tail -n 40 "$work/$name.log"
    echo "0 1 0" >>"$work/counts"
  fi
}

bazel_step unit //...
script_step tree python3 tools/check_tree.py
script_step setup bash tools/setup_test.sh
script_step bench bash tools/bench_test.sh
script_step proto python3 tools/check_proto_test.py
if [ "$quick" = no ]; then
  # The parts with threads, raw memory and bytes from outside. gRPC itself stays out: see .bazelrc.
  bazel_step asan --config=asan //base/... //rendezvous/core/... //agent/core/... \
    //agent/guardian/... //agent/process/... //worker_sdk/...
  bazel_step tsan --config=tsan //base/... //agent:all //agent/process/... //agent/server/... \
    //rendezvous/server/... //rendezvous/client/... //worker_sdk/...
  script_step quickstart tools/quickstart.sh
  script_step multi_node examples/multi_node.sh
fi

awk '{p += $1; f += $2; s += $3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0}' \
  "$work/counts"
