"""A GGUF file of random weights with one token for each byte and letter: llama.cpp loads it in milliseconds, but its replies are noise."""

from __future__ import annotations

import random
import struct
from array import array

WIDTH, LAYERS, HEADS, CONTEXT = 32, 1, 2, 4096
ALIGNMENT = 32
UINT32, FLOAT32, INT32, STRING, ARRAY = 4, 6, 5, 8, 9
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
TOKENS = [
    ("<unk>", UNKNOWN),
    ("<s>", CONTROL),
    ("</s>", CONTROL),
    *((f"<0x{byte:02X}>", BYTE) for byte in range(256)),
    *((chr(code).replace(" ", "\u2581"), NORMAL) for code in range(ord(" "), 127)),  # a grammar needs tokens of letters
]


def write_small_gguf(path):
    """Write the model of :data:`TOKENS` to *path*, and return the path."""
    weights = random.Random(1)
    tensors = [(name, shape, _weights(name, shape, weights)) for name, shape in _shapes()]
    values = list(_values())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_string(key) + _value(kind, value) for key, kind, value in values)
    data = b""
    for name, shape, floats in tensors:
        head += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += _padded(floats.tobytes())
    path.write_bytes(_padded(head) + data)
    return path


def _shapes():
    yield "token_embd.weight", (WIDTH, len(TOKENS))
    yield "output_norm.weight", (WIDTH,)
    yield "output.weight", (WIDTH, len(TOKENS))
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{norm}.weight", (WIDTH,)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            yield f"blk.{layer}.{part}.weight", (WIDTH, WIDTH)


def _weights(name, shape, weights):
    if "norm" in name:
        return array("f", [1.0] * WIDTH)
    count = shape[0] * shape[1]
    return array("f", (weights.gauss(0, 0.5) for _ in range(count)))


def _values():
    yield "general.architecture", STRING, "llama"
    for key, value in {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": WIDTH,
        "rope.dimension_count": WIDTH // HEADS,
        "attention.head_count": HEADS,
    }.items():
        yield f"llama.{key}", UINT32, value
    yield "llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5
    yield "tokenizer.ggml.model", STRING, "llama"
    yield "tokenizer.ggml.tokens", ARRAY, (STRING, [text for text, _ in TOKENS])
    yield "tokenizer.ggml.scores", ARRAY, (FLOAT32, [0.0] * len(TOKENS))
    yield "tokenizer.ggml.token_type", ARRAY, (INT32, [kind for _, kind in TOKENS])
    yield "tokenizer.ggml.bos_token_id", UINT32, 1
    yield "tokenizer.ggml.eos_token_id", UINT32, 2


def _value(kind, value):
    if kind == ARRAY:
        of, items = value
        return struct.pack("<IIQ", ARRAY, of, len(items)) + b"".join(_plain(of, item) for item in items)
    return struct.pack("<I", kind) + _plain(kind, value)


def _plain(kind, value):
    return _string(value) if kind == STRING else struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f"}[kind], value)


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(data):
    return data + bytes(-len(data) % ALIGNMENT)
