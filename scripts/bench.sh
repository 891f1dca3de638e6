#!/bin/sh
# attend's speed on this machine as one Markdown document, on stdout and in build/bench.md. The
# machine should have nothing else to do. Arguments go on to bench/report.py (see --help there).
set -eu
cd "$(dirname "$0")/.."

{
  scripts/install-deps.sh
  cmake --preset release -DATTEND_BENCH=ON
  cmake --build --preset release --parallel "$(nproc)" --target attend_cli kernels_bench
  scripts/install-deps.sh peers || echo "bench: some of PyTorch's packages are missing"
} >&2
exec /usr/bin/python3 bench/report.py "$@"
