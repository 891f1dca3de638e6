#!/bin/sh
# Training speed and memory of attend beside PyTorch's, as a Markdown table on stdout. The machine
# should have nothing else to do. Arguments go on to bench/peers/compare_train.py: --preset, --steps.
set -eu
cd "$(dirname "$0")/.."

scripts/install-deps.sh >&2
cmake --preset release >&2
cmake --build --preset release --parallel "$(nproc)" --target attend_cli >&2
if ! scripts/install-deps.sh peers >&2; then
  echo "bench: without PyTorch" >&2
  set -- --without-peers "$@"
fi
exec /usr/bin/python3 bench/peers/compare_train.py build/release/src/attend/attend "$@"
