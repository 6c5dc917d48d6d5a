"""A model of natural language inference in ONNX: which of two texts follows from the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError
from dicast.toolkit.files import MAX_DATA_BYTES, check_regular, error_reason, read_text

FILES = ("model.onnx", "tokenizer.json", "config.json")
"""The files that the folder of a model needs."""

ENTAILMENT = "entailment"
_ENTAILMENT_NAMES = frozenset(("entailment", "entail", "entails", "entailed"))
_OFFSETS = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}
"""Positions that models of these types do not use for tokens."""
_NAME_LABELS = "write its labels in the order of the model's card, such as labels: [contradiction, entailment, neutral]"
_DEFAULT_LENGTH = 512
_BATCH = 16
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


@attrs.frozen
class Inference:
    """The probabilities of each label for one pair of texts; *cut* tokens of the pair were too many for the model."""

    probabilities: Mapping[str, float]
    cut: int = 0


@attrs.frozen
class Described:
    """The folder of a model, read from its small files.

    :param labels: the names of the model's outputs, in order.
    :param length: the number of tokens that the model reads, special tokens included.
    :param padding: the number of the token that fills up shorter pairs.
    """

    folder: Path
    labels: tuple[str, ...]
    length: int
    padding: int = 0

    @classmethod
    def of(cls, folder: Path, labels: Sequence[str], max_tokens: int | None) -> Described:
        """Read the configuration in *folder*; *labels* and *max_tokens* are used in place of its own.

        :raises ConfigError: if a file is missing or unreadable, or the configuration names no label ``entailment``.
        """
        lacking = [name for name in FILES if not (folder / name).is_file()]
        if lacking:
            is_there = "has no" if folder.is_dir() else "is not a folder with"
            raise ConfigError(
                f"diff/entails: {str(folder)!r} {is_there} {', '.join(lacking)}. The option 'model' is a folder with {', '.join(FILES)}"
            )
        for name in FILES:
            _check(folder / name)
        config = _read_json(folder / "config.json")
        names = tuple(map(str, labels)) or _labels(config, folder)
        if not _ENTAILMENT_NAMES & {name.lower() for name in names}:
            raise ConfigError(
                f"diff/entails: the model in {str(folder)!r} has the labels {', '.join(names)}, and none is 'entailment'. "
                f"Take a model of natural language inference, or {_NAME_LABELS}"
            )
        limit = _length(config, folder)
        if max_tokens is not None and max_tokens > limit:
            raise ConfigError(
                f"diff/entails: max_tokens is {max_tokens:,}, and the model reads {limit:,} tokens at most"
            )
        padding = config.get("pad_token_id")
        return cls(
            folder,
            tuple(map(_known_model, names)),
            max_tokens or limit,
            padding if type(padding) is int and padding > 0 else 0,
        )

    def load(self) -> NliModel:
        """Load the tokenizer and the model, and run it once.

        :raises ConfigError: if they cannot be loaded, or the model has other inputs or outputs than a classifier of pairs.
        """
        import onnxruntime  # 73 MB, only for this metric
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        except Exception as error:  # the library raises plain exceptions
            raise self._unusable("tokenizer.json", error) from error
        try:
            session = onnxruntime.InferenceSession(str(self.folder / "model.onnx"), providers=["CPUExecutionProvider"])
        except Exception as error:  # likewise, of its own C++ types
            raise self._unusable("model.onnx", error) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        types = {input_.name: input_.type for input_ in session.get_inputs()}
        outputs = [input_.name for input_ in session.get_outputs()]
        wrong = [f"{name} ({kind})" for name, kind in types.items() if name not in _INPUTS or kind not in _TYPES]
        if wrong or "input_ids" not in types:
            problem = f"has the input {', '.join(wrong)}" if wrong else "has no input 'input_ids'"
            raise ConfigError(
                f"diff/entails: {str(self.folder / 'model.onnx')!r} {problem}; a classifier of pairs has {', '.join(_INPUTS)}, of whole numbers"
            )
        shape = Shape.of(next(input_.shape for input_ in session.get_inputs() if input_.name == "input_ids"))
        described = self if shape.width is None else attrs.evolve(self, length=min(self.length, shape.width))
        cutting = Tokenizer.from_str(tokenizer.to_str())
        cutting.enable_truncation(described.length, strategy="longest_first")
        inputs = {name: _TYPES[kind] for name, kind in types.items()}
        output = "logits" if "logits" in outputs else outputs[0]
        model = NliModel(described, tokenizer, cutting, session, inputs, output, shape)
        model.check()
        return model

    def _unusable(self, name: str, error: Exception) -> ConfigError:
        reason = " ".join(str(error).split())
        return ConfigError(f"diff/entails: {str(self.folder / name)!r} cannot be loaded: {reason[:300]}")


@attrs.frozen
class Shape:
    """The shape of the inputs: the fixed number of *rows*, and the fixed *width* in tokens; None where any number is allowed."""

    rows: int | None
    width: int | None

    @classmethod
    def of(cls, dimensions: Sequence[object]) -> Shape:
        """Read the dimensions of an input; the names of free dimensions are texts or None."""
        fixed = [size if type(size) is int and size > 0 else None for size in (*dimensions, None, None)]
        return cls(fixed[0], fixed[1])


@attrs.frozen
class NliModel:
    """A loaded model. *cutting* is the tokenizer that cuts pairs; *inputs* are the names and types of its inputs; *output* is the name of its logits."""

    described: Described
    tokenizer: Any
    cutting: Any
    session: Any
    inputs: Mapping[str, str]
    output: str
    shape: Shape

    def check(self) -> None:
        """Run the model once.

        :raises ConfigError: if it fails, or does not return one number for each label.
        """
        labels, path = self.described.labels, str(self.described.folder / "model.onnx")
        try:
            shape = self._logits([self._encode("a", "a")[0]]).shape
            is_right = shape == (1, len(labels))
        except Exception as error:  # onnxruntime's own types
            raise self.described._unusable("model.onnx", error) from error  # noqa: SLF001  # same module
        if not is_right:
            raise ConfigError(
                f"diff/entails: the output {self.output!r} of {path!r} has the shape {list(shape)} for one pair, and its labels are "
                f"{', '.join(labels)}: [1, {len(labels)}] is needed"
            )

    def infer(self, pairs: Sequence[tuple[str, str]]) -> list[Inference]:
        """Return the inference for each pair of a premise and a hypothesis. Pairs of similar length are computed together."""
        encoded = [self._encode(*pair) for pair in pairs]
        inferences: dict[int, Inference] = {}
        order = sorted(range(len(pairs)), key=lambda number: len(encoded[number][0].ids))
        size = self.shape.rows or _BATCH
        for start in range(0, len(order), size):
            numbers = order[start : start + size]
            rows = self._logits([encoded[number][0] for number in numbers])
            for number, row in zip(numbers, rows, strict=True):
                inferences[number] = Inference(_probabilities(self.described.labels, row.tolist()), encoded[number][1])
        return [inferences[number] for number in range(len(pairs))]

    def _encode(self, premise: str, hypothesis: str) -> tuple[Any, int]:
        """Return the tokens of a pair, and the number of tokens that were cut from the longer text first."""
        encoding = self.tokenizer.encode(premise, hypothesis)
        over = len(encoding.ids) - self.described.length
        return (encoding, 0) if over <= 0 else (self.cutting.encode(premise, hypothesis), over)

    def _logits(self, encodings: Sequence[Any]) -> Any:
        """Return an array of a row for each pair and a column for each label. Missing rows of a fixed shape are empty pairs."""
        import numpy as np  # onnxruntime brings it

        width = self.shape.width or max(len(encoding.ids) for encoding in encodings)
        rows = self.shape.rows or len(encodings)
        values = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
        feed = {}
        for name, kind in self.inputs.items():
            filler = self.described.padding if name == "input_ids" else 0
            array = np.full((rows, width), filler, dtype=kind)
            for number, encoding in enumerate(encodings):
                row = getattr(encoding, values[name])
                array[number, : len(row)] = row
            feed[name] = array
        return np.asarray(self.session.run([self.output], feed)[0], dtype="float64")[: len(encodings)]


def _check(path: Path) -> None:
    try:
        check_regular(path)
    except OSError as error:
        raise ConfigError(f"diff/entails: {str(path)!r} cannot be read: {error.strerror or error}") from error


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(read_text(path, MAX_DATA_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"diff/entails: {str(path)!r} is not readable JSON: {error_reason(error)}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"diff/entails: {str(path)!r} is not a JSON object")
    return data


def _labels(config: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Return the labels of ``id2label``, in the order of their numbers."""
    named = config.get("id2label")
    if isinstance(named, dict) and named and {str(number) for number in range(len(named))} == set(named):
        return tuple(str(named[str(number)]) for number in range(len(named)))
    raise ConfigError(
        f"diff/entails: {str(folder / 'config.json')!r} has no id2label with the numbers from 0. "
        f"To read the model, {_NAME_LABELS}"
    )


def _known_model(name: str) -> str:
    return ENTAILMENT if name.lower() in _ENTAILMENT_NAMES else name.lower()


def _length(config: Mapping[str, Any], folder: Path) -> int:
    """Return the number of tokens that the model reads, by the configuration of its tokenizer and its own."""
    config_path = folder / "tokenizer_config.json"
    stated = [_read_json(config_path).get("model_max_length")] if config_path.is_file() else []
    positions = config.get("max_position_embeddings")
    if type(positions) is int:
        stated.append(positions - _OFFSETS.get(str(config.get("model_type")), 0))
    lengths = [length for length in stated if type(length) is int and 0 < length < 10**6]
    return min(lengths, default=_DEFAULT_LENGTH)


def _probabilities(labels: Sequence[str], logits: Sequence[float]) -> dict[str, float]:
    """Return the softmax of *logits*; of a single one, its logistic function."""
    import math

    if len(logits) == 1:
        return {labels[0]: 1 / (1 + math.exp(-max(-700.0, min(700.0, logits[0]))))}
    highest = max(logits)
    weights = [math.exp(logit - highest) for logit in logits]
    total = math.fsum(weights)
    return {label: weight / total for label, weight in zip(labels, weights, strict=True)}
