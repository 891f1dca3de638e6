#!/usr/bin/python3
"""Training speed of PyTorch on real sentences, which it must pad: part of an epoch, for so long.

  pytorch_epoch.py SOURCE TARGET --vocabulary N [--precision P] [--threads N] [--seconds S]

SOURCE and TARGET hold the numbers of pieces, a sentence a line (`attend tokenizer encode --ids`).
Sentences are sorted by length and cut into batches of as many real tokens as attend's, of the side
that has more; the batches come in random order. Prints one JSON object.
"""

import argparse
import json
import random
import time

from pytorch_model import PRECISIONS, PRESETS, Trainer

BEGIN, END = 1, 2  # attend's tokenizers
IGNORED = -100  # a label that cross_entropy leaves out
WARMUP_BATCHES = 3


def read_sentences(path):
    with open(path, encoding="ascii") as lines:
        return [[int(word) for word in line.split()] + [END] for line in lines]


def cut_batches(pairs, batch_tokens):
    """Runs of the length-sorted pairs, each at most `batch_tokens` tokens on either side."""
    batches, sums = [[]], [0, 0]
    for pair in sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]))):
        sums = [sums[0] + len(pair[0]), sums[1] + len(pair[1])]
        if batches[-1] and max(sums) > batch_tokens:
            batches.append([])
            sums = [len(pair[0]), len(pair[1])]
        batches[-1].append(pair)
    return batches


def pad(torch, sentences, filler):
    longest = max(len(sentence) for sentence in sentences)
    return torch.tensor([sentence + [filler] * (longest - len(sentence))
                         for sentence in sentences])


def tensors_of(torch, batch):
    """source, target input, labels, source mask"""
    source = pad(torch, [pair[0] for pair in batch], END)
    target = pad(torch, [[BEGIN] + pair[1][:-1] for pair in batch], END)
    labels = pad(torch, [pair[1] for pair in batch], IGNORED)
    lengths = torch.tensor([len(pair[0]) for pair in batch])
    hidden = torch.arange(source.shape[1]) >= lengths.unsqueeze(1)
    mask = torch.zeros(source.shape).masked_fill(hidden, float("-inf"))[:, None, None, :]
    return source, target, labels, mask


def measure(args):
    import torch

    pairs = list(zip(read_sentences(args.source), read_sentences(args.target)))
    longest = max(max(len(source), len(target)) for source, target in pairs)
    shape = dict(PRESETS["tiny"], vocabulary=args.vocabulary, length=longest)
    trainer = Trainer(torch, shape, args.precision, args.threads)
    batches = cut_batches(pairs, args.batch_tokens)
    random.Random(1).shuffle(batches)
    for batch in batches[-WARMUP_BATCHES:]:
        trainer.step(*tensors_of(torch, batch))
    tokens, real, positions, done, seconds = 0, 0, 0, 0, 0.0
    begin = time.perf_counter()
    for batch in batches:
        source, target, labels, mask = tensors_of(torch, batch)
        trainer.step(source, target, labels, mask)
        tokens += sum(len(pair[1]) for pair in batch)
        real += sum(len(pair[0]) + len(pair[1]) for pair in batch)
        positions += source.numel() + target.numel()
        done += 1
        seconds = time.perf_counter() - begin
        if seconds >= args.seconds:
            break
    return {
        "program": f"PyTorch {torch.__version__}",
        "precision": args.precision,
        "workers": args.threads,
        "epoch_target_tokens": sum(len(target) for _, target in pairs),
        "epoch_batches": len(batches),
        "batches": done,
        "target_tokens": tokens,
        "seconds": seconds,
        "target_tokens_per_second": tokens / seconds,
        "padding": 1 - real / positions,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--vocabulary", type=int, required=True)
    parser.add_argument("--precision", choices=PRECISIONS, default="bfloat16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=60)
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
