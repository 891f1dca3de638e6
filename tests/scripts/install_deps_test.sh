#!/bin/sh
# What the installer of packages says to one who may not install. dpkg-query, apt-get and id are
# replaced by programs that say what the case needs.
scripts=$1
. "$(dirname "$0")/check.sh"
cd "$work" || exit 1
mkdir bin
fake() { # fake NAME BODY
  printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
  chmod +x "bin/$1"
}
fake id 'echo 1000'
fake apt-get 'echo "apt-get was called" >&2; exit 1'
PATH=$work/bin:$PATH

fake dpkg-query 'case "$*" in *libdnnl-dev*|*ninja-build*) exit 1 ;; esac; printf "ii "'
"$scripts/install-deps.sh" 2>err
same 'not being root is a failure' 1 $?
same 'the command is given in full' \
  '  sudo apt-get update && sudo apt-get install --no-install-recommends ninja-build libdnnl-dev ' \
  "$(grep sudo err)"

fake dpkg-query 'printf "ii "'
"$scripts/install-deps.sh" dev peers 2>err
same 'nothing to do is a success' 0 $?
same 'without a word' '' "$(cat err)"

"$scripts/install-deps.sh" nonsense 2>err
same 'an unknown group is a wrong call' 2 $?
finish
