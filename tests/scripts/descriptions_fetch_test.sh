#!/bin/sh
# The fetching script with files that are given: complete or absent, and refusals that help.
scripts=$1
. "$(dirname "$0")/check.sh"
cd "$work" || exit 1
awk 'BEGIN { for (i = 1; i <= 9000; i++) printf "Package: p%d\nDescription-md5: %d\nDescription-en: the text of %c%c%c%c\n words here\n\n", i, i, 97 + i % 26, 97 + int(i / 26) % 26, 97 + int(i / 676) % 26, 97 + i % 26 }' >en
sed -e 's/-en: the text of/-de: der Text von/' -e 's/words here/Wörter hier/' en >de
gzip -k en

holds 'two local files will do' "$scripts/debian-descriptions.sh" out/data de en.gz de >log 2>&1
same 'test data is there' 1000 "$(wc -l <out/data/test.de)"
same 'no scratch folder is left' 'data' "$(ls -A out)"
rm en en.gz
holds 'what is there is reused' "$scripts/debian-descriptions.sh" out/data de en.gz de

"$scripts/debian-descriptions.sh" out/other de missing de 2>err
same 'a missing file fails' 1 $?
holds 'and is named' grep -q 'missing: no such file' err
same 'nothing half made is left' 'data' "$(ls -A out)"
"$scripts/debian-descriptions.sh" out/other de missing 2>err
same 'a wrong call is told the usage' 2 $?
finish
