#!/bin/sh
# Programs that were linked with libattend_c must go on finding what they use: what it exports is
# what c_symbols.txt lists. Functions may be added, here and there, and none removed while the
# library's name stays; nothing of C++ gets out.
#   symbols_test.sh LIBRARY LIST NM
set -eu
library=$1 list=$2 nm=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

LC_ALL=C sort "$list" >"$work/listed"
"$nm" -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort >"$work/exported"
diff "$work/listed" "$work/exported" && exit 0
echo "symbols_test: the symbols of $library (>) are not those of $list (<)." >&2
echo "A function was added: add it to the list. One was removed: put it back, or else every" >&2
echo "program linked with the library breaks; ATTEND_C_SOVERSION must go up then." >&2
exit 1
