#!/usr/bin/python3
"""Training speed and memory of PyTorch on the jobs of `attend bench train`.

The same model, the same batch of random tokens and the same optimizer. Sequences of a batch are
equally long, so PyTorch has no padding to carry. Prints one JSON object:

  pytorch_train.py --preset tiny --precision bfloat16 --threads 2
"""

import argparse
import json
import resource
import statistics
import time

from pytorch_model import PRECISIONS, PRESETS, Trainer


def measure(preset, precision, threads, steps, warmup):
    """Seconds of a step, after `warmup` steps that are not counted."""
    import torch

    shape = PRESETS[preset]
    trainer = Trainer(torch, shape, precision, threads)
    size = (shape["pairs"], shape["length"])
    seconds = []
    for step in range(warmup + steps):
        batch = [torch.randint(0, shape["vocabulary"], size) for _ in range(3)]
        begin = time.perf_counter()
        trainer.step(*batch)
        if step >= warmup:
            seconds.append(time.perf_counter() - begin)
    return {
        "program": f"PyTorch {torch.__version__}",
        "preset": preset,
        "precision": precision,
        "workers": threads,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "median_seconds": statistics.median(seconds),
        "best_seconds": min(seconds),
        "target_tokens_per_second": shape["pairs"] * shape["length"] / statistics.median(seconds),
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--precision", choices=PRECISIONS, default="bfloat16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    args = parser.parse_args()
    print(json.dumps(measure(args.preset, args.precision, args.threads, args.steps, args.warmup)))


if __name__ == "__main__":
    main()
