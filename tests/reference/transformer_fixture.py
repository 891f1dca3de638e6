#!/usr/bin/env python3
r"""Writes tests/fixtures/transformer.safetensors: loss and all gradients of small whole models, by
PyTorch's autograd in float64 over transformer.py.

    /usr/bin/python3 tests/reference/transformer_fixture.py tests/fixtures/transformer.safetensors

In a case `c`: `c/weights/…`, `c/gradients/…` (of the loss a target token), `c/loss` (the sum), the
batch as ids end to end with offsets, and in the metadata `c` the configuration as config.json has it.
"""

import json
import sys

import numpy as np
import torch

from fixture_file import rounded_normal, write_safetensors
from transformer import Transformer, weight_shapes

PLAIN = dict(
    format=1, attend_version="0", source_vocabulary_size=13, target_vocabulary_size=13,
    encoder_layers=2, decoder_layers=2, d_model=8, d_ff=12, heads=2, d_k=0, d_v=0, dropout=0.0,
    attention_dropout=0.0, ffn_dropout=0.0, embedding_dropout=-1.0, label_smoothing=0.1,
    positions="sinusoidal", norm="post", activation="relu", tied_embeddings="all",
    attention_score="scaled_dot_product", max_length=16,
)  # fmt: skip
TWO_TABLES = dict(source_vocabulary_size=9)
CASES = {
    "the paper": {},
    "pre-norm": dict(norm="pre"),
    "gelu, rotary, tied decoder": dict(
        TWO_TABLES, norm="pre", activation="gelu", positions="rotary", tied_embeddings="decoder",
        d_k=6, d_v=3,
    ),
    "silu, learned, not tied": dict(
        TWO_TABLES, activation="silu", positions="learned", tied_embeddings="none"
    ),
    "rotary": dict(positions="rotary", heads=4),
    "additive": dict(attention_score="additive", activation="silu"),
    "additive, pre-norm, learned": dict(
        TWO_TABLES, attention_score="additive", norm="pre", positions="learned",
        activation="gelu", tied_embeddings="none", d_k=3, d_v=5,
    ),
    "odd sizes": dict(
        TWO_TABLES, d_model=6, d_ff=7, heads=3, d_k=5, d_v=7, tied_embeddings="decoder",
        activation="silu",
    ),
    "one head, odd, pre-norm": dict(d_model=10, d_ff=5, heads=1, d_k=2, d_v=1, norm="pre"),
}  # fmt: skip
PAIR_LENGTHS = [(5, 4), (1, 1), (7, 9), (2, 6), (3, 1)]  # source, target


def offsets_of(lengths):
    return np.cumsum([0, *lengths]).astype(np.int32)


def scale_of(name, shape):
    if name.endswith(("bias", "gain")):
        return 0.3
    return shape[1] ** -0.5


def make_weights(config, generator):
    weights = {}
    for name, shape in weight_shapes(config).items():
        values = rounded_normal(generator, shape, scale_of(name, shape))
        if name.endswith("gain"):
            values = (1 + values).astype(np.float32).astype(np.float64)
        weights[name] = torch.tensor(values, requires_grad=True)
    return weights


tensors, metadata = {}, {}
generator = np.random.default_rng(1706_03762)
for case, changes in CASES.items():
    config = dict(PLAIN, **changes)
    weights = make_weights(config, generator)
    model = Transformer(config, weights)
    columns = {"source": [], "target": [], "target_output": []}
    loss = 0
    for source_length, target_length in PAIR_LENGTHS:
        pair = {
            "source": generator.integers(0, config["source_vocabulary_size"], source_length),
            "target": generator.integers(0, config["target_vocabulary_size"], target_length),
            "target_output": generator.integers(0, config["target_vocabulary_size"], target_length),
        }
        for name, ids in pair.items():
            columns[name].append(ids)
        loss = loss + model.loss(*(torch.tensor(ids) for ids in pair.values()))
    tokens = sum(target for _, target in PAIR_LENGTHS)
    gradients = torch.autograd.grad(loss / tokens, list(weights.values()))
    for (name, value), gradient in zip(weights.items(), gradients):
        tensors[f"{case}/weights/{name}"] = value.detach().numpy()
        tensors[f"{case}/gradients/{name}"] = gradient.numpy()
    for name, parts in columns.items():
        tensors[f"{case}/{name}"] = np.concatenate(parts).astype(np.int32)
    tensors[f"{case}/source_offsets"] = offsets_of([source for source, _ in PAIR_LENGTHS])
    tensors[f"{case}/target_offsets"] = offsets_of([target for _, target in PAIR_LENGTHS])
    tensors[f"{case}/loss"] = np.float64(loss.item())
    metadata[case] = json.dumps(config)
write_safetensors(sys.argv[1], tensors, metadata)
