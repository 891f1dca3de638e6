#!/usr/bin/env python3
r"""Writes tests/fixtures/ops.safetensors: values and gradients of every op, by PyTorch's autograd in
float64, from inputs that float32 holds exactly.

    /usr/bin/python3 tests/reference/ops_fixture.py tests/fixtures/ops.safetensors

(Debian's python3-torch.) In a case `c`: `c/x` and the like are inputs, `c/out` the value, `c/d_out`
the gradient that flows in, `c/d_x` the one that flows to `c/x`.
"""

import sys

import numpy as np
import torch
from torch.nn import functional

import attention
from fixture_file import dropout_factors, rounded_normal, write_safetensors

tensors = {}
generator = np.random.default_rng(20170612)


def normal(*shape, scale=1.0):
    return torch.tensor(rounded_normal(generator, shape, scale), requires_grad=True)


def put(name, value):
    tensors[name] = value.detach().numpy() if torch.is_tensor(value) else np.asarray(value)


def record(case, inputs, out, **integers):
    """Stores the inputs, out, a random gradient of out and the gradients of the inputs."""
    d_out = normal(*out.shape)
    gradients = torch.autograd.grad((out * d_out).sum(), list(inputs.values()))
    for (name, value), gradient in zip(inputs.items(), gradients):
        put(f"{case}/{name}", value)
        put(f"{case}/d_{name}", gradient)
    put(f"{case}/out", out)
    put(f"{case}/d_out", d_out)
    for name, values in integers.items():
        put(f"{case}/{name}", np.array(values, dtype=np.int32))


def linear_cases():
    for rows in (1, 2, 37):
        x, weight, bias = normal(rows, 13), normal(9, 13), normal(9)
        record(f"linear/{rows}", dict(x=x, weight=weight, bias=bias), x @ weight.T + bias)
    x, weight = normal(5, 16), normal(32, 16)
    record("linear/no bias", dict(x=x, weight=weight), x @ weight.T)


def activation_cases():
    functions = dict(relu=torch.relu, gelu=functional.gelu, silu=functional.silu)
    for name, function in functions.items():
        x = normal(5, 33, scale=2.0)
        record(f"activation/{name}", dict(x=x), function(x))
        x = normal(3, 150, scale=2.0)
        mask = torch.tensor(dropout_factors(0.3, 0x123456789ABCDEF, 5, 0, 3, 150))
        record(f"activation/{name} with dropout", dict(x=x), function(x) * mask)


def norm_cases():
    def norm(x, gain, bias):
        return functional.layer_norm(x, x.shape[1:], gain, bias, eps=1e-5)

    for columns in (6, 33, 64):
        x, gain, bias = normal(7, columns), normal(columns), normal(columns)
        record(f"layer_norm/{columns}", dict(x=x, gain=gain, bias=bias), norm(x, gain, bias))
    columns = 41
    for rate in (0.0, 0.25):
        x, y = normal(4, columns), normal(4, columns)
        gain, bias = normal(columns), normal(columns)
        mask = torch.tensor(dropout_factors(rate, 99, 2, 0, 4, columns))
        name = " with dropout" if rate > 0 else ""
        record(f"residual/plain{name}", dict(x=x, y=y), x + y * mask)
        x, y = normal(4, columns), normal(4, columns)
        inputs = dict(x=x, y=y, gain=gain, bias=bias)
        record(f"residual_norm/plain{name}", inputs, norm(x + y * mask, gain, bias))


def embedding_cases():
    ids, offsets = [3, 0, 3, 7, 1, 3, 10, 0, 5], [0, 4, 5, 9]
    places = [0, 1, 2, 3, 0, 0, 1, 2, 3]
    scale = 10**0.5
    table = normal(11, 10)
    sines = attention.sinusoidal_positions(40, 10)
    integers = dict(ids=ids, offsets=offsets)
    record("embedding/sinusoidal", dict(table=table), table[ids] * scale + sines[places], **integers)

    first = [2, 30, 0]
    later = [2, 3, 4, 5, 30, 0, 1, 2, 3]
    table = normal(11, 10)
    out = table[ids] * scale + sines[later]
    record("embedding/later", dict(table=table), out, first_positions=first, **integers)

    table, positions = normal(11, 10), normal(6, 10)
    mask = torch.tensor(dropout_factors(0.4, 7, 0, 0, 9, 10))
    out = (table[ids] * scale + positions[places]) * mask
    record("embedding/learned", dict(table=table, positions=positions), out, **integers)

    table = normal(11, 10)
    record("embedding/none", dict(table=table), table[ids] * scale, **integers)


def sequences(offsets):
    return [slice(begin, end) for begin, end in zip(offsets, offsets[1:])]


ATTENTION_SHAPES = {  # heads, d_k, d_v, additive
    "even": (4, 8, 8, False),
    "odd": (3, 5, 7, False),
    "narrow values": (2, 17, 1, False),
    "one head": (1, 1, 3, False),
    "additive": (2, 4, 4, True),
    "additive odd": (3, 5, 7, True),
}


def attention_cases():
    offsets, memory_offsets = [0, 5, 6, 14, 17], [0, 3, 10, 11, 15]
    for name, (heads, d_k, d_v, additive) in ATTENTION_SHAPES.items():
        keys, values = heads * d_k, heads * d_v
        scale = 1.0 if additive else d_k**-0.5
        shape = dict(heads=[heads], key_width=[d_k], value_width=[d_v])
        for causal in (False, True):
            qkv = normal(offsets[-1], 2 * keys + values)
            inputs = dict(qkv=qkv)
            if additive:
                inputs["score_vector"] = normal(heads, d_k)
            vector = inputs.get("score_vector")
            q, k, v = qkv.split([keys, keys, values], dim=1)
            out = torch.cat(
                [
                    attention.attend_heads(q[s], k[s], v[s], heads, scale, causal, vector)
                    for s in sequences(offsets)
                ]
            )
            kind = "causal" if causal else "full"
            record(f"self_attention/{name} {kind}", inputs, out, offsets=offsets, **shape)

        q, kv = normal(offsets[-1], keys), normal(memory_offsets[-1], keys + values)
        inputs = dict(q=q, kv=kv)
        if additive:
            inputs["score_vector"] = normal(heads, d_k)
        vector = inputs.get("score_vector")
        k, v = kv.split([keys, values], dim=1)
        out = torch.cat(
            [
                attention.attend_heads(q[s], k[m], v[m], heads, scale, False, vector)
                for s, m in zip(sequences(offsets), sequences(memory_offsets))
            ]
        )
        integers = dict(offsets=offsets, memory_offsets=memory_offsets, **shape)
        record(f"cross_attention/{name}", inputs, out, **integers)


def rotary_cases():
    positions = torch.tensor([0, 1, 2, 3, 100, 1023])
    for heads, width in ((1, 2), (4, 6), (2, 32)):
        columns = heads * width
        x = normal(len(positions), columns + 3)  # the last three columns stay as they are
        turned = attention.rotate(x[:, :columns], positions, heads)
        out = torch.cat([turned, x[:, columns:]], dim=1)
        record(f"rotate/{heads} x {width}", dict(x=x), out, positions=positions, heads=[heads])


def cross_entropy_cases():
    for rows, classes in ((1, 2), (5, 23), (300, 23)):
        for smoothing in (0.0, 0.1):
            hidden, table = normal(rows, 8), normal(classes, 8)
            targets = torch.tensor(generator.integers(0, classes, rows))
            loss = functional.cross_entropy(
                hidden @ table.T, targets, reduction="sum", label_smoothing=smoothing
            )
            gradients = torch.autograd.grad(loss * 0.37, [hidden, table])
            case = f"project_cross_entropy/{rows} x {classes}, {smoothing}"
            put(f"{case}/hidden", hidden)
            put(f"{case}/table", table)
            put(f"{case}/targets", targets.int())
            put(f"{case}/loss", np.float64(loss.item()))
            nll = functional.cross_entropy(hidden @ table.T, targets, reduction="sum")
            put(f"{case}/nll", np.float64(nll.item()))
            put(f"{case}/d_hidden", gradients[0])
            put(f"{case}/d_table", gradients[1])


def word_dropout_cases():
    ids, offsets, places = [3, 0, 3, 7, 1, 3], [0, 4, 6], [0, 1, 2, 3, 0, 1]
    factors = [0.0, 1.25, 1.25, 1.0, 0.0, 1.0]
    table, positions = normal(11, 10), normal(6, 10)
    out = table[ids] * 10**0.5 * torch.tensor(factors)[:, None] + positions[places]
    integers = dict(ids=ids, offsets=offsets)
    record("embedding/factors", dict(table=table, positions=positions), out, **integers)
    put("embedding/factors/factors", np.array(factors))


def r_drop_cases():
    """Half of the loss of Wu, Liang et al. 2021, equations 1 to 4; rows of both passes end to end."""
    alpha, smoothing = 5.0, 0.1
    for rows, classes in ((1, 2), (5, 23), (150, 23)):
        hidden, table = normal(2 * rows, 8), normal(classes, 8)
        targets = torch.tensor(generator.integers(0, classes, rows))
        log_p = torch.log_softmax(hidden @ table.T, dim=1)
        first, second = log_p.split(rows)
        kl = [
            functional.kl_div(other, this, reduction="sum", log_target=True)
            for this, other in ((first, second), (second, first))
        ]
        divergence = sum(kl) / 2
        loss, nll = (
            functional.cross_entropy(
                hidden @ table.T, targets.repeat(2), reduction="sum", label_smoothing=share
            )
            for share in (smoothing, 0.0)
        )
        total = (loss + alpha * divergence) / 2
        gradients = torch.autograd.grad(total * 0.37, [hidden, table])
        case = f"r_drop/{rows} x {classes}"
        put(f"{case}/hidden", hidden)
        put(f"{case}/table", table)
        put(f"{case}/targets", targets.int())
        put(f"{case}/loss", np.float64(loss.item() / 2))
        put(f"{case}/nll", np.float64(nll.item() / 2))
        put(f"{case}/divergence", np.float64(divergence.item()))
        put(f"{case}/d_hidden", gradients[0])
        put(f"{case}/d_table", gradients[1])


linear_cases()
activation_cases()
norm_cases()
embedding_cases()
attention_cases()
rotary_cases()
cross_entropy_cases()
word_dropout_cases()
r_drop_cases()
write_safetensors(sys.argv[1], tensors)
