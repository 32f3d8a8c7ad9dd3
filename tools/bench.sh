#!/usr/bin/env bash
# Measures muster beside its peers and the limit, in one run.
#
#   tools/bench.sh NAME [--quick] [options of the benchmark]
#   tools/bench.sh --list
#
# Prints a table of medians and writes bench_results/NAME.json.
set -euo pipefail
cd "$(dirname "$0")/.."

names=(launch restart scale)
name=${1:-}
case "$name" in
  --list) printf '%s\n' "${names[@]}"; exit 0 ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
shift || true
if [[ ! " ${names[*]} " == *" $name "* ]] || [ -z "$name" ]; then
  echo "bench.sh: no benchmark '$name'; there are: ${names[*]}" >&2
  exit 64
fi
tools/setup.sh --with-peers
bazel build --noshow_progress --show_result=0 //launcher:muster //tools/peers:event_worker \
  //tools/peers:floor //tests/load:crowd //tests/load:bare_rendezvous 2>&1 | { grep -v '^INFO:\|^$' || true; }
exec /usr/bin/python3 "tools/peers/$name.py" "$@"
