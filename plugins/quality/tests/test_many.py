"""Figures computed by column equal figures computed row by row, on random ledgers with every option."""

from __future__ import annotations

import asyncio
import math
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, mean
from dicast.reading import reader
from dicast.testing import MemoryLedger
from dicast_quality.arrays import average, exact_total, percentiles
from dicast_quality.percentile import percentile

FROM, TO = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)
TIMES = [f"2026-03-0{day}T12:00:00.000Z" for day in (1, 2, 3)]
about = {
    "id": st.sampled_from(["T1", "T2", "T3", "T4"]),
    "run_id": st.sampled_from(["R1", "R2", "R3"]),
    "time": st.sampled_from(TIMES),
}
judged = st.fixed_dictionaries(
    {
        **about,
        "what": st.just("judged"),
        "judge": st.sampled_from("abc"),
        "score": st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.65, 1.0]),
        "confidence": st.sampled_from([0.1, 0.7, 1.0]),
        "cost": st.sampled_from(["0", None, "0.01", "0.00012345678901234567", "0.250"]),
        "signals": st.sampled_from([{}, {"escalated": True}, {"flags_negative": ["explicit_thumbs_down"]}]),
        "judge_kind": st.sampled_from(["llm", "heuristic", "human"]),
        "kind": st.sampled_from(["turn", "turn", "row"]),
    }
)
other_events = st.one_of(
    st.fixed_dictionaries({**about, "what": st.just("failed"), "judge": st.sampled_from("abc")}),
    st.fixed_dictionaries({**about, "what": st.just("read"), "text": st.sampled_from("xyz")}),
    st.fixed_dictionaries({**about, "what": st.sampled_from(["routed", "called"]), "model": st.sampled_from("mno")}),
    st.fixed_dictionaries(
        {**about, "what": st.just("thumbed"), "rating": st.sampled_from(["thumbs_up", "thumbs_down"])}
    ),
)
happenings = st.lists(st.one_of(judged, judged, other_events), min_size=1, max_size=40)
qualities = st.fixed_dictionaries(
    {
        "group_by": st.sampled_from(["model", "judge_kind", "rubric_id", "day", "none"]),
        "subject_kind": st.sampled_from(["turn", "row"]),
        "min_confidence": st.sampled_from([0.0, 0.5]),
        "judge": st.sampled_from([(), ("a",), ("a", "b")]),
        "run": st.sampled_from([None, "R1"]),
        "latest": st.booleans(),
        "without_human": st.booleans(),
        "saved": st.booleans(),
    }
)
agreements = st.fixed_dictionaries(
    {
        "judge": st.sampled_from([("a", "b"), ("a", "b", "c"), ("a",), ()]),
        "run": st.sampled_from([(), ("R1",), ("R1", "R2")]),
        "between": st.sampled_from([None, "judges", "runs", "rubrics"]),
        "subject_kind": st.sampled_from([None, "turn", "row"]),
        "window": st.sampled_from([0.0, 0.15, 0.5]),
    }
)


@contextmanager
def computed(*, by_column, blocks=1000):
    """Compute figures by column, or row by row, with *blocks* parts of alpha."""
    with (
        mock.patch("dicast.reading.columns.MANY_ROWS", 1 if by_column else 2**62),
        mock.patch("dicast_quality.reliability.BLOCKS", blocks),
    ):
        yield


def answer(ledger, name, options):
    """Return a reader's document, or its error."""
    try:
        return reader(name)(ledger, **options)
    except ConfigError as error:
        return str(error)


def both(make_ledger, happened, name, options, blocks=1000):
    """Return a reader's answers computed in both ways."""
    ledger = make_ledger()
    for run_id in ("R1", "R2", "R3"):
        ledger.run(run_id)
    for event in happened:
        rest = dict(event)
        what, id = rest.pop("what"), rest.pop("id")
        if what == "thumbed":
            ledger.thumbed(id, rest["rating"], rest["time"])
        elif what == "judged":
            ledger.judged(id, rest.pop("score"), rest.pop("judge"), **rest)
        else:
            second = next(rest.pop(key) for key in ("judge", "text", "model") if key in rest)
            getattr(ledger, what)(id, second, **rest)

    async def ask():
        async with MemoryLedger().open() as live:
            live.append(ledger.events)
            answers = []
            for by_column in (False, True):
                with computed(by_column=by_column, blocks=blocks):
                    answers.append(answer(live, name, options))
            return answers

    return asyncio.run(ask())


def alike(first, second):
    """Return whether two answers are equal, with numbers to 9 decimals, as sums may be added in another order."""
    if isinstance(first, float) and isinstance(second, float):
        return first == pytest.approx(second, abs=1e-9)
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(alike(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(alike, first, second))
    return first == second


@settings(max_examples=4 * settings.default.max_examples // 5, deadline=None)
@given(happened=happenings, options=qualities)
def test_quality_is_the_same_in_both_ways(make_ledger, happened, options):
    slow, quick = both(make_ledger, happened, "quality", {**options, "start": FROM, "end": TO})
    assert alike(slow, quick)


@settings(max_examples=4 * settings.default.max_examples // 5, deadline=None)
@given(happened=happenings, options=agreements, blocks=st.sampled_from([2, 1000]))
def test_agreement_is_the_same_in_both_ways(make_ledger, happened, options, blocks):
    with mock.patch("dicast_quality.reliability.RESAMPLES", 200):
        slow, quick = both(make_ledger, happened, "agreement", options, blocks)
    assert alike(slow, quick)


@settings(max_examples=2 * settings.default.max_examples // 5, deadline=None)
@given(happened=happenings, options=agreements)
def test_agreement_by_the_day_is_the_same_in_both_ways(make_ledger, happened, options):
    slow, quick = both(make_ledger, happened, "agreement_days", options)
    assert alike(slow, quick)


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 1.0, 5e-324, 2.0**-80])), max_size=60))
def test_sums_and_percentiles_of_arrays_are_those_of_lists(values):
    column = np.array(values, "d")
    assert exact_total(np, column) == math.fsum(values)
    assert average(np, column) == (mean(values) if values else None)
    shares = (0.0, 0.1, 0.5, 0.975, 1.0)
    expected = [percentile(sorted(values), share) if values else None for share in shares]
    assert percentiles(np, column, shares) == expected


def test_values_that_no_verdict_has_are_added_up_as_well():
    values = [1e30, 1.0, -1e30]
    assert average(np, np.array(values)) == mean(values)


def test_verdicts_of_people_are_counted_and_left_out_where_that_is_asked_for(ledger, ask):
    from dicast_quality.quality import quality

    ledger.routed("T1", "m")
    ledger.judged("T1", 0.2)
    ledger.judged("T1", 1.0, "ann", judge_kind="human", judge_model=None)
    ledger.judged("T2", 0.0, "ann", judge_kind="human", judge_model=None)
    window = ["--from", "2026-03-01", "--to", "2026-03-02"]
    everybody = ask(quality, *window, "--group-by", "none")["data"][0]
    assert (everybody["verdict_count"], everybody["human_count"], everybody["mean_score"]) == (3, 2, pytest.approx(0.4))
    assert "2 of these verdicts are of people" in ask(quality, *window, as_json=False)
    options = [*window, "--without-human"]
    first, second = ask(quality, *options)["data"]
    assert (first["chosen_model"], first["verdict_count"], first["human_count"]) == ("m", 1, 1)
    assert first["mean_score"] == 0.2
    assert (second["chosen_model"], second["verdict_count"], second["human_count"]) == (None, 0, 1)
    assert second["mean_score"] is second["p50_score"] is second["mean_confidence"] is second["below_floor"] is None
    assert "2 verdicts of people are excluded" in ask(quality, *options, as_json=False)


@pytest.mark.parametrize("by_column", [False, True])
def test_verdicts_that_tools_asked_for_are_in_no_figure(ledger, ask, by_column):
    from dicast_quality.quality import quality

    ledger.run("R1")
    ledger.run("R2", kind="tool")
    ledger.judged("T1", 0.9)
    ledger.judged("T1", 0.1, run_id="R2")
    ledger.judged("canary", 0.0, run_id="R2")
    ledger.judged("T1", 0.7, "human", judge_kind="human", judge_model=None, run_id="R2")
    ledger.started("T2", run_id="R2")
    window = ["--from", "2026-03-01", "--to", "2026-03-02", "--group-by", "none"]
    with computed(by_column=by_column):
        document = ask(quality, *window)
        lines = ask(quality, *window, as_json=False)
        of_run = ask(quality, *window, "--run", "R2")
    (row,) = document["data"]
    assert (row["verdict_count"], row["human_count"], row["mean_score"]) == (2, 1, pytest.approx(0.8))
    assert (document["tool_verdict_count"], document["backlog"]) == (2, 0)
    assert "without 2 verdicts of dicast doctor and other tools" in lines
    assert (of_run["data"][0]["verdict_count"], of_run["tool_verdict_count"], of_run["backlog"]) == (3, 0, 1)


def test_without_numpy_many_are_counted_one_by_one(make_ledger, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    event = {"what": "judged", "id": "T1", "run_id": "R1", "time": TIMES[0], "judge": "a", "score": 0.5}
    slow, quick = both(make_ledger, [event], "quality", {"start": FROM, "end": TO})
    assert slow == quick
    assert quick["data"][0]["mean_score"] == 0.5
