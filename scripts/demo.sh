#!/bin/sh
# The demo: from a fresh machine to translations. Installs what is missing, builds attend, fetches
# real parallel text, trains a small English-German model on it, scores it on text that it has not
# seen, and lets it translate what nobody has translated yet. All it writes lies in demo/ and
# build/release. A second run reuses what is there; an interrupted one goes on where it stopped.
#
# Where apt is not there: TRANSLATION_EN=... TRANSLATION_DE=... make demo, with the two files that
# scripts/debian-descriptions.sh asks for.
set -eu
cd "$(dirname "$0")/.."

demo=demo
data=$demo/data
run=$demo/run
attend=build/release/src/attend/attend
began=$(date +%s)

step() {
  now=$(($(date +%s) - began))
  printf '\n== %s  (%d:%02d)\n\n' "$*" $((now / 60)) $((now % 60))
}

interrupted() {
  printf '\nStopped. "make demo" goes on from here.\n' >&2
  exit 130
}
trap interrupted INT TERM

# Eight descriptions without a German version: programs rather than libraries, not too long.
choose_samples() {
  awk -F '\t' '
    $1 ~ /^(lib|python|ruby|node|golang|r-|gir|fonts|texlive|elpa|haskell|lua|php|erlang|ocaml|task)/ { next }
    $1 ~ /-(dev|doc|dbg|data|common|java|perl|utils|tools|plugins?)$|-dev-|[0-9]$/ { next }
    $2 ~ /[(]|--? |ransitional|etapackage/ { next }
    split($2, a, " ") >= 3 && split($3, b, " ") >= 8 && split($3, b, " ") <= 18 { print; if (++n == 8) exit }
  ' "$data/untranslated.tsv"
}

print_samples() {
  choose_samples >"$demo/samples.tsv"
  cut -f 2,3 "$demo/samples.tsv" | tr '\t' '\n' >"$demo/samples.en"
  "$attend" translate --quiet --model "$run" <"$demo/samples.en" >"$demo/samples.de"
  paste "$demo/samples.en" "$demo/samples.de" | paste - - | paste "$demo/samples.tsv" - |
    awk -F '\t' '{ printf "%s\n  en  %s\n  de  %s\n  en  %s\n  de  %s\n\n", $1, $4, $5, $6, $7 }'
}

mkdir -p "$demo"
step "1/5 Building attend"
scripts/install-deps.sh
cmake --preset release >"$demo/build.log" 2>&1 || {
  cat "$demo/build.log" >&2
  exit 1
}
cmake --build --preset release --parallel "$(nproc)" --target attend_cli

step "2/5 Parallel text: the translated descriptions of Debian's packages"
if [ -n "${TRANSLATION_EN:-}" ] && [ -n "${TRANSLATION_DE:-}" ]; then
  scripts/debian-descriptions.sh "$data" de "$TRANSLATION_EN" "$TRANSLATION_DE"
else
  scripts/debian-descriptions.sh "$data" de
fi
echo "$data holds $(wc -l <"$data/train.en") pairs to train on, $(wc -l <"$data/dev.en") to validate" \
  "on and $(wc -l <"$data/test.en") to test on."

step "3/5 Training"
"$attend" train --config recipes/debian-demo.yaml --run "$run" \
  --train-source "$data/train.en" --train-target "$data/train.de" \
  --valid-source "$data/dev.en" --valid-target "$data/dev.de"

step "4/5 Scoring it on $(wc -l <"$data/test.en") sentences of packages that it has not seen"
if [ -z "$(find "$demo/test.out" -newer "$run/model.safetensors" 2>/dev/null)" ]; then
  "$attend" translate --model "$run" <"$data/test.en" >"$demo/test.out.part"
  mv "$demo/test.out.part" "$demo/test.out"
fi
"$attend" evaluate --reference "$data/test.de" <"$demo/test.out"

step "5/5 Descriptions that nobody has translated yet, in the model's German"
print_samples

step "Done"
cat <<END
Go on with

  a sentence of your own:
    echo 'This package contains the documentation.' | $attend translate --model $run
  three times as much training, from where this ended:
    $attend train --run $run --stop-after 21Mt
  a look at what the model is made of:
    $attend inspect $run
  your own text: README.md, and
    $attend train --help
END
