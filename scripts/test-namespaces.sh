#!/bin/sh
# Trains on two ranks that share nothing but a network, and compares the model with that of two
# ranks side by side: the bits must be the same. The second rank has a network, IPC, host name and
# file system view of its own: it sees neither the data nor the run, nor /tmp, nor shared memory. Then
# the link between the two is cut, and the job has to end soon and say why.
#   scripts/test-namespaces.sh [ATTEND]
set -eu
cd "$(dirname "$0")/.."
attend=$(realpath "${1:-build/release/src/attend/attend}")

skip() {
  echo "test-namespaces: skipped: $1"
  exit 0
}
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
for program in ip unshare mpirun; do
  command -v $program >/dev/null || skip "there is no $program"
done
[ -x "$attend" ] || skip "there is no $attend: run make first"
module=$(dirname "$attend")/attend_mpi.so
[ -e "$module" ] || skip "attend was built without MPI: there is no $module"

name=attend$$
near=$name-a far=$name-b
bin=/run/$name # the one folder that both see: the command and nothing else
work=$(mktemp -d)
cleanup() {
  ip netns del "$near" 2>/dev/null || true
  ip netns del "$far" 2>/dev/null || true
  rm -rf "$work" "$bin"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ip netns add "$near" 2>"$work/why" || skip "network namespaces are refused: $(cat "$work/why")"
ip netns add "$far"
ip link add near0 netns "$near" type veth peer name far0 netns "$far" 2>"$work/why" ||
  skip "virtual network links are refused: $(cat "$work/why")"
ip -n "$near" addr add 10.77.0.1/24 dev near0
ip -n "$far" addr add 10.77.0.2/24 dev far0
for side in "$near lo" "$near near0" "$far lo" "$far far0"; do
  ip -n "${side% *}" link set "${side#* }" up
done

mkdir "$bin"
cp "$attend" "$module" "$bin"
awk 'BEGIN {
  srand(1)
  split("the a my our this", det); split("dog cat house tree book garden sea", noun)
  split("is sees has likes", verb)
  for (i = 0; i < 2000; i++)
    print det[1 + int(rand() * 5)], noun[1 + int(rand() * 7)], verb[1 + int(rand() * 4)],
          det[1 + int(rand() * 5)], noun[1 + int(rand() * 7)]
}' >"$work/train.en"
tr '[:lower:]' '[:upper:]' <"$work/train.en" >"$work/train.xx"
head -n 50 "$work/train.en" >"$work/dev.en"
head -n 50 "$work/train.xx" >"$work/dev.xx"

# What mpirun calls in place of ssh: AGENT HOST COMMAND...
cat >"$bin/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $far unshare --mount --ipc --uts sh -c '
  hostname $far
  mount --make-rprivate / && mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm || exit 1
  if [ -e "$work/train.en" ]; then echo "agent: the data can be seen" >&2; exit 1; fi
  exec sh -c "\$*"' sh "\$@"
AGENT
chmod +x "$bin/agent"

# train RUN UPDATES COMMAND...: with what stands before attend
train() {
  run=$1 updates=$2
  shift 2
  "$@" "$bin/attend" train --train-source "$work/train.en" --train-target "$work/train.xx" \
    --valid-source "$work/dev.en" --valid-target "$work/dev.xx" --vocabulary-size 300 \
    --preset tiny --ema 0.99 --batch-tokens 1000 --stop-after "$updates" --workers 1 \
    --validate-every 20u --checkpoint-every 20u --log-every 10 --seed 5 --run "$work/$run"
}
apart() {
  train "$1" "$2" ip netns exec "$near" mpirun --allow-run-as-root -n 2 \
    --host 10.77.0.1:1,10.77.0.2:1 --mca plm_rsh_agent "$bin/agent" --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
    --mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3
}
bytes_over_link() { ip netns exec "$far" cat /sys/class/net/far0/statistics/rx_bytes; }

train together 40u mpirun --allow-run-as-root --oversubscribe -n 2 >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
before=$(bytes_over_link)
apart apart 40u >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
echo "two ranks that share only a network trained 40 updates;" \
  "$(($(bytes_over_link) - before)) bytes went to the second one"
(cd "$work" && sha256sum together/model.safetensors apart/model.safetensors)
cmp "$work/together/model.safetensors" "$work/apart/model.safetensors"

apart cut 1000000u >"$work/log" 2>&1 &
job=$!
tries=0
until grep -q '"update":40,' "$work/cut/log.jsonl" 2>/dev/null; do
  tries=$((tries + 1))
  if [ $tries -gt 600 ] || ! kill -0 $job 2>/dev/null; then
    cat "$work/log" >&2
    exit 1
  fi
  sleep 0.1
done
start=$(date +%s)
ip -n "$far" link set far0 down
if wait $job; then
  echo "test-namespaces: the job ended well although the link was cut" >&2
  exit 1
fi
took=$(($(date +%s) - start))
echo "the link was cut; $took s later the job had ended and said:"
grep -i -E 'error:|has not been heard|lost|no longer' "$work/log" | head -n 3
[ $took -le 30 ]
ls "$work/cut/checkpoints"
