"""Attention in float64, sequence by sequence, after the papers."""

import math

import torch


def attend(q, k, v, scale, causal, score_vector=None):
    """One head: q [queries, d_k], k [keys, d_k], v [keys, d_v].

    softmax(Q K^T * scale) V (Vaswani et al. 2017, 3.2.1), or with the additive score
    w . tanh(q_i + k_j) (Bahdanau et al. 2014) where a vector is given.
    """
    if score_vector is None:
        scores = q @ k.T * scale
    else:
        scores = torch.tanh(q[:, None, :] + k[None, :, :]) @ score_vector * scale
    if causal:
        allowed = torch.ones(len(q), len(k), dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def attend_heads(q, k, v, heads, scale, causal, score_vector=None):
    """All heads, side by side in the columns. score_vector [heads, d_k] or None."""
    parts = zip(q.chunk(heads, dim=1), k.chunk(heads, dim=1), v.chunk(heads, dim=1))
    return torch.cat(
        [
            attend(*part, scale, causal, None if score_vector is None else score_vector[head])
            for head, part in enumerate(parts)
        ],
        dim=1,
    )


def rotate(x, positions, heads):
    """Rotary positions (Su et al. 2021): turns the pairs (2i, 2i + 1) of each head by
    position * 10000^(-2i / width), as complex numbers."""
    rows, columns = x.shape
    width = columns // heads
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = positions.double()[:, None] * frequencies
    turns = torch.polar(torch.ones_like(angles), angles)[:, None, :]
    pairs = torch.view_as_complex(x.contiguous().reshape(rows, heads, width // 2, 2))
    return torch.view_as_real(pairs * turns).reshape(rows, columns)


def sinusoidal_positions(count, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(same) (3.5)."""
    angles = torch.arange(count, dtype=torch.float64)[:, None] / 10000.0 ** (
        torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    )
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(count, d_model)
