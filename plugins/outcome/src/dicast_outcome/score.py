"""The score of a step by its outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import orjson

from dicast import ConfigError, DataError, Failure, Score, Subject, mean
from dicast.toolkit.json_values import MISSING, check_field, locate

from .step import Step, shorten

_WEIGHTS = ("step_utility_weight", "repetition_weight", "verification_weight", "schema_weight")


def _check_weight(_instance: object, attribute: attrs.Attribute[float], weight: float) -> None:
    if not (math.isfinite(weight) and weight >= 0):
        raise ConfigError(f"{attribute.name} is {weight}; a weight is a finite number, never negative")


@attrs.frozen
class StepScore:
    """Score of a tool call by its outcome: its utility, its novelty, the tests and its parameters.

    The score is the weighted sum of four parts: the utility from 0 to 1; 1 for a call that is not a repetition;
    1 if more tests pass than before the call, .5 for an equal number, 0 for fewer; 1 for parameters that match their schema.

    The output is an object with ``step_utility`` (from -1 to 1) or ``step_utility_norm`` (the same from 0 to 1),
    ``verification_delta`` (the change in the number of passing tests) or ``tests_before`` and ``tests_after``,
    ``was_repeated`` and ``params_valid`` (true or false). If both scales of the utility are present, they agree within .01.
    Missing, invalid or contradictory values are a Failure ``missing_input`` that names all of them.

    The weights are shares and sum to 1. Other weights are refused: the formula has no division, and a score above 1 would have to
    be cut off.

    :param step_utility_weight: the weight of the utility.
    :param repetition_weight: the weight of novelty.
    :param verification_weight: the weight of the tests.
    :param schema_weight: the weight of valid parameters.
    :param field: the place of the object in the output: a dotted path (``steps.0``) or a JSON pointer (``/steps/0``). Text on the way is
        parsed as JSON. By default the object is the whole output.
    """

    tier = "truth"

    step_utility_weight: float = attrs.field(default=0.4, validator=_check_weight)
    repetition_weight: float = attrs.field(default=0.3, validator=_check_weight)
    verification_weight: float = attrs.field(default=0.2, validator=_check_weight)
    schema_weight: float = attrs.field(default=0.1, validator=_check_weight)
    field: str | None = attrs.field(default=None, validator=check_field)

    def __attrs_post_init__(self) -> None:
        weights = self._weights()
        total = math.fsum(weights)
        if not math.isclose(total, 1, abs_tol=1e-6):
            pairs = zip(_WEIGHTS, weights, strict=True)
            shares = (
                ", ".join(f"{name} {weight / total:.4g}" for name, weight in pairs) if total else "0.4, 0.3, 0.2, 0.1"
            )
            raise ConfigError(f"the weights sum to {total:g}, not to 1; as shares they are {shares}")

    def score(self, subject: Subject) -> Score | Failure:
        """Return the score of the step in the output of *subject*."""
        record = _record(subject, self.field)
        if isinstance(record, Failure):
            return record
        try:
            step = Step.read(record)
        except DataError as error:
            return _failure("; ".join(str(problem) for problem in error.problems))
        parts = _parts(step)
        value = mean([*parts.values()], self._weights())
        return Score(value, details=_describe(step), signals=_facts(step) | parts)

    def _weights(self) -> tuple[float, ...]:
        return tuple(float(getattr(self, name)) for name in _WEIGHTS)


def _record(subject: Subject, field: str | None) -> Mapping[str, object] | Failure:
    value = subject.output if field is None else locate(subject.output, field)
    where = "the output" if field is None else f"the output's field {field!r}"
    if value is MISSING:
        return _failure(f"the output has no field {field!r}")
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            return _failure(f"{where} is text that is not JSON: {error}")
    return value if isinstance(value, Mapping) else _failure(f"{where} is {shorten(value)}, not an object")


def _failure(message: str) -> Failure:
    return Failure("missing_input", f"the outcome of the step is not known: {message}")


def _parts(step: Step) -> dict[str, float]:
    """Return each part of the score, from 0 to 1, in the order of the weights."""
    return {
        "utility_score": (step.utility + 1) / 2,
        "repetition_score": float(not step.was_repeated),
        "verification_score": 0.5 if step.delta == 0 else float(step.delta > 0),
        "schema_score": float(step.params_valid),
    }


def _facts(step: Step) -> dict[str, object]:
    return {
        "step_utility": step.utility,
        "tests_before": step.tests_before,
        "tests_after": step.tests_after,
        "verification_delta": step.delta,
        "was_repeated": step.was_repeated,
        "params_valid": step.params_valid,
    }


def _describe(step: Step) -> str:
    repeated, params = "repeated" if step.was_repeated else "new", "valid" if step.params_valid else "invalid"
    return f"utility {step.utility:g}, {repeated}, tests {step.delta:+d}, parameters {params}"
