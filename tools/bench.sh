#!/usr/bin/env bash
# Measures muster beside its peers and the limit, in one run.
#
#   tools/bench.sh NAME [--quick] [options of the benchmark]
#   tools/bench.sh --list
#
# Prints a table of medians and writes bench_results/NAME.json. Stopped by SIGTERM or SIGINT it ends all
# that it has started.
set -euo pipefail
cd "$(dirname "$0")/.."

names=(launch restart scale)
name=${1:-}
case "$name" in
  --list) printf '%s\n' "${names[@]}"; exit 0 ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
shift || true
if [[ ! " ${names[*]} " == *" $name "* ]] || [ -z "$name" ]; then
  echo "bench.sh: no benchmark '$name'; there are: ${names[*]}" >&2
  exit 64
fi

# What is to be ended if a signal comes. In the background: bash sees to a signal only when its foreground
# has ended.
step=
run() { # command...
  "$@" </dev/null &
  step=$!
  wait "$step"
  step=
}
tree() { # PID: that process and all below it
  local child
  echo "$1"
  for child in $(pgrep -P "$1"); do tree "$child"; done
}
stop() { # NUMBER of the signal
  local pids=() signal
  trap '' TERM INT HUP
  if [ -n "$step" ]; then
    mapfile -t pids < <(tree "$step")
    for signal in TERM KILL; do
      kill "-$signal" "${pids[@]}" 2>/dev/null || true
      for _ in $(seq 50); do
        kill -0 "${pids[@]}" 2>/dev/null || break
        sleep 0.1
      done
    done
  fi
  exit $((128 + $1))
}
trap 'stop 15' TERM
trap 'stop 2' INT
trap 'stop 1' HUP

build() {
  bazel build --noshow_progress --show_result=0 //launcher:muster //tools/peers:event_worker \
    //tools/peers:floor //tests/load:crowd //tests/load:bare_rendezvous 2>&1 |
    { grep -v '^INFO:\|^$' || true; }
}
run tools/setup.sh --with-peers
run build
# From here on run.py does it, for launchers and workers make sessions of their own.
exec /usr/bin/python3 tools/peers/run.py "tools/peers/$name.py" "$@"
