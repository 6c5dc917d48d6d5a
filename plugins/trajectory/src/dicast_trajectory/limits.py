"""Limits of an agent's work: calls, repeats, errors, cost, time, and tools."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Failure, Problem, Score, Subject, Within

from .calls import UNKNOWN, Call, calls_of, failed_calls

_METRIC = "trajectory/limits"
_COUNT = attrs.validators.optional(Within(0, math.inf, "0 or more"))


def _check_cost(_: object, attribute: attrs.Attribute[Any], value: Decimal | None) -> None:
    if value is not None and value < 0:
        raise ConfigError(
            Problem(f"{attribute.name} is {value}; a cost is 0 or more", path=attribute.name, value=value)
        )


class _Unknown(Exception):
    """The data is not enough to check a limit; the message names the missing data."""


@attrs.frozen
class Limits:
    """1 if a turn or session kept within all limits, else 0. The details name each breach.

    If the data is not enough to check a limit, such as ``max_cost`` for calls without a recorded cost, the result is a Failure
    ``missing_input``, unless another limit was exceeded. At least one limit is required.

    :param max_calls: the largest number of tool calls.
    :param max_repeats: the largest number of repeats of one call, with the same tool and the same arguments; 0 allows no repeat.
    :param max_errors: the largest number of failed tool calls.
    :param max_cost: the largest recorded cost of the model calls in USD.
    :param max_latency: the largest number of seconds from the first event to the last.
    :param forbidden: names of tools that must not be called; ``*`` is any text, as in ``mcp__*``.
    :param required: names of tools that must be called, each at least once; ``*`` is any text.
    """

    name = "limits"
    tier = "truth"

    max_calls: int | None = attrs.field(default=None, validator=_COUNT)
    max_repeats: int | None = attrs.field(default=None, validator=_COUNT)
    max_errors: int | None = attrs.field(default=None, validator=_COUNT)
    max_cost: Decimal | None = attrs.field(default=None, validator=_check_cost)
    max_latency: float | None = attrs.field(default=None, validator=_COUNT)
    forbidden: Sequence[str] = ()
    required: Sequence[str] = ()

    def __attrs_post_init__(self) -> None:
        values = (self.max_calls, self.max_repeats, self.max_errors, self.max_cost, self.max_latency)
        if all(value is None for value in values) and not self.forbidden and not self.required:
            raise ConfigError(f"{_METRIC} has no limit; name one, such as max_calls: 20")

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the calls and model calls of *subject* with the limits."""
        calls = calls_of(subject, _METRIC)
        if isinstance(calls, Failure):
            return calls
        breaches, unknown, signals = list[str](), list[str](), dict[str, object]()
        for limit, figure, most, text in self._figures(subject, calls, unknown):
            signals[limit.removeprefix("max_")] = float(figure) if isinstance(figure, Decimal) else figure
            if figure > most:
                breaches.append(text)
        breaches += [f"{name} is forbidden, and was called" for name in self._called(calls)]
        breaches += [f"{name} is required, and was not called" for name in self._lacking(calls)]
        if not breaches and unknown:
            return Failure("missing_input", f"{_METRIC} of {subject.id!r}: {'; '.join(unknown)}")
        lines = "\n".join(f"{text[0].upper()}{text[1:]}." for text in breaches)
        details = "; ".join(breaches) or "within all limits"
        signals |= {"breaches": len(breaches)} | ({"unknown": unknown} if unknown else {})
        return Score(float(not breaches), details=details, feedback=lines, signals=signals)

    def _figures(
        self, subject: Subject, calls: Sequence[Call], unknown: list[str]
    ) -> Iterator[tuple[str, Any, Any, str]]:
        """Yield each limit with its figure, the highest allowed figure, and the breach in words; add missing data to *unknown*."""
        if self.max_calls is not None:
            yield "max_calls", len(calls), self.max_calls, f"{len(calls)} calls, at most {self.max_calls}"
        if self.max_errors is not None and not subject.events and subject.kind not in ("turn", "session"):
            unknown.append("max_errors: an output has no results of calls")
        elif self.max_errors is not None:
            failed = failed_calls(subject)
            tools = f" ({', '.join(dict.fromkeys(failed))})" if failed else ""
            yield (
                "max_errors",
                len(failed),
                self.max_errors,
                f"{len(failed)} failed call{'s' * (len(failed) != 1)}{tools}, at most {self.max_errors}",
            )
        try:
            if self.max_repeats is not None:
                repeats, name = _most_repeats(calls)
                yield (
                    "max_repeats",
                    repeats,
                    self.max_repeats,
                    f"{repeats} repeats of one call of {name}, at most {self.max_repeats}",
                )
        except _Unknown as error:
            unknown.append(f"max_repeats: {error}")
        if self.max_cost is not None:
            cost, lacking = _cost(subject)
            if lacking and cost <= self.max_cost:
                unknown.append(f"max_cost: {lacking}")
            else:
                at_least = "at least " if lacking else ""
                yield "max_cost", cost, self.max_cost, f"{at_least}{cost} USD, at most {self.max_cost}"
        try:
            if self.max_latency is not None:
                seconds = _seconds(subject)
                yield "max_latency", seconds, self.max_latency, f"{seconds:g} seconds, at most {self.max_latency:g}"
        except _Unknown as error:
            unknown.append(f"max_latency: {error}")

    def _called(self, calls: Sequence[Call]) -> Iterator[str]:
        names = dict.fromkeys(call.name for call in calls)
        yield from (name for name in names if any(fnmatchcase(name, pattern) for pattern in self.forbidden))

    def _lacking(self, calls: Sequence[Call]) -> Iterator[str]:
        yield from (pattern for pattern in self.required if not any(fnmatchcase(call.name, pattern) for call in calls))


def _most_repeats(calls: Sequence[Call]) -> tuple[int, str]:
    """Return the number of repeats of the most repeated call, and its tool."""
    names = Counter(call.name for call in calls)
    unknown = next((call.name for call in calls if call.arguments is UNKNOWN and names[call.name] > 1), None)
    if unknown is not None:
        raise _Unknown(f"the calls of {unknown!r} have no arguments in the data")
    keys = Counter((call.name, _canonical(call.arguments)) for call in calls)
    if not keys:
        return 0, "a tool"
    (name, _), times = keys.most_common(1)[0]
    return times - 1, name


def _canonical(arguments: object) -> bytes:
    if arguments is UNKNOWN:
        return b""
    try:
        return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # integers of more than 64 bits
        return repr(arguments).encode()


def _cost(subject: Subject) -> tuple[Decimal, str]:
    """Return the recorded cost of the model calls in USD, and why it is incomplete, if it is."""
    recorded = [event.payload.get("cost_usd") for event in subject.events if event.type == "llm.call_completed"]
    if not recorded:
        return Decimal(0), "no model call is recorded"
    costs = [cost for cost in map(_amount, recorded) if cost is not None]
    lacking = len(recorded) - len(costs)
    return sum(costs, Decimal(0)), f"{lacking} of {len(recorded)} model calls have no cost" if lacking else ""


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def _seconds(subject: Subject) -> float:
    """Return the seconds from the first event of *subject* to its last.

    :raises _Unknown: if fewer than two events have a time.
    """
    times = [time for event in subject.events if (time := _time(event.time)) is not None]
    if len(times) < 2:
        raise _Unknown(f"{len(times)} of {len(subject.events)} events have a time")
    return (max(times) - min(times)).total_seconds()


def _time(text: str | None) -> datetime | None:
    try:
        time = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time
