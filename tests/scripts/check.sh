#!/bin/sh
# Sourced by the tests beside it: a scratch folder, and checks that say what failed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# same WHAT EXPECTED FOUND
same() {
  if [ "$2" != "$3" ]; then
    printf '%s\n  expected: %s\n  found:    %s\n' "$1" "$2" "$3" >&2
    failures=$((failures + 1))
  fi
}

# holds WHAT COMMAND...: the command succeeds
holds() {
  what=$1
  shift
  "$@" || {
    printf '%s\n  failed: %s\n' "$what" "$*" >&2
    failures=$((failures + 1))
  }
}

finish() {
  [ "$failures" = 0 ] || exit 1
}
