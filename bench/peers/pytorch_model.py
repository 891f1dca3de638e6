"""The Transformer of attend's presets in PyTorch, written as its users write it.

Vaswani et al. 2017: post-norm, ReLU, sinusoidal positions, all embeddings tied, residual dropout.
Runs with Debian's python3-torch (1.13) and later.
"""

import math

PRESETS = {
    "tiny": dict(layers=4, d_model=128, d_ff=256, heads=4, dropout=0.3, vocabulary=10000,
                 pairs=128, length=16),
    "base": dict(layers=6, d_model=512, d_ff=2048, heads=8, dropout=0.1, vocabulary=32000,
                 pairs=32, length=32),
}
PRECISIONS = ["float32", "bfloat16"]
LABEL_SMOOTHING = 0.1


def build(torch, shape):
    """The model as a module: (source, target input, source mask or None) -> logits.

    Sequences are rows, at most shape["length"] long. The mask is added to the scores of source
    positions: [rows, 1, 1, source positions], 0 or -inf. Targets are padded behind their ends,
    where the causal mask hides the padding.
    """
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

        def forward(self, x, memory, mask):
            return self.output(attend(self.query(x), *self.memory(memory).chunk(2, -1), mask))

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

        def forward(self, x, mask, memory=None, memory_mask=None):
            x = self.residual(x, self.self_attention(x, mask), self.norms[0])
            if self.cross_attention is not None:
                output = self.cross_attention(x, memory, memory_mask)
                x = self.residual(x, output, self.norms[1])
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
            self.register_buffer("causal_mask", mask)

        def embed(self, tokens):
            x = self.embedding(tokens) * math.sqrt(d_model) + self.positions[:tokens.shape[1]]
            return functional.dropout(x, dropout, self.training)

        def forward(self, source, target, source_mask=None):
            memory = self.embed(source)
            for layer in self.encoder:
                memory = layer(memory, source_mask)
            length = target.shape[1]
            x = self.embed(target)
            for layer in self.decoder:
                x = layer(x, self.causal_mask[:length, :length], memory, source_mask)
            return functional.linear(x, self.embedding.weight)

    return Transformer()


class Trainer:
    """Training steps in one precision on so many threads."""

    def __init__(self, torch, shape, precision, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.torch, self.precision = torch, precision
        self.model = build(torch, shape).train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98),
                                          eps=1e-9)

    def step(self, source, target, labels, source_mask=None):
        """One update; labels of -100 are padding."""
        torch = self.torch
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bfloat16"):
            logits = self.model(source, target, source_mask)
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(),
                                                 label_smoothing=LABEL_SMOOTHING)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def name_blas():
    """The library behind float32 products: "OpenBLAS", "reference BLAS", or its file's name."""
    names = set()
    with open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            name = line.rsplit("/", 1)[-1].strip()
            if any(word in name for word in ("blas", "blis", "mkl_core")):
                names.add(name)
    if any("openblas" in name for name in names):
        return "OpenBLAS"
    if any(name.startswith("libblas.so") for name in names):
        return "reference BLAS"
    return ", ".join(sorted(names)) or "its own BLAS"
