"""The assertions on a run, compared with its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import attrs

from .definition import Definition, RunExpectation, TurnExpectation


@attrs.frozen
class TurnFacts:
    """The figures of one turn; None for a missing figure."""

    tool_calls: int | None = None
    text: str | None = None
    stop_reason: str | None = None


@attrs.frozen
class RunFacts:
    """The figures of a run; None for a missing figure. *turns* is None for a run without turns."""

    text: str | None = None
    cost_usd: Decimal | None = None
    llm_calls: int | None = None
    hard_failures: int | None = None
    delegate_calls: int | None = None
    turns: tuple[TurnFacts, ...] | None = None


@attrs.frozen
class Check:
    """One assertion. *holds* is None if the run lacks the figure; *text* has the expected and the actual value."""

    holds: bool | None
    text: str


def check(definition: Definition, run: RunFacts) -> list[Check]:
    """Return every assertion of *definition*, turn by turn, then the assertions on the whole run."""
    return [*_turns(definition, run), *_run(definition.expect, run)]


def _turns(definition: Definition, run: RunFacts) -> Iterator[Check]:
    """Yield the checks of the turns. A missing turn fails its expectations."""
    every = attrs.evolve(definition.expect.every, contains_substring=None)
    turns = run.turns or ()
    for number in range(max(len(definition.turns), len(turns))):
        where = f"turn {number + 1}"
        expected = definition.turns[number] if number < len(definition.turns) else TurnExpectation()
        if number < len(turns):
            yield from _turn(where, expected, turns[number])
            yield from _turn(where, every, turns[number])
        elif run.turns is None:
            yield from _turn(where, expected, TurnFacts())
        elif expected != TurnExpectation():
            yield Check(False, f"{where}: expected, and the run has {len(turns)} turns")
    if run.turns is None:
        yield from _turn("every turn", every, TurnFacts())


def _turn(where: str, expected: TurnExpectation, turn: TurnFacts) -> Iterator[Check]:
    yield from _least(f"{where}: min_tool_calls", expected.min_tool_calls, turn.tool_calls)
    yield from _most(f"{where}: max_tool_calls", expected.max_tool_calls, turn.tool_calls)
    yield from _contains(f"{where}: contains_substring", expected.contains_substring, turn.text)
    if expected.stop_reason is not None:
        stop_reason = turn.stop_reason
        holds = None if stop_reason is None else stop_reason == expected.stop_reason
        yield Check(holds, f"{where}: stop_reason {expected.stop_reason!r}, got {stop_reason!r}")


def _run(expected: RunExpectation, run: RunFacts) -> Iterator[Check]:
    yield from _contains("contains_substring", expected.every.contains_substring, run.text)
    yield from _most("max_total_cost_usd", expected.max_total_cost_usd, run.cost_usd)
    yield from _least("min_llm_calls", expected.min_llm_calls, run.llm_calls)
    yield from _most("max_hard_failures", expected.max_hard_failures, run.hard_failures)
    yield from _least("min_delegate_calls", expected.min_delegate_calls, run.delegate_calls)


def _least(what: str, limit: int | None, actual: int | None) -> Iterator[Check]:
    if limit is not None:
        yield Check(None if actual is None else actual >= limit, f"{what} {limit}, got {actual}")


def _most(what: str, limit: Decimal | int | None, actual: Decimal | int | None) -> Iterator[Check]:
    if limit is not None:
        yield Check(None if actual is None else actual <= limit, f"{what} {limit}, got {actual}")


def _contains(what: str, expected: str | None, text: str | None) -> Iterator[Check]:
    """Check that *text* has the *expected* text, in upper or lower case."""
    if expected is not None:
        holds = None if text is None else expected.casefold() in text.casefold()
        yield Check(holds, f"{what} {expected!r}, " + ("got no text" if text is None else "not found"))


def outcome(checks: Sequence[Check], reported: Mapping[str, object]) -> dict[str, object]:
    """Return the document for the judge: the failures and the number of checks, with the checks that the harness has *reported*.

    Assertions without a figure in the run are listed as ``assertions_unchecked`` and do not count.
    """
    failures, checked = reported.get("assertion_failures"), reported.get("assertions_checked")
    before = failures if isinstance(failures, list) else [f"{failures} reported by the run"] if failures else []
    count = len(checked) if isinstance(checked, list) else checked if isinstance(checked, int) else 0
    unchecked = [check_.text.partition(", got ")[0] for check_ in checks if check_.holds is None]
    return {
        "assertion_failures": [*before, *(check_.text for check_ in checks if check_.holds is False)],
        "assertions_checked": count + len(checks) - len(unchecked),
        **({"assertions_unchecked": unchecked} if unchecked else {}),
    }
