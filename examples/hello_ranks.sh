#!/bin/sh
# A worker that isn't written for muster: it prints the place it was given. Run from the root of the
# repository; started by hand, it starts itself as four workers:
#
#   examples/hello_ranks.sh
#   bazel-bin/launcher/muster run --standalone --nproc-per-node=4 --no-python examples/hello_ranks.sh
if [ -z "${RANK-}" ]; then
  muster=${MUSTER_BINARY:-bazel-bin/launcher/muster}
  [ -x "$muster" ] || bazel build //launcher:muster || exit 1
  exec "$muster" run --standalone --nproc-per-node=4 --no-python "$0"
fi
echo "hello from rank $RANK of $WORLD_SIZE (worker $LOCAL_RANK on node $GROUP_RANK," \
  "attempt $TORCHELASTIC_RESTART_COUNT, master $MASTER_ADDR:$MASTER_PORT)"
