"""What an evaluator answers, and what is wrong with it: one rule for preflight, scoring and ``dicast evaluator validate``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs
import orjson

from dicast import Failure, RawScore

ScoreRange = Literal["unit", "any"]

_SHOWN = 500


class BadResult(Exception):
    """An evaluator's result that is none. *kind* is the Failure's, *score* what it gave as one."""

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
        """The score; the slot's ``range`` brings it to [0, 1] where it is on another scale."""
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
    """The result that the JSON *value* is.

    Numeric text and booleans count as numbers, which evaluators of version 1 rely on.

    :raises BadResult: saying what is wrong, in the protocol's words.
    """
    if not isinstance(value, dict):
        raise BadResult(f"Evaluator output must be a JSON object, not {_type(value)}", "judge_output_invalid")
    if "score" not in value:
        raise BadResult("Evaluator output missing required 'score' field", "judge_output_invalid")
    given = value["score"]
    score = _number(given)
    if score is None:
        raise BadResult(f"Evaluator 'score' must be numeric, got {given!r:.100}")
    if not math.isfinite(score):
        raise BadResult(f"Evaluator 'score' must be finite, got {given!r:.100}")
    if score_range == "unit" and not 0.0 <= score <= 1.0:
        raise BadResult(f"Evaluator 'score' must be between 0.0 and 1.0, got {given!r:.100}")
    return Result(score, not _is_number(given), {key: one for key, one in value.items() if key != "score"})


def problem(value: object, score_range: ScoreRange) -> str | None:
    """What is wrong with *value* as a result, in the validator's words; None where it is valid."""
    try:
        read(value, score_range)
    except BadResult as error:
        said = str(error).partition(", got ")[0].partition(", not ")[0]
        return "evaluator output" + said.removeprefix("Evaluator output").removeprefix("Evaluator")
    return None


def answer(data: bytes, score_range: ScoreRange, what: str) -> RawScore | Failure:
    """The Score that the reply *data* is, or the Failure; *what* is whose reply it is: ``Command output`` or ``Response``."""
    try:
        return read(parsed(data), score_range).as_score()
    except BadResult as error:
        return Failure(error.kind, str(error))
    except ValueError:
        return Failure("judge_output_invalid", f"{what} is not valid JSON: {shown(data, _SHOWN) or '<empty>'}")


def parsed(data: bytes) -> Any:
    """The JSON value that *data* is, NaN and infinities among its numbers, as Python and other languages write them.

    :raises ValueError: when it is none, or several.
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


def shown(data: bytes, most: int) -> str:
    """The beginning of *data* as text."""
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
