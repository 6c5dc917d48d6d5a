"""Checks of the time and cost of the output."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import inf
from typing import Any

import attrs

from dicast import Answered, Failure, Score, Subject, Within
from dicast.toolkit.money import amount_text

from .check import Answer, Check, Outcome


def _figure(subject: Subject, name: str) -> list[Decimal]:
    """Return the task's figures *name* of all responses, or else the row's column *name*."""
    responses: Mapping[str, Any] = subject.responses if isinstance(subject, Answered) else {}
    figures = [response["metrics"].get(name) for response in responses.values()]
    figures = [figure for figure in figures if figure is not None] or [subject.context.get(name)]
    return [
        Decimal(str(figure)) for figure in figures if isinstance(figure, int | float) and not isinstance(figure, bool)
    ]


class Limit(Check):
    """A check of the time or cost, which needs no output."""

    needs_output = False

    def score(self, subject: Subject) -> Score | Failure:
        """Return 1 if the limit was kept, else 0; the output itself is not read."""
        outcome = self.outcome(subject)
        return outcome if isinstance(outcome, Failure) else Score(outcome.value, details=outcome.why)

    def outcome(self, subject: Subject) -> Outcome | Failure:
        """Return whether the limit was kept; either answer states the figure."""
        answer = self.answer(None, subject)
        if isinstance(answer, Failure):
            return answer
        return attrs.evolve(self.turned(answer), why=f"the output {answer.why}")


@attrs.frozen
class MaxLatency(Limit):
    """1 if the output took no longer than *seconds*, else 0. Of several responses the longest counts.

    The time is ``latency_seconds`` as the task records it, else the row's column of this name; without both the row is
    ``missing_input``.

    :param seconds: the longest time.
    """

    name = "max_latency"

    seconds: float = attrs.field(validator=Within(0, inf, "0 or more"))

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Compare the time with the limit."""
        seconds = _figure(subject, "latency_seconds")
        if not seconds:
            return Failure("missing_input", "neither the task nor a column of the row has latency_seconds")
        return Answer(
            max(seconds) <= Decimal(str(self.seconds)), f"took {max(seconds):.3f} s; the limit is {self.seconds:g} s"
        )


@attrs.frozen
class MaxCost(Limit):
    """1 if the output cost no more than *usd*, else 0. Costs of several responses are added.

    The cost is ``cost``, in US dollars, as the task records it, else the row's column of this name; without both the row is
    ``missing_input``.

    :param usd: the highest cost, in US dollars.
    """

    name = "max_cost"

    usd: float = attrs.field(validator=Within(0, inf, "0 or more"))

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Compare the cost with the limit."""
        cost = _figure(subject, "cost")
        if not cost:
            return Failure("missing_input", "neither the task nor a column of the row has a cost")
        return Answer(
            sum(cost) <= Decimal(str(self.usd)), f"cost {sum(cost)} usd; the limit is {amount_text(self.usd)} usd"
        )
