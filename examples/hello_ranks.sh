#!/bin/sh
# A worker that isn't written for muster: it prints the place it was given. Run from the root of the
# repository:
#
#   bazel-bin/launcher/muster run --standalone --nproc-per-node=4 --no-python examples/hello_ranks.sh
echo "hello from rank $RANK of $WORLD_SIZE (worker $LOCAL_RANK on node $GROUP_RANK," \
  "attempt $TORCHELASTIC_RESTART_COUNT, master $MASTER_ADDR:$MASTER_PORT)"
