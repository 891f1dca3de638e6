"""What the scripts that make fixtures share: the safetensors format, and random inputs."""

import json
import struct

import numpy as np

DTYPES = {"float32": "F32", "float64": "F64", "int32": "I32"}


def write_safetensors(path, tensors, metadata=None):
    """tensors: name to numpy array (float64 arrays are rounded to float32, but for single numbers)."""
    header, data = {"__metadata__": metadata or {}}, []
    end = 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name])
        if array.dtype == np.float64 and array.ndim > 0:
            array = array.astype(np.float32)
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": DTYPES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [end, end + len(raw)],
        }
        end += len(raw)
        data.append(raw)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def rounded_normal(generator, shape, scale=1.0):
    """Normal numbers that float32 holds exactly, so that both sides start from the same ones."""
    return (generator.standard_normal(shape) * scale).astype(np.float32).astype(np.float64)


def philox4x32(counter, key):
    """Philox4x32-10 (Salmon et al. 2011)."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        product0, product1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (product1 >> 32) ^ counter[1] ^ key[0],
            product1 & 0xFFFFFFFF,
            (product0 >> 32) ^ counter[3] ^ key[1],
            product0 & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def dropout_factors(rate, seed, lane, op, rows, columns):
    """The mask of kernels/dropout.h: an element is kept where its 16 bits reach rate * 65536."""
    threshold = round(rate * 65536)
    factors = np.zeros((rows, columns))
    for row in range(rows):
        for column in range(columns):
            group, within = divmod(column, 128)
            word, half = divmod(within, 32)
            counter = (group * 16 + half % 16, row, op, lane)
            bits = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))[word]
            bits = bits >> 16 if half >= 16 else bits & 0xFFFF
            factors[row, column] = 0 if bits < threshold else 65536 / (65536 - threshold)
    return factors
