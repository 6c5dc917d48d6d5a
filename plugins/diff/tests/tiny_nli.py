"""A small model of natural language inference in ONNX, whose answers can be computed by hand.

The hypothesis follows from the premise if each of its words is in the premise. It contradicts the premise if one of both has the word ``not``. The
graph reads ``token_type_ids`` where the kind of model has them, else it splits the pair at the first separator.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = [
    "[PAD]",
    "[CLS]",
    "[SEP]",
    "[UNK]",
    "not",
    "a",
    "cat",
    "dog",
    "sits",
    "runs",
    "on",
    "the",
    "mat",
    "big",
    "it",
    "is",
]
LABELS = ("contradiction", "entailment", "neutral")


def tokenizer() -> Tokenizer:
    """Return a tokenizer of words with the special tokens of BERT."""
    tokenizer_ = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer_.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer_.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer_


def model(
    labels=LABELS, *, type_ids=True, integer=TensorProto.INT64, shape=("batch", "length"), extra=(), columns=None
):
    """Return the model: logits of 8 for the label that is right, and of 0 for the others."""
    size = len(WORDS)
    constants = {
        "depth": np.array([size], np.int64),
        "values": np.array([0, 1], np.float32),
        "last": np.array([2], np.int64),
        "one": np.array(1, np.float32),
        "words": np.array([0.0] * 3 + [1.0] * (size - 3), np.float32),
        "not": np.array([0.0] * 4 + [1.0] + [0.0] * (size - 5), np.float32).reshape(size, 1),
        "all": np.ones((size, 1), np.float32),
        "separator": np.array(2, np.int64),
        "axis": np.array(1, np.int64),
    }
    for name in ("contradiction", "entailment", "neutral"):
        row = [8.0 if label == name else 0.0 for label in labels]
        constants[f"row_{name}"] = np.array([row[: columns or len(row)]], np.float32)
    node = helper.make_node
    nodes = [
        node("Cast", ["input_ids"], ["ids"], to=TensorProto.INT64),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("OneHot", ["ids", "depth", "values"], ["tokens"], axis=-1),
    ]
    if type_ids:
        nodes.append(node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT))
    else:
        nodes += [
            node("Equal", ["ids", "separator"], ["is_separator"]),
            node("Cast", ["is_separator"], ["separators"], to=TensorProto.FLOAT),
            node("CumSum", ["separators", "axis"], ["counted"]),
            node("Clip", ["counted", "zero", "one"], ["second"]),
        ]
        constants["zero"] = np.array(0, np.float32)
    nodes += [
        node("Mul", ["second", "mask"], ["in_hypothesis"]),
        node("Sub", ["mask", "in_hypothesis"], ["in_premise"]),
    ]
    for side in ("premise", "hypothesis"):
        nodes += [
            node("Unsqueeze", [f"in_{side}", "last"], [f"{side}_weights"]),
            node("Mul", ["tokens", f"{side}_weights"], [f"{side}_tokens"]),
            node("ReduceMax", [f"{side}_tokens"], [f"{side}_bag"], axes=[1], keepdims=0),
            node("Mul", [f"{side}_bag", "words"], [f"{side}_words"]),
            node("MatMul", [f"{side}_words", "not"], [f"{side}_not"]),
        ]
    nodes += [
        node("Sub", ["hypothesis_words", "premise_words"], ["differences"]),
        node("Relu", ["differences"], ["missing"]),
        node("MatMul", ["missing", "all"], ["number_missing"]),
        node("Min", ["number_missing", "one"], ["is_missing"]),
        node("Sub", ["premise_not", "hypothesis_not"], ["not_difference"]),
        node("Abs", ["not_difference"], ["is_contradiction"]),
        node("Sub", ["one", "is_contradiction"], ["is_consistent"]),
        node("Sub", ["one", "is_missing"], ["is_complete"]),
        node("Mul", ["is_consistent", "is_complete"], ["is_entailment"]),
        node("Mul", ["is_consistent", "is_missing"], ["is_neutral"]),
        node("MatMul", ["is_contradiction", "row_contradiction"], ["part_1"]),
        node("MatMul", ["is_entailment", "row_entailment"], ["part_2"]),
        node("MatMul", ["is_neutral", "row_neutral"], ["part_3"]),
        node("Sum", ["part_1", "part_2", "part_3"], ["logits"]),
    ]
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if type_ids else []), *extra]
    inputs = [helper.make_tensor_value_info(name, integer, list(shape)) for name in names]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], columns or len(labels)])]
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def write(folder: Path, labels=LABELS, *, length=64, config=None, **options) -> Path:
    """Write a folder of a model with *labels* that reads *length* tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {str(number): label.upper() for number, label in enumerate(labels)}
    stated = {"id2label": named, "max_position_embeddings": length, "pad_token_id": 0} if config is None else config
    (folder / "config.json").write_text(json.dumps(stated))
    (folder / "tokenizer.json").write_text(tokenizer().to_str())
    (folder / "model.onnx").write_bytes(model(labels, **options).SerializeToString())
    return folder


if __name__ == "__main__":  # writes a model for trying it by hand
    import sys

    onnx.checker.check_model(model())
    write(Path(sys.argv[1]))
