#!/bin/sh
# Trains with --memory inside a control group of just that size, in which one page more is the end of
# the process: sentences of every length, validation by loss and by translations, checkpoints.
#   scripts/test-memory.sh [PRESET [MEMORY [more options of attend train]]]
set -eu
cd "$(dirname "$0")/.."

preset=${1:-base}
memory=${2:-2G}
if [ $# -gt 2 ]; then shift 2; else set --; fi
attend=$PWD/build/release/src/attend/attend
[ -x "$attend" ] || { echo "$attend is missing: make release" >&2; exit 2; }

group=
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/attend-memory.$$
  limit=memory.max
elif [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/attend-memory.$$
  limit=memory.limit_in_bytes
fi
if [ -z "$group" ] || ! mkdir "$group" 2>/dev/null; then
  echo "skipped: control groups cannot be made here" >&2
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"; rmdir "$group" 2>/dev/null || true' EXIT
echo "$memory" >"$group/$limit"
[ -f "$group/memory.swap.max" ] && echo 0 >"$group/memory.swap.max"

# 20 000 pairs of 1 to 190 words, most of them short.
awk 'BEGIN {
  srand(1)
  for (i = 0; i < 20000; ++i) {
    n = int(1 + (rand() ^ 4) * 190); line = ""
    for (j = 0; j < n; ++j) line = line (j ? " " : "") "w" int(rand() * rand() * 3000)
    print line >(i < 19900 ? "'"$work"'/train" : "'"$work"'/valid")
  }
}'
tr w v <"$work/train" >"$work/train.target"
tr w v <"$work/valid" >"$work/valid.target"
printf 'preset %s, --memory %s: ' "$preset" "$memory"
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
  "$attend" train --preset "$preset" --memory "$memory" --run "$work/run" \
  --train-source "$work/train" --train-target "$work/train.target" \
  --valid-source "$work/valid" --valid-target "$work/valid.target" \
  --vocabulary-size 8000 --stop-after 24u --validate-every 8u --log-every 1 \
  --lane-tokens 4096 --batch-tokens 8192 "$@" 2>"$work/log" || {
  status=$?
  tail -n 5 "$work/log" >&2
  exit $status
}
grep '^memory: ' "$work/log"
awk -F'"peak_resident_bytes":' '/"train"/ { split($2, a, /[,}]/); peak = a[1] }
  END { printf "peak resident memory %.0f MiB\n", peak / 1048576 }' "$work/run/log.jsonl"
