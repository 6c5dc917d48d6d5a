"""Result of an evaluator and its problems: one rule for preflight, scoring and ``dicast evaluator validate``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs
import orjson

from dicast import Failure, RawScore

ScoreRange = Literal["unit", "any"]

_EXCERPT_CHARS = 500


class BadResult(Exception):
    """An invalid result of an evaluator. *kind* is the Failure's."""

    def __init__(self, message: str, kind: str = "invalid_score") -> None:
        super().__init__(message)
        self.kind = kind


@attrs.frozen
class Result:
    """An evaluator's result: the number, whether it came as text or a boolean, and all other keys."""

    score: float
    coerced: bool
    side_information: Mapping[str, Any]

    def as_score(self) -> RawScore:
        """Return the score. The slot's ``range`` maps another scale to [0, 1]."""
        reasoning = self.side_information.get("reasoning")
        feedback = self.side_information.get("feedback")
        signals = {**self.side_information, **({"coerced": True} if self.coerced else {})}
        return RawScore(
            self.score,
            details=reasoning if isinstance(reasoning, str) else "",
            feedback=feedback if isinstance(feedback, str) else "",
            signals=signals,
        )


def read(value: object, score_range: ScoreRange) -> Result:
    """Return the result in the JSON *value*.

    Numeric text and booleans count as numbers, which evaluators of version 1 rely on.

    :raises BadResult: with the problem, in the protocol's words.
    """
    if not isinstance(value, dict):
        raise BadResult(f"Evaluator output must be a JSON object, not {_type(value)}", "judge_output_invalid")
    if "score" not in value:
        raise BadResult("Evaluator output missing required 'score' field", "judge_output_invalid")
    raw_score = value["score"]
    score = _number(raw_score)
    if score is None:
        raise BadResult(f"Evaluator 'score' must be numeric, got {raw_score!r:.100}")
    if not math.isfinite(score):
        raise BadResult(f"Evaluator 'score' must be finite, got {raw_score!r:.100}")
    if score_range == "unit" and not 0.0 <= score <= 1.0:
        raise BadResult(f"Evaluator 'score' must be between 0.0 and 1.0, got {raw_score!r:.100}")
    return Result(score, not _is_number(raw_score), {key: item for key, item in value.items() if key != "score"})


def problem(value: object, score_range: ScoreRange) -> str | None:
    """Return the problem with *value* as a result, in the validator's words; None if it is valid."""
    try:
        read(value, score_range)
    except BadResult as error:
        message = str(error).partition(", got ")[0].partition(", not ")[0]
        return "evaluator output" + message.removeprefix("Evaluator output").removeprefix("Evaluator")
    return None


def answer(data: bytes, score_range: ScoreRange, source: str) -> RawScore | Failure:
    """Return the score in the reply *data*, or a Failure; *source* names the reply: ``Command output`` or ``Response``."""
    try:
        return read(parsed(data), score_range).as_score()
    except BadResult as error:
        return Failure(error.kind, str(error))
    except ValueError:
        return Failure(
            "judge_output_invalid", f"{source} is not valid JSON: {excerpt(data, _EXCERPT_CHARS) or '<empty>'}"
        )


def parsed(data: bytes) -> Any:
    """Return the JSON value in *data*. NaN and infinities are accepted as numbers, as Python and other languages write them.

    :raises ValueError: when there is none, or several.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loose(data)


def _loose(data: bytes) -> Any:
    import json

    try:
        return json.loads(data.decode())
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def excerpt(data: bytes, most: int) -> str:
    """Return the start of *data* as text."""
    return data[: 4 * most].decode(errors="replace").strip()[:most]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return None


def _type(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", list: "an array", str: "a string"}
    return names.get(type(value), "a number")
