#!/usr/bin/env python3
r"""Writes tests/fixtures/adam.safetensors: some steps of PyTorch's Adam and AdamW in float64.

    /usr/bin/python3 tests/reference/adam_fixture.py tests/fixtures/adam.safetensors

In a case `c`: `c/weights` to begin with, `c/gradients` [steps, weights], `c/after` [steps, weights].
"""

import sys

import numpy as np
import torch

from fixture_file import rounded_normal, write_safetensors

COUNT, STEPS = 37, 6
CASES = {
    "adam": (torch.optim.Adam, 0.0),
    "adam with decay": (torch.optim.Adam, 0.05),
    "adamw": (torch.optim.AdamW, 0.05),
}

tensors = {}
generator = np.random.default_rng(2015)
for name, (optimizer_class, weight_decay) in CASES.items():
    weights = torch.tensor(rounded_normal(generator, COUNT), requires_grad=True)
    gradients = rounded_normal(generator, (STEPS, COUNT))
    gradients[:, 3] *= 1e-6  # far below and above the others
    gradients[:, 4] *= 1e6
    gradients = gradients.astype(np.float32).astype(np.float64)
    tensors[f"{name}/weights"] = weights.detach().numpy().copy()
    tensors[f"{name}/gradients"] = gradients
    optimizer = optimizer_class(
        [weights], lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=weight_decay
    )
    after = []
    for gradient in gradients:
        weights.grad = torch.tensor(gradient)
        optimizer.step()
        after.append(weights.detach().numpy().copy())
    tensors[f"{name}/after"] = np.stack(after)
write_safetensors(sys.argv[1], tensors)
