#!/bin/bash
# Three nodes on one machine: agents on 127.0.0.1, .2 and .3 form an elastic job of two to three
# nodes. One agent is killed with SIGKILL; the two others form a smaller world and finish. Run from
# the root of the repository:
#
#   examples/multi_node.sh
#
# Ends with one line, `multi_node: ok ...`; takes a few seconds and leaves nothing behind.
set -u
cd "$(dirname "$0")/.." || exit 1
muster=${MUSTER_BINARY:-bazel-bin/launcher/muster}
if [ ! -x "$muster" ]; then
  bazel build //launcher:muster || exit 1
fi

work=$(mktemp -d)
agents=()
clean_up() {
  for pid in "${agents[@]}"; do kill -9 "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

fail() {
  echo "multi_node: failed: $1" >&2
  tail -n +1 "$work"/node*.log >&2
  exit 1
}

# wait_until SECONDS WHAT COMMAND...
wait_until() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "waited in vain for $what"
    sleep 0.05
  done
}

# The kernel's choice of a port that is free now.
port=$(/usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])') || fail "no free port"

# Each worker says its place, then works until it is told to finish.
cat > "$work/worker.sh" <<EOF
echo "rank \$RANK of \$WORLD_SIZE, attempt \$TORCHELASTIC_RESTART_COUNT," \
  "charged \$MUSTER_RESTARTS_CHARGED"
until [ -e "$work/finish" ]; do sleep 0.05; done
EOF

start() {
  : > "$work/node$1.log"
  "$muster" run --nnodes=2:3 --rdzv-endpoint="127.0.0.1:$port" --rdzv-id=multi_node \
    --rdzv-conf=last_call_timeout=5 --local-addr="127.0.0.$1" \
    --no-python sh "$work/worker.sh" > "$work/node$1.log" 2>&1 < /dev/null &
  agents[$1]=$!
}

said() { grep -q "of $2, attempt $3" "$work/node$1.log"; }

# Node 1 is there first and so hosts the rendezvous: its endpoint is an address of this machine, as
# it is for the two others, which then join.
start 1
wait_until 20 "the rendezvous" grep -q waiting "$work/node1.log"
start 2
# The shell need not remark on its end.
disown "${agents[2]}"
start 3
for node in 1 2 3; do wait_until 30 "node $node in a world of 3" said "$node" 3 0; done
echo "multi_node: three nodes run a world of 3; killing the agent of node 2"

before=$(date +%s%N)
kill -9 "${agents[2]}"
for node in 1 3; do wait_until 30 "node $node in a world of 2" said "$node" 2 1; done
after=$(date +%s%N)
echo "multi_node: the others run a world of 2"

touch "$work/finish"
for node in 1 3; do
  wait "${agents[$node]}" || fail "node $node ended with $?"
done
agents=()
charged=$(sed -n 's/.*of 2, .*charged //p' "$work/node1.log")
[ "$charged" = 0 ] || fail "a lost node must cost no restart, but $charged were charged"
echo "multi_node: ok world=3,2 nodes_lost=1 restarts_charged=$charged" \
  "reformed_ms=$(((after - before) / 1000000))"
