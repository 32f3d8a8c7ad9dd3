#!/usr/bin/env bash
# Installs what muster needs from the system's package manager. Nothing else is downloaded, but for --with-torch.
# Quiet when nothing is missing; run it as often as you like.
#
#   tools/setup.sh                 what is needed to build and run
#   tools/setup.sh --with-tests    and to run all tests (PyTorch, Slurm and OpenSSH as judges, nftables for lossy networks)
#   tools/setup.sh --with-peers    and to run the benchmarks beside their peers (PyTorch, Open MPI)
#   tools/setup.sh --with-torch    and the newest PyTorch from pip's package index, some 5 GB, in a virtual
#                                  environment in ~/.cache/muster/torch (or $MUSTER_TORCH, also when tests
#                                  and benchmarks look for it), for tests that are skipped without it
#   tools/setup.sh --with-checks   and to run tools/presubmit.sh (clang-format, clang-tidy)
#   tools/setup.sh --any-system    go on although this isn't Debian 12 (untested)
set -euo pipefail

needed=(
  bazel-bootstrap g++ pkg-config python3 ca-certificates
  libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libabsl-dev
  libssl-dev libc-ares-dev libre2-dev zlib1g-dev
  libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  libeigen3-dev dataset-fashion-mnist
  iproute2 procps
)
any_system=no
with_torch=no
for arg in "$@"; do
  case "$arg" in
    --with-tests) needed+=(python3-torch nftables slurm-wlm openssh-server openssh-client) ;;
    --with-peers) needed+=(python3-torch openmpi-bin) ;;
    --with-torch) needed+=(python3-venv) with_torch=yes ;;
    --with-checks) needed+=(clang-format clang-tidy clang) ;;
    --any-system) any_system=yes ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *)
      echo "setup.sh: unknown option '$arg'; see tools/setup.sh --help" >&2
      exit 64
      ;;
  esac
done

# MUSTER_OS_RELEASE lets the tests of this script show it another system.
os_release=${MUSTER_OS_RELEASE:-/etc/os-release}
# shellcheck source=/dev/null  # which file it is, is the machine's affair
system=$( (. "$os_release" && echo "${ID:-unknown} ${VERSION_ID:-}") 2>/dev/null || echo unknown)
if [ "$system" != "debian 12" ]; then
  if [ "$any_system" = no ]; then
    echo "setup.sh: muster is built and tested on Debian 12; this is '$system'. Use a Debian 12 machine or container, or go on untested with --any-system." >&2
    exit 1
  fi
  echo "setup.sh: this is '$system': muster is untested here." >&2
fi
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh: no apt-get here; install these yourself: ${needed[*]}" >&2
  exit 1
fi

missing=()
for package in "${needed[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done

# Where pip finds it is pip's own affair (pip config): another index may have a smaller build without CUDA.
install_torch() {
  local folder=${MUSTER_TORCH:-$HOME/.cache/muster/torch}
  if "$folder/bin/python" -c 'import torch' 2>/dev/null; then return 0; fi
  echo "setup.sh: installing the newest PyTorch in $folder"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { /usr/bin/python3 -m venv "$folder" && "$folder/bin/pip" install torch numpy &&
    "$folder/bin/python" -c 'import torch'; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    echo "setup.sh: PyTorch could not be installed in $folder (the last lines are above)" >&2
    return 1
  fi
}

if [ ${#missing[@]} = 0 ]; then
  if [ "$with_torch" = yes ]; then install_torch || exit 1; fi
  exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: run as root, or install sudo: these packages are missing: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup.sh: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "setup.sh: apt-get could not install: ${missing[*]} (its last lines are above)" >&2
  exit 1
fi
if [ "$with_torch" = yes ]; then install_torch || exit 1; fi
