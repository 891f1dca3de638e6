#!/bin/sh
# clang-format and clang-tidy over our sources, shellcheck over our scripts. Any word is a failure.
#   scripts/lint.sh [FILE.cc ...]     (all of src/ without an argument)
set -eu
cd "$(dirname "$0")/.."

git ls-files '*.c' '*.cc' '*.h' | xargs clang-format --dry-run -Werror
git ls-files '*.sh' .ci/run | xargs shellcheck -x -e SC1091,SC2154

# The compile commands of GCC hold warnings that clang has other names for.
cmake --preset release >/dev/null
if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files 'src/*.cc'; fi | xargs -n 1 -P "$(nproc)" clang-tidy --quiet -p build/release \
  --extra-arg=-Wno-everything --extra-arg=-Wno-error 2>build/lint.log || {
  grep -v 'warnings\? generated' build/lint.log >&2
  exit 1
}
echo "lint: clean"
