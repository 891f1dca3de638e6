#!/usr/bin/python3
"""attend and PyTorch on the same training steps, side by side, as a Markdown table.

  compare_train.py ATTEND [--preset tiny|base] [--steps N] [--without-peers]

Each set-up (preset, precision, threads) runs by itself, attend and then PyTorch, so that both meet
the same machine. Utilisation is the step's arithmetic, as attend counts it from the model, over the
time and over the rate of oneDNN on as many cores, in the same precision, as attend measured it just
before.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_train.py")
THREADS = [1, 2]


def cpu():
    """The CPU's name, and whether it multiplies bfloat16."""
    name, has_bfloat16 = platform.machine(), False
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() in ("flags", "Features"):
                has_bfloat16 = bool({"avx512_bf16", "amx_bf16", "bf16"} & set(value.split()))
    return name, has_bfloat16


def run(command):
    """The last line of the command's output as JSON."""
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    return json.loads(output[output.index("{"):])


def row(program, preset, precision, threads, result, flops, machine):
    """One line of the table."""
    return (f"| {preset} | {precision} | {threads} | {program} "
            f"| {result['target_tokens_per_second']:.0f} "
            f"| {result['best_target_tokens_per_second']:.0f} "
            f"| {100 * flops / result['median_seconds'] / machine:.0f}% "
            f"| {result['peak_resident_bytes'] / 1e6:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("attend")
    parser.add_argument("--preset", action="append", choices=["tiny", "base"])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--without-peers", action="store_true")
    args = parser.parse_args()
    name, has_bfloat16 = cpu()
    cores = len(os.sched_getaffinity(0))
    print(f"{name}, {cores} cores, {datetime.date.today()}, `make bench`\n")
    print("| preset | precision | threads | program | target tokens/s, median | best "
          "| utilisation | peak memory, MB |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for preset in args.preset or ["tiny", "base"]:
        for precision in ["float32"] + (["bfloat16"] if has_bfloat16 else []):
            for threads in [n for n in THREADS if n <= cores]:
                common = ["--preset", preset, "--precision", precision, "--steps", str(args.steps)]
                ours = run([args.attend, "bench", "train", "--json", "--workers", str(threads)]
                           + common)
                measures = ours["step_flops"], ours["machine_flops"]
                print(row("attend", preset, precision, threads, ours, *measures), flush=True)
                if not args.without_peers:
                    peer = run([sys.executable, PEER, "--threads", str(threads)] + common)
                    print(row(peer["program"], preset, precision, threads, peer, *measures),
                          flush=True)


if __name__ == "__main__":
    main()
