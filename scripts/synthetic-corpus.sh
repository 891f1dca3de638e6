#!/bin/sh
# Makes a synthetic parallel corpus of any size, the same each time: OUTDIR/train.src and
# OUTDIR/train.trg, with PAIRS lines of about eight words each. Some 60 bytes a pair; a million
# pairs takes about two seconds.
#   scripts/synthetic-corpus.sh PAIRS OUTDIR
#
# Every thousandth pair is bad, in turn: an empty source, a target that is no UTF-8, a target twelve
# times as long as its source, a source of 600 words. How many of each there are is printed.
set -eu
if [ $# -ne 2 ]; then
  echo "usage: $0 PAIRS OUTDIR" >&2
  exit 2
fi
mkdir -p "$2"
LC_ALL=C exec awk -v pairs="$1" -v source="$2/train.src" -v target="$2/train.trg" '
# Numerical Recipes: x = 1664525 x + 1013904223 modulo 2^32, exact in doubles.
function below(bound) {
  state = (state * 1664525 + 1013904223) % 4294967296
  return int(state / 4294967296 * bound)
}
function word(  made, n) {
  made = ""
  for (n = 1 + below(3); n > 0; n--) made = made syllable[below(syllables)]
  return made
}
function phrase(from,  made, n) {
  made = ""
  for (n = 2 + below(5); n > 0; n--) made = made (made == "" ? "" : " ") from[below(5000)]
  return made
}
BEGIN {
  state = 1
  syllables = split("ka lo mi te su ra ne vo pi da gu sha el on ir ut", list, " ")
  for (i = 1; i <= syllables; i++) syllable[i - 1] = list[i]
  for (i = 0; i < 5000; i++) { words[i] = word(); others[i] = word() }
  # A sentence is two of these, one behind the other.
  for (i = 0; i < 8192; i++) { source_phrase[i] = phrase(words); target_phrase[i] = phrase(others) }
  for (i = 0; i < 600; i++) long = long words[i] " "
  for (i = 0; i < 36; i++) rather_long = rather_long others[i] " "
  for (i = 1; i <= pairs; i++) {
    a = below(8192); b = below(8192)
    s = source_phrase[a] " " source_phrase[b]
    t = target_phrase[a] " " target_phrase[b] "."
    if (i % 1000 == 0) {
      kind = (i / 1000) % 4
      ++bad[kind]
      if (kind == 0) s = ""
      if (kind == 1) t = t "\377"
      if (kind == 2) { s = words[0]; t = rather_long }
      if (kind == 3) s = long
    }
    print s > source
    print t > target
  }
  printf "%d pairs: %d empty, %d too long, %d with a bad length ratio, %d not UTF-8\n", pairs,
    bad[0], bad[3], bad[2], bad[1]
}'
