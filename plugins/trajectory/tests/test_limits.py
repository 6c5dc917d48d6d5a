"""Limits of an agent's work."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dicast import ConfigError, Failure, Subject, TraceEvent
from dicast_trajectory import Limits


def event(type_: str, second: int | None = None, **payload: object) -> TraceEvent:
    time = None if second is None else f"2026-01-31T12:00:{second:02d}Z"
    return TraceEvent(type_, payload, time, "s", "s/1")


def called(name: str, second: int | None = None, **arguments: object) -> TraceEvent:
    return event("tool.called", second, tool_name=name, input=arguments)


WORK = (
    called("search", 0, q="a"),
    event("tool.completed", 1, tool_name="search", success=True),
    called("search", 2, q="a"),
    event("tool.failed", 3, tool_name="search", error="gone"),
    called("search", 4, q="b"),
    event("tool.completed", 5, tool_name="search", success=False),
    event("llm.call_completed", 30, model="m", cost_usd="0.10"),
    event("llm.call_completed", 40, model="m", cost_usd=0.2),
)


def scored(events: tuple[TraceEvent, ...] = WORK, kind: str = "turn", **limits: object):
    return Limits(**limits).score(Subject(kind, "s/1", events=events, session_id="s"))


@pytest.mark.parametrize(
    ("limit", "holds", "fails", "words"),
    [
        ("max_calls", 3, 2, "3 calls, at most 2"),
        ("max_repeats", 1, 0, "1 repeats of one call of search, at most 0"),
        ("max_errors", 2, 1, "2 failed calls (search), at most 1"),
        ("max_cost", Decimal("0.30"), Decimal("0.29"), "0.30 USD, at most 0.29"),
        ("max_latency", 40, 39.5, "40 seconds, at most 39.5"),
        ("forbidden", ["rm_*"], ["sea*"], "search is forbidden, and was called"),
        ("required", ["sea*"], ["book"], "book is required, and was not called"),
    ],
)
def test_each_limit_names_its_breach(limit, holds, fails, words):
    assert scored(**{limit: holds}).value == 1
    breached = scored(**{limit: fails})
    assert breached.value == 0
    assert words in breached.details


def test_all_breaches_are_named():
    assert scored(max_calls=1, max_errors=0, forbidden=["search"]).feedback.count("\n") == 2


@pytest.mark.parametrize(
    ("limits", "events"),
    [
        ({"max_cost": Decimal(1)}, WORK[:2]),
        ({"max_cost": Decimal(1)}, (*WORK, event("llm.call_completed", 41, model="m"))),
        ({"max_latency": 5}, (called("search"),)),
        ({"max_repeats": 0}, (event("tool.called", tool_name="t"), event("tool.called", tool_name="t"))),
    ],
)
def test_a_limit_that_the_data_does_not_decide_is_a_failure(limits, events):
    result = scored(events, **limits)
    assert isinstance(result, Failure)
    assert result.kind == "missing_input"


def test_an_exceeded_limit_counts_although_data_is_missing():
    events = (*WORK, event("llm.call_completed", 41, model="m"))
    assert "at least 0.30 USD" in scored(events, max_cost=Decimal("0.1")).details
    assert scored(WORK[:2], max_cost=Decimal(1), max_calls=0).value == 0


def test_an_output_that_is_a_list_of_calls_has_no_errors_to_count():
    subject = Subject("row", "r", output=["search"])
    assert Limits(max_calls=1).score(subject).value == 1
    assert isinstance(Limits(max_errors=1).score(subject), Failure)


@pytest.mark.parametrize("limits", [{}, {"max_calls": -1}, {"max_cost": Decimal(-1)}])
def test_limits_without_sense_are_refused(limits):
    with pytest.raises(ConfigError):
        Limits(**limits)
