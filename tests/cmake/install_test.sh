#!/bin/sh
# Installs attend into a new folder and builds the example there as a user would: once with CMake's
# find_package, once with pkg-config. Then the example trains and translates.
#   install_test.sh SOURCE_DIR BUILD_DIR CXX
set -eu
source=$1 build=$2 cxx=$3
example=$source/examples/train_and_translate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$work/prefix/bin/attend" --version
# Under mpirun it finds its module in the folder of libraries.
if [ -e "$build/src/attend/attend_mpi.so" ] && command -v mpirun >/dev/null; then
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    mpirun --oversubscribe -n 2 "$work/prefix/bin/attend" train --help | grep -q -e --stop-after
fi

cmake -S "$example" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/build"

pc=$(find "$work/prefix" -name attend.pc)
flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs attend)
# shellcheck disable=SC2086
"$cxx" -std=c++20 "$example/main.cc" -o "$work/with_pkg_config" $flags

# A toy language: the words of the source, each with an x in front.
mkdir "$work/data"
awk 'BEGIN {
  for (i = 0; i < 400; i++) {
    line = ""
    for (j = 0; j < 2 + i % 4; j++) line = line (j ? " " : "") substr("abcdefgh", 1 + (i * 7 + j * j * 3 + j) % 8, 1)
    print line
  }
}' >"$work/data/train.en"
sed 's/[a-h]/x&/g' "$work/data/train.en" >"$work/data/train.xx"
for program in "$work/build/train_and_translate" "$work/with_pkg_config"; do
  printf 'a b c\n\nd e\n' |
    "$program" "$work/data/train.en" "$work/data/train.xx" "$work/run" 40u >"$work/out"
  [ "$(wc -l <"$work/out")" = 3 ] || {
    echo "$program: three lines in, but this came out:" >&2
    cat "$work/out" >&2
    exit 1
  }
  # The command gives the same answer as the library (contract 7).
  printf 'a b c\n\nd e\n' |
    "$work/prefix/bin/attend" translate --quiet --model "$work/run" | cmp - "$work/out"
  rm -rf "$work/run"
done
