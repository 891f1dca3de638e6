#!/bin/sh
# Runs the commands of the documentation: every block that begins with ```sh run in README.md and
# docs/*.md, in order, each document in a folder of its own that holds a little parallel text
# (train, dev and test, .en and .de).
#   scripts/test-docs.sh [DOCUMENT ...]
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- README.md docs/*.md

PATH=$PWD/build/release/src/attend:$PATH
export PATH
command -v attend >/dev/null || {
  echo "test-docs: build/release has no attend: run make first" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Sentences of a toy English and German: enough to learn from in a few seconds.
toy_text() {
  awk -v seed="$1" -v count="$2" 'BEGIN {
    srand(seed)
    split("the dog,a cat,my house,this tree,our book,the garden", en, ",")
    split("der Hund,eine Katze,mein Haus,dieser Baum,unser Buch,der Garten", de, ",")
    split("is old,is big,sees the sea,stands there,sleeps well", en_verb, ",")
    split("ist alt,ist groß,sieht das Meer,steht dort,schläft gut", de_verb, ",")
    split(",today,now,again,in the evening", en_end, ",")
    split(",heute,jetzt,wieder,am Abend", de_end, ",")
    for (i = 0; i < count; i++) {
      s = 1 + int(rand() * 6); v = 1 + int(rand() * 5); e = 1 + int(rand() * 5)
      print en[s] " " en_verb[v] (en_end[e] == "" ? "" : " " en_end[e]) "." > "en"
      print de[s] " " de_verb[v] (de_end[e] == "" ? "" : " " de_end[e]) "." > "de"
    }
  }'
}

failed=0
for document in "$@"; do
  awk '/^```sh run$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$document" >"$work/script"
  [ -s "$work/script" ] || continue
  folder=$work/$(basename "$document" .md)
  mkdir "$folder"
  (
    cd "$folder"
    for part in train:600 dev:20 test:20; do
      toy_text "${#part}" "${part#*:}"
      mv en "${part%:*}.en"
      mv de "${part%:*}.de"
    done
  )
  echo "== $document"
  if ! (cd "$folder" && sh -eux ../script) >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "test-docs: a command of $document failed" >&2
    failed=1
  fi
done
[ "$failed" = 0 ] && echo "test-docs: all commands ran"
exit "$failed"
