#!/usr/bin/env bash
# Tests tools/setup.sh without installing anything: its refusals, and its silence when all is there.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
expect() { # WHAT, expected exit code, expected words (or "" for no output), command...
  local what=$1 code=$2 words=$3 got rc=0
  shift 3
  got=$("$@" 2>&1) || rc=$?
  if [ "$rc" != "$code" ]; then
    echo "FAILED: $what: exit code $rc, expected $code: $got"
    failures=$((failures + 1))
  elif [ -n "$words" ] && [[ "$got" != *"$words"* ]]; then
    echo "FAILED: $what: '$words' is not in: $got"
    failures=$((failures + 1))
  elif [ -z "$words" ] && [ -n "$got" ]; then
    echo "FAILED: $what: expected silence, got: $got"
    failures=$((failures + 1))
  fi
}

printf 'ID=ubuntu\nVERSION_ID="22.04"\n' >"$work/other"
expect "another system is refused" 1 "this is 'ubuntu 22.04'" \
  env MUSTER_OS_RELEASE="$work/other" bash tools/setup.sh
expect "another system goes on when told to" 0 "untested here" \
  env MUSTER_OS_RELEASE="$work/other" bash tools/setup.sh --any-system
expect "a missing os-release is another system" 1 "this is 'unknown'" \
  env MUSTER_OS_RELEASE="$work/none" bash tools/setup.sh
expect "an unknown option is named" 64 "unknown option '--wit-tests'" bash tools/setup.sh --wit-tests
expect "nothing to do is silent" 0 "" bash tools/setup.sh --with-tests
if dpkg-query -W -f '${db:Status-Status}' python3-venv 2>/dev/null | grep -q '^installed$'; then
  mkdir -p "$work/torch/bin"
  printf '#!/bin/sh\n' >"$work/torch/bin/python"
  chmod +x "$work/torch/bin/python"
  expect "an installed PyTorch is silent" 0 "" env MUSTER_TORCH="$work/torch" bash tools/setup.sh --with-torch
  : >"$work/file"
  expect "where PyTorch can't be installed is named" 1 "could not be installed in $work/file/torch" \
    env MUSTER_TORCH="$work/file/torch" bash tools/setup.sh --with-torch
fi
expect "test.sh names an unknown option" 64 "unknown option '--fast'" bash tools/test.sh --fast
[ "$failures" = 0 ] && echo "setup_test: ok"
exit $((failures > 0))
