"""The Transformer of Vaswani et al. 2017 in float64, one sentence at a time, written to be read.

Weights are a dict with the names that attend gives them; `config` is config.json's fields.
"""

import math

import torch
from torch.nn import functional

import attention

ACTIVATIONS = dict(relu=torch.relu, gelu=functional.gelu, silu=functional.silu)


def head_widths(config):
    per_head = config["d_model"] // config["heads"]
    return config["d_k"] or per_head, config["d_v"] or per_head


def weight_shapes(config):
    """Names and shapes of all weights."""
    d, heads = config["d_model"], config["heads"]
    d_k, d_v = head_widths(config)
    keys, values = heads * d_k, heads * d_v
    shapes = {}

    def linear(name, rows, columns):
        shapes[f"{name}.weight"] = (rows, columns)
        shapes[f"{name}.bias"] = (rows,)

    def norm(name):
        shapes[f"{name}.gain"] = shapes[f"{name}.bias"] = (d,)

    def attention_layer(name, kind):
        if kind == "self":
            linear(f"{name}.qkv", 2 * keys + values, d)
        else:
            linear(f"{name}.q", keys, d)
            linear(f"{name}.kv", keys + values, d)
        linear(f"{name}.output", d, values)
        if config["attention_score"] == "additive":
            shapes[f"{name}.score_vector"] = (heads, d_k)

    source, target = config["source_vocabulary_size"], config["target_vocabulary_size"]
    if config["tied_embeddings"] == "all":
        shapes["embedding"] = (target, d)
    else:
        shapes["encoder.embedding"] = (source, d)
        shapes["decoder.embedding"] = (target, d)
        if config["tied_embeddings"] == "none":
            shapes["output_projection"] = (target, d)
    for stack in ("encoder", "decoder"):
        if config["positions"] == "learned":
            shapes[f"{stack}.positions"] = (config["max_length"], d)
        for layer in range(config[f"{stack}_layers"]):
            name = f"{stack}.layers.{layer}"
            attention_layer(f"{name}.self_attention", "self")
            norm(f"{name}.self_attention_norm")
            if stack == "decoder":
                attention_layer(f"{name}.cross_attention", "cross")
                norm(f"{name}.cross_attention_norm")
            linear(f"{name}.feed_forward.inner", config["d_ff"], d)
            linear(f"{name}.feed_forward.outer", d, config["d_ff"])
            norm(f"{name}.feed_forward_norm")
        if config["norm"] == "pre":
            norm(f"{stack}.norm")
    return shapes


class Transformer:
    def __init__(self, config, weights):
        self.config = config
        self.weights = weights

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def layer_norm(self, name, x):
        """Ba et al. 2016."""
        gain, bias = self.weights[f"{name}.gain"], self.weights[f"{name}.bias"]
        mean = x.mean(dim=1, keepdim=True)
        variance = ((x - mean) ** 2).mean(dim=1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5) * gain + bias

    def embed(self, stack, ids):
        """Section 3.4 and 3.5."""
        tied = self.config["tied_embeddings"] == "all"
        table = self.weights["embedding" if tied else f"{stack}.embedding"]
        x = table[ids] * math.sqrt(self.config["d_model"])
        if self.config["positions"] == "sinusoidal":
            x = x + attention.sinusoidal_positions(len(ids), self.config["d_model"])
        elif self.config["positions"] == "learned":
            x = x + self.weights[f"{stack}.positions"][: len(ids)]
        return x

    def multi_head(self, name, q, k, v, causal):
        """Section 3.2.2, after the projections of q, k and v."""
        additive = self.config["attention_score"] == "additive"
        scale = 1.0 if additive else head_widths(self.config)[0] ** -0.5
        vector = self.weights[f"{name}.score_vector"] if additive else None
        mixed = attention.attend_heads(q, k, v, self.config["heads"], scale, causal, vector)
        return self.linear(f"{name}.output", mixed)

    def widths(self):
        heads = self.config["heads"]
        d_k, d_v = head_widths(self.config)
        return heads * d_k, heads * d_v

    def self_attention(self, name, x, causal):
        keys, values = self.widths()
        q, k, v = self.linear(f"{name}.qkv", x).split([keys, keys, values], dim=1)
        if self.config["positions"] == "rotary":
            places, heads = torch.arange(len(x)), self.config["heads"]
            q, k = (attention.rotate(part, places, heads) for part in (q, k))
        return self.multi_head(name, q, k, v, causal)

    def cross_attention(self, name, x, memory):
        k, v = self.linear(f"{name}.kv", memory).split(list(self.widths()), dim=1)
        return self.multi_head(name, self.linear(f"{name}.q", x), k, v, causal=False)

    def feed_forward(self, name, x):
        """Section 3.3."""
        inner = ACTIVATIONS[self.config["activation"]](self.linear(f"{name}.inner", x))
        return self.linear(f"{name}.outer", inner)

    def connect(self, name, x, sublayer):
        """LayerNorm(x + Sublayer(x)), section 3.1; with pre-norm x + Sublayer(LayerNorm(x))."""
        if self.config["norm"] == "pre":
            return x + sublayer(self.layer_norm(name, x))
        return self.layer_norm(name, x + sublayer(x))

    def run_stack(self, stack, ids, memory=None):
        x = self.embed(stack, ids)
        for layer in range(self.config[f"{stack}_layers"]):
            name = f"{stack}.layers.{layer}"
            own, cross, inner = (
                f"{name}.{part}" for part in ("self_attention", "cross_attention", "feed_forward")
            )
            causal = stack == "decoder"
            x = self.connect(f"{own}_norm", x, lambda y: self.self_attention(own, y, causal))
            if memory is not None:
                x = self.connect(f"{cross}_norm", x, lambda y: self.cross_attention(cross, y, memory))
            x = self.connect(f"{inner}_norm", x, lambda y: self.feed_forward(inner, y))
        return self.layer_norm(f"{stack}.norm", x) if self.config["norm"] == "pre" else x

    def logits(self, source, target):
        tied = self.config["tied_embeddings"]
        table = {"all": "embedding", "decoder": "decoder.embedding", "none": "output_projection"}
        memory = self.run_stack("encoder", source)
        return self.run_stack("decoder", target, memory) @ self.weights[table[tied]].T

    def loss(self, source, target, target_output):
        """Sum over tokens, label smoothing eps/V on every class."""
        log_p = torch.log_softmax(self.logits(source, target), dim=1)
        smoothing = self.config["label_smoothing"]
        nll = -log_p[torch.arange(len(target_output)), target_output]
        return ((1 - smoothing) * nll - smoothing * log_p.mean(dim=1)).sum()
