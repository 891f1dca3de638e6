#!/bin/sh
# Code in docs/library.md that says where it is from stands there, line by line, though deeper
# indented perhaps: a block begins with ```c from FILE. The examples are built by install_test.sh.
#   docs_test.sh SOURCE_DIR
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One file a block: the first line is its origin, the others have no indentation.
awk -v work="$work" '
  /^```[a-z]+ from / { file = sprintf("%s/block%03d", work, ++blocks); print $3 >file; next }
  /^```/ { file = "" }
  file != "" { sub(/^ +/, ""); print >file }
' docs/library.md

blocks=0
for block in "$work"/block*; do
  origin=$(head -n 1 "$block")
  tail -n +2 "$block" >"$work/wanted"
  sed 's/^ *//' "$origin" >"$work/origin"
  awk 'NR == FNR { wanted = wanted $0 "\n"; next } { all = all $0 "\n" }
       END { exit index("\n" all, "\n" wanted) == 0 }' "$work/wanted" "$work/origin" || {
    echo "docs/library.md: this is not in $origin as it stands there:" >&2
    cat "$work/wanted" >&2
    exit 1
  }
  blocks=$((blocks + 1))
done
[ "$blocks" -ge 4 ] || {
  echo "docs/library.md: found $blocks blocks of code from examples, expected 4 at least" >&2
  exit 1
}
