"""Results of a metric or a judge: a score, a judgment, or a failure, each with its cost."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from types import UnionType
from typing import Any, Literal

import attrs

from ..classes import frozen
from .answer import ReadyAnswer
from .basis import BASES, Basis, basis_of
from .errors import InvalidCost, InvalidScore, UnknownName

Unit = Literal["usd", "msat"]
UNITS: tuple[Unit, ...] = ("usd", "msat")
_DIGITS = r"([0-9]{1,40}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?"
NOT_NEGATIVE = re.compile(rf"^\s*\+?{_DIGITS}\s*$")
DECIMAL = re.compile(rf"^\s*[-+]?{_DIGITS}\s*$")
"""Decimal in a pipeline file. More digits or a longer exponent are refused, because sums of such amounts could not be written."""
MOST = 1e100
"""Exclusive upper bound of a decimal that a file has as a number, not as text."""
MONEY = re.compile(rf"^\s*\+?{_DIGITS} +(usd|msat)\s*$")
"""An amount of money as pipeline files have it."""

FAILURE_KINDS = (
    "judge_output_invalid",
    "judge_call_failed",
    "throttled_no_heuristic",
    "subject_not_found",
    "rubric_invalid",
    "timeout",
    "crashed",
    "refused",
    "invalid_score",
    "missing_input",
    "checks_failed",
    "source_error",
)
JUDGE_KINDS = ("heuristic", "llm", "hybrid", "metrics", "evaluator", "jury", "human", "recorded")


def _amount(value: object) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise InvalidCost(f"a cost is an int, a string or a Decimal, never {type(value).__name__}: {value!r}")
    try:
        amount = Decimal(value)
    except InvalidOperation as error:
        raise InvalidCost(f"not an amount of money: {value!r}") from error
    if not amount.is_finite() or amount < 0:
        raise InvalidCost(f"a cost is finite and not negative: {value!r}")
    return amount


@frozen
class Cost:
    """An amount of money in one unit; units are never converted and never added to each other.

    *amount* is None if the price is unknown, which is not zero. *pricing_version* names the price list.

    :param unit: ``usd`` or ``msat``, thousandths of a satoshi.
    :raises InvalidCost: for a float, a negative or a non-finite amount, an unknown unit, or a version that is not text.
    """

    amount: Decimal | None = attrs.field(converter=_amount)
    unit: Unit = "usd"
    pricing_version: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InvalidCost(f"unknown unit {self.unit!r}: a cost is in {' or '.join(UNITS)}")
        if self.pricing_version is not None and not is_text(self.pricing_version):
            raise InvalidCost(f"a pricing_version is text, not {self.pricing_version!r:.100}")

    @classmethod
    def zero(cls, unit: Unit = "usd") -> Cost:
        """Return a cost that is known to be zero."""
        return _ZERO if unit == "usd" else _ZERO_MSAT

    @classmethod
    def unknown(cls, unit: Unit = "usd") -> Cost:
        """Return a cost with an unknown price."""
        return cls(None, unit)

    @classmethod
    def parse(cls, text: str) -> Cost:
        """Parse ``"0.01 usd"`` or ``"500 msat"``."""
        amount, _, unit = text.strip().partition(" ")
        cost = cls(amount, unit.strip())  # type: ignore[arg-type]  # __attrs_post_init__ checks the unit
        if not MONEY.match(text):
            raise InvalidCost(f"not an amount of money: {text!r:.100}; write 0.01 usd or 500 msat")
        return cost

    @property
    def is_zero(self) -> bool:
        """True if the amount is known and zero."""
        return self.amount is not None and not self.amount

    @property
    def decimal(self) -> str | None:
        """The amount as a decimal string for JSON; None if it is unknown."""
        if self is _ZERO or self is _ZERO_MSAT:  # most answers cost nothing
            return "0"
        return None if self.amount is None else format(self.amount, "f")

    def __add__(self, other: Cost) -> Cost:
        """Add two costs of one unit; a sum with an unknown amount is unknown.

        :raises InvalidCost: if the units differ and neither is zero.
        """
        if other.is_zero:
            return self
        if self.is_zero:
            return other
        if self.unit != other.unit:
            raise InvalidCost(f"{self.unit} and {other.unit} cannot be added")
        amount = None if self.amount is None or other.amount is None else self.amount + other.amount
        if self.pricing_version == other.pricing_version:
            return Cost(amount, self.unit, self.pricing_version)
        both = "; ".join(filter(None, (self.pricing_version, other.pricing_version)))
        versions = dict.fromkeys(filter(None, both.split("; ")))
        return Cost(amount, self.unit, "; ".join(versions) or None)

    def __str__(self) -> str:
        return f"{self.decimal or 'unknown'} {self.unit}"

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickle the shared zero as itself: most answers cost zero, and are recognized by identity."""
        if self is _ZERO or self is _ZERO_MSAT:
            return "_ZERO" if self is _ZERO else "_ZERO_MSAT"
        return Cost, (self.amount, self.unit, self.pricing_version)


_SURE = 1.0
_ZERO = Cost(0)
_ZERO_MSAT = Cost(0, "msat")


def zero_costs() -> dict[str, Cost]:
    """Return a cost of zero for each unit of money, as the start of sums."""
    return {"usd": Cost.zero(), "msat": Cost.zero("msat")}


def is_text(value: object) -> bool:
    """Return whether *value* is a string that can be written as UTF-8, which every text in a ledger must be."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


@frozen
class Score(ReadyAnswer):
    """Answer of a metric about a subject.

    :param value: in [0, 1], higher is better. None for a number on a scale of its own, which is in *raw*.
    :param confidence: in [0, 1], the metric's confidence in *value*.
    :param details: the reason, for a reader.
    :param feedback: a change to make, for an optimizer.
    :param cost: the cost of this answer.
    :param signals: JSON-serializable evidence, keys in snake_case.
    :param raw: the number before it was mapped to [0, 1]; finite.
    :param basis: one of :data:`BASES`, if the answer has a weaker basis than the metric's tier: a judge inside it.
    :raises InvalidScore: if *value* or *confidence* is not a finite number in [0, 1], or if there is neither *value* nor *raw*.
    """

    value: float | None
    confidence: float = _SURE
    details: str = ""
    feedback: str = ""
    cost: Cost = _ZERO
    signals: Mapping[str, object] = attrs.field(factory=dict)
    raw: float | None = None
    basis: Basis | None = None

    def __attrs_post_init__(self) -> None:
        if self.value is not None or self.raw is None:
            _check_unit_interval(self, "value", self.value)
        if self.confidence is not _SURE:
            _check_unit_interval(self, "confidence", self.confidence)
        if self.cost is not _ZERO:
            _check_type("cost", self.cost, Cost)
        if self.basis is not None:
            _check_basis(self.basis)
        if self.raw is not None:
            object.__setattr__(self, "raw", finite_number(self.raw, "raw"))


@frozen
class Failure(ReadyAnswer):
    """Answer of a metric or judge that could not judge, or of a task that made no output. A failure is never a score.

    *kind* is one of the kinds in [Failures](../concepts/failures.md), such as ``missing_input`` or ``crashed``. *retryable* is whether another try may help: the key ``retries``
    of a slot repeats such a call. *cost* is the expense so far.
    *throttled_reason* is the cap that forbade the call, if this is the reason. *retry* has the tries of a task or a chat model, as JSON
    data, as in :class:`Reply`. *reply* is the model's reply that could not be used, and *reply_scope* is ``ledger`` if it is only for the ledger.
    *finish_reason* is the endpoint's word for the end of the model's last text. *adapted* has the names of the request's parameters
    that the endpoint of a chat model refused and that were left out or translated, as in :class:`Reply`.

    :param message: the reason in words, without secrets.
    :raises ScoringError: for an unknown kind.
    """

    kind: str
    message: str
    retryable: bool = False
    cost: Cost = _ZERO
    throttled_reason: str | None = None
    retry: Mapping[str, Any] | None = None
    reply: str | None = None
    reply_scope: str | None = None
    finish_reason: str | None = None
    adapted: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        _check_type("message", self.message, str)
        _check_type("cost", self.cost, Cost)
        if self.kind not in FAILURE_KINDS:
            raise UnknownName("failure kind", self.kind, FAILURE_KINDS)


@frozen
class Secret:
    """An option whose value is never printed, logged, stored or fingerprinted. Type a field with it; read ``.value``.

    :param value: the text. A pipeline file names a variable of the environment in its place: ``${API_KEY}``.
    :param empty_variables: the names of the variables in its place that were empty when the file was read.
    """

    value: str = attrs.field(repr=False)
    empty_variables: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)

    def __str__(self) -> str:
        return "***"


@frozen
class Rubric:
    """A versioned rubric: *text* as shipped, and *data* when it is YAML. A pipeline file names it by its id or its path.

    :param id: the id.
    :param version: the version.
    """

    id: str
    version: str
    text: str = ""
    data: Mapping[str, object] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for name in ("id", "version"):
            if not is_text(getattr(self, name)):
                raise InvalidScore(f"a rubric's {name} is text, not {getattr(self, name)!r:.100}")


def _basis(judgment: Judgment) -> Basis:
    return basis_of(judgment.judge_kind, judge_model=judgment.judge_model)


@frozen
class Judgment(ReadyAnswer):
    """Answer of a judge; the kernel turns it into a :class:`Verdict`.

    *score* and *confidence* are in [0, 1]. *judge_kind* is one of :data:`JUDGE_KINDS` (``heuristic``, ``llm``, ``hybrid``, ``metrics``,
    ``evaluator``, ``jury``, ``human``, ``recorded``). *judge_model* is the model that
    answered, if one did. *rubric* is the applied rubric (default: the judge itself and its distribution's version). *basis* is one
    of :data:`BASES`: a judge that calls others reports the basis of their answers (default: the basis of *judge_kind*). *calibrated* is
    whether the score was accepted because labels had shown how often such a score is right. *cost* is the judge's own price; the kernel adds
    the cost of the replies and judges that it called, unless *includes_replies* is True.

    :param signals: data about the judgment, as JSON; ``dicast show`` prints it.
    :raises InvalidScore: if *score* or *confidence* is not a finite number in [0, 1].
    """

    score: float
    confidence: float = 1.0
    judge_kind: str = "evaluator"
    judge_model: str | None = None
    cost: Cost = _ZERO
    signals: Mapping[str, object] = attrs.field(factory=dict)
    rubric: Rubric | None = None
    basis: Basis = attrs.field(default=attrs.Factory(_basis, takes_self=True))
    calibrated: bool = False
    includes_replies: bool = False

    def __attrs_post_init__(self) -> None:
        _check_unit_interval(self, "score", self.score)
        _check_unit_interval(self, "confidence", self.confidence)
        _check_type("cost", self.cost, Cost)
        _check_type("rubric", self.rubric, Rubric | None)
        _check_type("judge_model", self.judge_model, str | None)
        if self.judge_kind not in JUDGE_KINDS:
            raise UnknownName("judge kind", self.judge_kind, JUDGE_KINDS)
        _check_basis(self.basis)


def finite_number(value: object, name: str) -> float:
    """Return *value* as a float; *name* is its name in the message.

    :raises InvalidScore: if it is not a finite number.
    """
    if not isinstance(value, bool) and isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return float(value)
    raise InvalidScore(f"{name} must be a finite number, got {value!r:.100}")


def _check_basis(basis: object) -> None:
    if basis not in BASES:
        raise UnknownName("basis", basis, BASES)


def _check_unit_interval(owner: object, name: str, value: object) -> None:
    """Refuse a value that is not a finite number in [0, 1], without clamping; an integer becomes a float."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return
    if not isinstance(value, float | int) or isinstance(value, bool) or not 0.0 <= value <= 1.0:
        raise InvalidScore(f"{name} must be a finite number in [0, 1], got {value!r}")
    object.__setattr__(owner, name, float(value))


def _check_type(name: str, value: object, expected: type | UnionType) -> None:
    if not isinstance(value, expected):
        raise InvalidScore(
            f"{name} must be {getattr(expected, '__name__', expected)}, not {type(value).__name__}: {value!r:.100}"
        )
