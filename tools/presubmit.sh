#!/usr/bin/env bash
# What a change must pass before it is shown: format, lint (locks too), the rules of the tree, the wire, all
# tests.
#
#   tools/presubmit.sh [--base REV] [--no-tests]     what changed since REV (default: origin/main, else HEAD~1)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

base=
tests=yes
while [ $# -gt 0 ]; do
  case "$1" in
    --base) base=${2:?presubmit.sh: --base needs a revision}; shift ;;
    --no-tests) tests=no ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *)
      echo "presubmit.sh: unknown option '$1'; see tools/presubmit.sh --help" >&2
      exit 64
      ;;
  esac
  shift
done
tools/setup.sh --with-checks || exit 1
if [ -z "$base" ]; then
  base=$(git rev-parse -q --verify origin/main || git rev-parse -q --verify HEAD~1 || git rev-parse HEAD)
fi

failed=0
fail() { echo "presubmit: $1"; failed=1; }
changed() { { git diff --name-only --diff-filter=d "$base" -- "$@"; git ls-files --others --exclude-standard -- "$@"; } | sort -u; }

mapfile -t sources < <(changed '*.h' '*.cc' '*.cu')
if [ ${#sources[@]} -gt 0 ]; then
  clang-format --style=file --dry-run -Werror "${sources[@]}" || fail "clang-format: run clang-format -i on the files above"
fi
if command -v buildifier >/dev/null; then
  mapfile -t builds < <(changed 'BUILD' '*/BUILD' '*.bzl' 'WORKSPACE')
  [ ${#builds[@]} -eq 0 ] || buildifier -mode=check -lint=warn \
    -warnings=-native-cc-binary,-native-cc-library,-native-cc-test,-native-sh-test,-native-sh-binary \
    "${builds[@]}" || fail "buildifier: see above"
fi
if command -v shellcheck >/dev/null; then
  mapfile -t scripts < <(changed '*.sh')
  [ ${#scripts[@]} -eq 0 ] || shellcheck "${scripts[@]}" || fail "shellcheck: see above"
fi
python3 tools/check_tree.py || fail "the rules of the tree: see above"
if [ -n "$(git diff --name-only "$base" -- 'proto/*.proto')" ]; then
  python3 tools/check_proto.py "$base" || fail "the wire: see above"
fi

# Generated headers must exist before clang-tidy can read a file that includes them.
bazel build --noshow_progress --show_result=0 //... 2>&1 | grep -v '^INFO:\|^$'
[ "${PIPESTATUS[0]}" = 0 ] || fail "the build: see above"
python3 tools/compdb.py
# A header is read by what stands beside it.
mapfile -t units < <({
  changed '*.cc'
  for header in $(changed '*.h'); do
    for unit in "${header%.h}.cc" "${header%.h}_test.cc"; do [ ! -f "$unit" ] || echo "$unit"; done
  done
} | sort -u)
if [ ${#units[@]} -gt 0 ]; then
  printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p . 2>/dev/null ||
    fail "clang-tidy: see above"
fi
if [ "$tests" = yes ]; then
  tools/test.sh || fail "tests: see above"
fi
[ "$failed" = 0 ] && echo "presubmit: ok"
exit "$failed"
