#!/bin/sh
# Pairs: sentences align, lists and paragraphs too, what cannot be used is left out, and what
# packages of dev and test say is nowhere in train.
scripts=$1
. "$(dirname "$0")/check.sh"
cd "$work" || exit 1

# 60 packages with a text of their own and a sentence that all share; then special cases.
awk -v lang=en 'BEGIN { for (i = 1; i <= 60; i++) {
  word = sprintf("%c%c", 97 + i % 26, 97 + int(i / 26))
  printf "Package: p%s\nDescription-md5: %032d\nDescription-en: tool for %s files\n", word, i, word
  printf " The %s tool reads files, e.g. Old ones. It writes\n new %s files.\n .\n  * fast %s list\n", word, word, word
  printf "    with a second line\n  * small %s list\n .\n All of them share this sentence.\n\n", word } }' >en
awk 'BEGIN { for (i = 1; i <= 60; i++) {
  word = sprintf("%c%c", 97 + i % 26, 97 + int(i / 26))
  printf "Package: p%s\nDescription-md5: %032d\nDescription-de: Werkzeug für %s-Dateien\n", word, i, word
  printf " Das Werkzeug %s liest Dateien, z. B. Alte. Es schreibt\n neue Dateien für %s.\n .\n  * schnelle Liste %s\n", word, word, word
  printf "    mit zweiter Zeile\n  * kleine Liste %s\n .\n Diesen Satz haben alle.\n\n", word } }' >de
cat >>en <<'END'
Package: special
Description-md5: aaa
Description-en: identical words
 Left as it is.
 .
 One sentence here. Another sentence that is rather long and goes on with many words so that the
 whole part cannot be kept, since it has more words than a part of several sentences may have.

Package: alone
Description-md5: bbb
Description-en: never translated
 This text has no translation yet.

END
cat >>de <<'END'
Package: special
Description-md5: aaa
Description-de: identical words
 <trans>
 .
 Ein Satz, der hier steht und der mit dem anderen Satz zu einem einzigen langen Satz geworden ist,
 sodass sich nicht mehr sagen lässt, was was ist, und der auch noch mehr als dreißig Wörter hat.

END
perl "$scripts/pair-descriptions.pl" en de de . 20 2>log || {
  cat log
  exit 1
}

same 'test has as many pairs as asked for' 20 "$(wc -l <test.en)"
same 'dev too' 20 "$(wc -l <dev.de)"
same 'train is as long in both languages' "$(wc -l <train.en)" "$(wc -l <train.de)"
paste train.en train.de >train
holds 'abbreviations end no sentence' \
  grep -q "^The \(..\) tool reads files, e\.g\. Old ones\.	Das Werkzeug \1 liest Dateien, z\. B\. Alte\.$" train
holds 'lines are joined, sentences split' grep -q "^It writes new \(..\) files\.	Es schreibt neue Dateien für \1\.$" train
holds 'list items are parts' grep -q "^fast \(..\) list with a second line	schnelle Liste \1 mit zweiter Zeile$" train
cat train.en test.en dev.en >all
same 'identical, placeholder and unalignable texts are left out' '' \
  "$(grep -e identical -e 'Left as' -e 'Another sentence' all)"
same 'the text without a translation is found' \
  'alone	never translated	This text has no translation yet.' "$(cat untranslated.tsv)"

# Which package a pair is of shows in its two-letter word.
words() { grep -o '\b[a-z][a-c]\b' "$1" | sort -u; }
for held_out in test.en dev.en; do
  words train.en >train.words
  words "$held_out" >held_out.words
  same "no package of $held_out is in train" '' "$(comm -12 train.words held_out.words)"
done

same 'a sentence of train and test is in test' '' "$(grep share train.en dev.en)"
holds 'once' [ "$(grep -c share test.en)" = 1 ]

mkdir again
perl "$scripts/pair-descriptions.pl" en de de again 20 2>>log
for file in train.en train.de dev.en test.de untranslated.tsv; do
  holds "$file is the same every time" cmp "$file" "again/$file"
done

perl "$scripts/pair-descriptions.pl" en /dev/null de again 2>err
same 'nothing translated is an error' 'yes' \
  "$(grep -q 'translates no description' err && echo yes)"
finish
