#!/usr/bin/python3
"""Training speed and memory of PyTorch on the jobs of `attend bench train`.

The same model (Vaswani et al. 2017: post-norm, ReLU, all embeddings tied, residual dropout, label
smoothing 0.1), the same batch of random tokens and the same optimizer (Adam). Sequences of a batch
are equally long, so PyTorch has no padding to carry. Prints one JSON object a set-up:

  pytorch_train.py                      all precisions and thread counts of both presets
  pytorch_train.py --preset tiny --precision bfloat16 --threads 2

Each set-up runs in a process of its own, so that peak memory is its own. Runs with Debian's
python3-torch (1.13) and later.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time

PRESETS = {
    "tiny": dict(layers=4, d_model=128, d_ff=256, heads=4, dropout=0.3, vocabulary=10000,
                 pairs=128, length=16),
    "base": dict(layers=6, d_model=512, d_ff=2048, heads=8, dropout=0.1, vocabulary=32000,
                 pairs=32, length=32),
}
PRECISIONS = ["float32", "bfloat16"]
THREADS = [1, 2]


def build(torch, shape):
    """The Transformer of a preset as a module: (source, target input) -> logits."""
    nn, functional = torch.nn, torch.nn.functional
    d_model, heads, dropout = shape["d_model"], shape["heads"], shape["dropout"]

    def split_heads(x):
        return x.unflatten(-1, (heads, d_model // heads)).transpose(1, 2)

    def attend(query, key, value, mask):
        scores = split_heads(query) @ split_heads(key).transpose(-1, -2)
        scores = scores * (d_model // heads) ** -0.5
        if mask is not None:
            scores = scores + mask
        return (scores.softmax(-1) @ split_heads(value)).transpose(1, 2).flatten(2)

    class SelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.inputs = nn.Linear(d_model, 3 * d_model)
            self.output = nn.Linear(d_model, d_model)

        def forward(self, x, mask):
            return self.output(attend(*self.inputs(x).chunk(3, -1), mask))

    class CrossAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.Linear(d_model, d_model)
            self.memory = nn.Linear(d_model, 2 * d_model)
            self.output = nn.Linear(d_model, d_model)

        def forward(self, x, memory):
            return self.output(attend(self.query(x), *self.memory(memory).chunk(2, -1), None))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(d_model, shape["d_ff"])
            self.outer = nn.Linear(shape["d_ff"], d_model)

        def forward(self, x):
            return self.outer(functional.relu(self.inner(x)))

    class Layer(nn.Module):
        def __init__(self, is_decoder):
            super().__init__()
            self.self_attention = SelfAttention()
            self.cross_attention = CrossAttention() if is_decoder else None
            self.feed_forward = FeedForward()
            self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 + is_decoder))

        def residual(self, x, output, norm):
            return norm(x + functional.dropout(output, dropout, self.training))

        def forward(self, x, memory=None, mask=None):
            x = self.residual(x, self.self_attention(x, mask), self.norms[0])
            if self.cross_attention is not None:
                x = self.residual(x, self.cross_attention(x, memory), self.norms[1])
            return self.residual(x, self.feed_forward(x), self.norms[-1])

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(shape["vocabulary"], d_model)
            nn.init.normal_(self.embedding.weight, std=d_model ** -0.5)
            self.encoder = nn.ModuleList(Layer(False) for _ in range(shape["layers"]))
            self.decoder = nn.ModuleList(Layer(True) for _ in range(shape["layers"]))
            length = shape["length"]
            position = torch.arange(length).unsqueeze(1)
            rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
            table = torch.cat([torch.sin(position * rate), torch.cos(position * rate)], 1)
            self.register_buffer("positions", table)
            mask = torch.full((length, length), float("-inf")).triu(1)
            self.register_buffer("mask", mask)

        def embed(self, tokens):
            x = self.embedding(tokens) * math.sqrt(d_model) + self.positions
            return functional.dropout(x, dropout, self.training)

        def forward(self, source, target):
            memory = self.embed(source)
            for layer in self.encoder:
                memory = layer(memory)
            x = self.embed(target)
            for layer in self.decoder:
                x = layer(x, memory, self.mask)
            return functional.linear(x, self.embedding.weight)

    return Transformer()


def measure(preset, precision, threads, steps, warmup):
    """Seconds of each step, after `warmup` steps that are not counted."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    shape = PRESETS[preset]
    model = build(torch, shape).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    size = (shape["pairs"], shape["length"])
    seconds = []
    for step in range(warmup + steps):
        source, target, labels = (torch.randint(0, shape["vocabulary"], size) for _ in range(3))
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(source, target)
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step >= warmup:
            seconds.append(time.perf_counter() - begin)
    tokens = shape["pairs"] * shape["length"]
    return {
        "program": f"pytorch {torch.__version__}",
        "preset": preset,
        "precision": precision,
        "workers": threads,
        "parameters": sum(p.numel() for p in model.parameters()),
        "median_seconds": statistics.median(seconds),
        "best_seconds": min(seconds),
        "target_tokens_per_second": tokens / statistics.median(seconds),
        "best_target_tokens_per_second": tokens / min(seconds),
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS)
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    args = parser.parse_args()
    if args.preset and args.precision and args.threads:
        print(json.dumps(measure(args.preset, args.precision, args.threads, args.steps,
                                 args.warmup)), flush=True)
        return
    for preset in [args.preset] if args.preset else PRESETS:
        for precision in [args.precision] if args.precision else PRECISIONS:
            for threads in [args.threads] if args.threads else THREADS:
                subprocess.run([sys.executable, __file__, "--preset", preset, "--precision",
                                precision, "--threads", str(threads), "--steps", str(args.steps),
                                "--warmup", str(args.warmup)], check=True)


if __name__ == "__main__":
    main()
