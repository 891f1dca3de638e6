#!/bin/sh
# Installs the Debian packages that attend is built from.
#
#   scripts/install-deps.sh [dev] [browser] [peers]
#
# Without arguments: what building and testing need. `dev` adds the formatter and the linters,
# `browser` what reports are tested in, `peers` what the benchmarks of other programs need: PyTorch,
# and OpenBLAS, since PyTorch computes float32 products with whatever BLAS is there, and Debian's
# default is many times slower. Nothing is done where all packages are there; who may not install is
# told the command to run.
set -eu

packages="g++ make cmake ninja-build pkg-config ccache
  libdnnl-dev ocl-icd-opencl-dev libhwy-dev libsentencepiece-dev libicu-dev zlib1g-dev
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libspdlog-dev
  libjs-chart.js
  libopenmpi-dev openmpi-bin libmecab2 mecab-ipadic-utf8
  libgtest-dev libgmock-dev libbenchmark-dev"
for group in "$@"; do
  case $group in
    dev) packages="$packages clang-format clang-tidy shellcheck" ;;
    browser) packages="$packages chromium" ;;
    peers) packages="$packages python3-torch libopenblas0-openmp" ;;
    *)
      echo "$0: unknown group '$group': there are dev, browser and peers" >&2
      exit 2
      ;;
  esac
done

# The packages among $packages that are not installed.
missing() {
  for package in $packages; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
      ?i*) ;;
      *) printf '%s ' "$package" ;;
    esac
  done
}

# Whether apt's lists know every one of these packages.
known() {
  for package in "$@"; do
    [ -n "$(apt-cache --quiet=0 madison "$package" 2>/dev/null)" ] || return 1
  done
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  {
    echo "install-deps: apt is not here. What these Debian packages hold is needed:"
    echo "$packages"
  } >&2
  exit 0 # the build says what it does not find
fi

to_install=$(missing)
[ -n "$to_install" ] || exit 0

if [ "$(id -u)" != 0 ]; then
  {
    echo "install-deps: these packages are not installed: $to_install"
    echo "To install them run:"
    echo "  sudo apt-get update && sudo apt-get install --no-install-recommends $to_install"
  } >&2
  exit 1
fi

echo "install-deps: installing $to_install"
export DEBIAN_FRONTEND=noninteractive
fetched=no
# shellcheck disable=SC2086 # the lists are meant to be split into words
if ! known $to_install; then
  apt-get update -qq
  fetched=yes
fi
install() {
  # shellcheck disable=SC2086
  apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=300 $to_install
}
if ! install; then
  # Lists of last week name files that are gone; with new lists it is worth a second try.
  [ "$fetched" = no ] || exit 1
  apt-get update -qq
  install
fi

to_install=$(missing)
if [ -n "$to_install" ]; then
  echo "install-deps: apt-get did not install $to_install" >&2
  exit 1
fi
