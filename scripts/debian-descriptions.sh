#!/bin/sh
# Fetches the descriptions of Debian's packages with their translations and makes parallel text.
#
#   scripts/debian-descriptions.sh OUTDIR [LANGUAGE [TRANSLATION_EN TRANSLATION_XX]]
#
# LANGUAGE is one that the Debian Description Translation Project knows: de (the default), fr, it,
# da, pt_BR, es, ... apt brings the texts from where this machine's sources point to, into a private
# folder: nothing of the system is changed and no rights are needed. Where there is no apt, give the
# two files: i18n/Translation-en and i18n/Translation-XX of a Debian archive, plain or compressed.
# What OUTDIR holds in the end says scripts/pair-descriptions.pl. OUTDIR appears when it is
# complete; where it is there, nothing is done.
set -eu

if [ $# -lt 1 ] || [ $# -gt 4 ] || [ $# -eq 3 ]; then
  echo "usage: $0 OUTDIR [LANGUAGE [TRANSLATION_EN TRANSLATION_XX]]" >&2
  exit 2
fi
outdir=$1
language=${2:-de}
english_file=${3:-}
translated_file=${4:-}
here=$(cd "$(dirname "$0")" && pwd)

fail() {
  printf 'debian-descriptions: %s\n' "$*" >&2
  exit 1
}

if [ -d "$outdir" ]; then
  [ -s "$outdir/train.$language" ] ||
    fail "$outdir is there, but it holds no train.$language: name another folder or remove it"
  exit 0
fi
mkdir -p "$(dirname "$outdir")"
work=$(cd "$(dirname "$outdir")" && pwd)/.descriptions.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir -p "$work/lists/partial" "$work/cache" "$work/done"

# Unpacks FILE to stdout by the ending of its name.
unpack() {
  [ -r "$1" ] || fail "$1: no such file, or it cannot be read"
  case $1 in
    *.gz) gzip -dc "$1" ;;
    *.xz) xz -dc "$1" ;;
    *.bz2) bzip2 -dc "$1" ;;
    *) cat "$1" ;;
  esac
}

# Lets apt fetch the two translations and nothing else, beside what the system has configured.
fetch() {
  cat >"$work/apt.conf" <<CONF
#clear Acquire::Languages;
Acquire::Languages { "en"; "$language"; };
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Translations {
  MetaKey "\$(COMPONENT)/i18n/Translation-\$(LANGUAGE)";
  flatMetaKey "\$(LANGUAGE)";
  ShortDescription "Translation-\$(LANGUAGE)";
  Description "\$(RELEASE)/\$(COMPONENT) Translation-\$(LANGUAGE)";
  flatDescription "\$(RELEASE) Translation-\$(LANGUAGE)";
};
#clear APT::Update;
Acquire::Retries "3";
APT::Sandbox::User "root";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
CONF
  echo "Fetching the package descriptions in English and in '$language' (about 8 MB)."
  # One source that cannot be reached matters only if the two texts are missing in the end.
  apt-get -q -c "$work/apt.conf" update || echo "apt-get could not fetch everything." >&2
  for each in en "$language"; do
    set -- "$work/lists/"*"_i18n_Translation-$each"*
    [ -e "$1" ] || fail "no Translation-$each came. Is there a network? Do this machine's sources have it?"
    /usr/lib/apt/apt-helper cat-file "$@" >"$work/Translation-$each" ||
      fail "cannot unpack $* to $work: is the disk full?"
  done
}

if [ -n "$english_file" ]; then
  unpack "$english_file" >"$work/Translation-en" || fail "cannot unpack $english_file to $work"
  unpack "$translated_file" >"$work/Translation-$language" ||
    fail "cannot unpack $translated_file to $work"
elif command -v apt-get >/dev/null && [ -x /usr/lib/apt/apt-helper ]; then
  fetch
else
  fail "apt is not here. Fetch two files of a Debian archive by other means,
    dists/stable/main/i18n/Translation-en.xz and dists/stable/main/i18n/Translation-$language.bz2,
and call: $0 $outdir $language TRANSLATION_EN TRANSLATION_XX"
fi

echo "Pairing descriptions and splitting them into sentences."
perl "$here/pair-descriptions.pl" "$work/Translation-en" "$work/Translation-$language" \
  "$language" "$work/done" || fail "no parallel text was made; the reason is above"
mv "$work/done" "$outdir"
