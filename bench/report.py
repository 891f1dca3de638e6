#!/usr/bin/python3
"""Everything about attend's speed on this machine, as one Markdown document.

  report.py [--part training|epoch|kernels ...] [--repetitions N] [--steps N] ...

`make bench` builds what it needs and runs it with the defaults. bench/README.md says more.
"""

import argparse
import datetime
import os
import platform
import sys
import time

sys.dont_write_bytecode = True  # the source folder stays clean

from parts import common, epoch, kernels, training  # noqa: E402

PARTS = ["training", "epoch", "kernels"]


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {number}, expected at least 1")
    return number


def parse(arguments):
    build = os.path.join(common.ROOT, "build")
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.split("\n")[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be repeated")
    parser.add_argument("--preset", action="append", choices=training.PRESETS,
                        help="of the training table, only this; may be repeated")
    parser.add_argument("--repetitions", type=positive, default=5,
                        help="of each training set-up and kernel (default 5)")
    parser.add_argument("--steps", type=positive,
                        help="measured in each repetition of a training set-up (default: "
                        + ", ".join(f"{name} {n}" for name, n in training.STEPS.items()) + ")")
    parser.add_argument("--kernels", metavar="REGEX", help="only the kernels whose names match")
    parser.add_argument("--train-source", metavar="FILE", help="the epoch's text, .gz or not")
    parser.add_argument("--train-target", metavar="FILE", help="its translation, line by line")
    parser.add_argument("--peer-seconds", type=float, default=60,
                        help="of the epoch that PyTorch trains in each precision (default 60)")
    parser.add_argument("--without-peers", action="store_true", help="without PyTorch")
    parser.add_argument("--attend", default=os.path.join(build, "release/src/attend/attend"),
                        help="the program to measure")
    parser.add_argument("--kernels-bench", help="the program that measures kernels",
                        default=os.path.join(build, "release/bench/kernels_bench"))
    parser.add_argument("--output", metavar="FILE", default=os.path.join(build, "bench.md"),
                        help="the document; it goes to stdout, too")
    args = parser.parse_args(arguments)
    if bool(args.train_source) != bool(args.train_target):
        parser.error("--train-source and --train-target are given together")
    return args


def name_torch(torch, peers):
    if torch is None:
        return "not measured: not installed (`scripts/install-deps.sh peers`) or not asked for"
    left_out = "" if "float32" in peers else (
        "; float32 left out: it needs a BLAS (`scripts/install-deps.sh peers`)")
    return f"{torch[0]}, float32 by {torch[1]}, bfloat16 by oneDNN{left_out}"


def head(document, args, torch, peers):
    name, has_bfloat16 = common.cpu()
    document.write("# Benchmarks of attend\n")
    document.write("Written by `make bench`" + (f" (`{' '.join(sys.argv[1:])}`)" if sys.argv[1:]
                                                else "") + ".\n")
    rates = common.run([args.attend, "bench", "kernels"]).strip().split("\n")
    rows = [
        ["machine", f"{name}, {common.in_words(common.cores())}, "
                    f"{'with' if has_bfloat16 else 'without'} bfloat16 arithmetic, "
                    f"{platform.system()} {platform.release()}"],
        ["started", datetime.datetime.now().strftime("%Y-%m-%d %H:%M")],
        ["load average at the start", common.load_average()],
        ["matrix products", rates[0]],
        ["PyTorch", name_torch(torch, peers)],
    ]
    rows += [["oneDNN's rate", " ".join(rate.split())] for rate in rates[1:]]
    document.table(["", ""], rows)


def main():
    args = parse(sys.argv[1:])
    parts = args.part or PARTS
    torch = None if args.without_peers else common.find_torch()
    peers = common.peer_precisions(torch)
    document = common.Document(args.output)
    begin = time.monotonic()
    head(document, args, torch, peers)
    if "training" in parts:
        training.report(document, args, peers)
    if "epoch" in parts:
        epoch.report(document, args, peers)
    if "kernels" in parts:
        kernels.report(document, args)
    document.write(f"Load average at the end: {common.load_average()}, after "
                   f"{(time.monotonic() - begin) / 60:.0f} minutes.")


if __name__ == "__main__":
    main()
