#!/bin/sh
# Installs attend into a new folder and builds the examples there as a user would: once with CMake's
# find_package, once with pkg-config. Then they train and translate, and give what the command does
# (contract 7).
#   install_test.sh SOURCE_DIR BUILD_DIR CXX
set -eu
source=$1 build=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$work/prefix/bin/attend" --version
# Under mpirun it finds its module in the folder of libraries.
if [ -e "$build/src/attend/attend_mpi.so" ] && command -v mpirun >/dev/null; then
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    mpirun --oversubscribe -n 2 "$work/prefix/bin/attend" train --help | grep -q -e --stop-after
fi

pc=$(dirname "$(find "$work/prefix" -name attend.pc)")
flags_of() { PKG_CONFIG_PATH=$pc pkg-config --cflags --libs "$1"; }
export LD_LIBRARY_PATH="${pc%/pkgconfig}"

# with_cmake EXAMPLE, with_pkg_config EXAMPLE: make $work/EXAMPLE/EXAMPLE and $work/EXAMPLE.pc.
with_cmake() {
  cmake -S "$source/examples/$1" -B "$work/$1" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release
  cmake --build "$work/$1"
}
with_pkg_config() {
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 "$source/examples/$1/main.cc" -o "$work/$1.pc" $(flags_of attend)
}
with_cmake train_and_translate
with_pkg_config train_and_translate
with_cmake translate
with_pkg_config translate
with_cmake translate_c
# shellcheck disable=SC2046
cc -std=c99 -Wall -Wextra -pedantic -Wstrict-prototypes -Werror \
  "$source/examples/translate_c/main.c" -o "$work/translate_c.pc" $(flags_of attend_c)
# C++ may include the header of C, too.
printf '#include <attend/c_api.h>\nint main() { return *attend_version() == 0; }\n' >"$work/mixed.cc"
# shellcheck disable=SC2046
"$cxx" -std=c++11 -Wall -Wextra -pedantic -Werror "$work/mixed.cc" -o "$work/mixed" \
  $(flags_of attend_c)
"$work/mixed"

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
for program in "$work/train_and_translate/train_and_translate" "$work/train_and_translate.pc"; do
  rm -rf "$work/run"
  printf 'a b c\n\nd e\n' |
    "$program" "$work/data/train.en" "$work/data/train.xx" "$work/run" 40u >"$work/out"
  [ "$(wc -l <"$work/out")" = 3 ] || {
    echo "$program: three lines in, but this came out:" >&2
    cat "$work/out" >&2
    exit 1
  }
  printf 'a b c\n\nd e\n' |
    "$work/prefix/bin/attend" translate --quiet --model "$work/run" | cmp - "$work/out"
done

# Streams: of many threads at once, of stdin, of C.
attend_translates() { "$work/prefix/bin/attend" translate --quiet --model "$work/run" "$@"; }
head -n 60 "$work/data/train.en" >"$work/one"
{ echo && tail -n 25 "$work/data/train.en"; } >"$work/two"
: >"$work/three"
for program in "$work/translate/translate" "$work/translate.pc"; do
  rm -f "$work"/*.out
  "$program" "$work/run" "$work/one" "$work/two" "$work/three"
  for file in one two three; do
    attend_translates <"$work/$file" | cmp - "$work/$file.out"
  done
  "$program" "$work/run" <"$work/two" | cmp - "$work/two.out"
done
for program in "$work/translate_c/translate_c" "$work/translate_c.pc"; do
  "$program" "$work/run" <"$work/two" | cmp - "$work/two.out"
  # index, score, tokens, text for: index ||| text ||| score
  "$program" "$work/run" --n-best 3 'a b c' '' 'd e' | cut -f 1,4 >"$work/n_best"
  printf 'a b c\n\nd e\n' | attend_translates --n-best 3 |
    awk -F ' [|][|][|] ' '{ print $1 "\t" $2 }' | cmp - "$work/n_best"
  [ "$(wc -l <"$work/n_best")" = 7 ]
  if "$program" "$work/no_such_model" </dev/null 2>"$work/error"; then exit 1; fi
  grep -q no_such_model "$work/error"
done
