"""Rows that are judged directly in a run of a file: limits, signals, and a resumed run."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from .conftest import finish, settled, wait_for

ROWS = 60
PIPELINE = (
    "metrics: [fake/spin: {seconds: 0.015, journal: calls}, fake/act]\nsinks: [jsonl/events: {path: events.jsonl}]\n"
)


def judged(shop):
    return [event["subject_id"] for event in shop.events("eval.completed")]


def calls(shop):
    return (shop / "calls").read_text().split() if (shop / "calls").exists() else []


def test_a_limit_inside_a_batch_ends_the_run_and_the_next_process_judges_no_row_twice(shop):
    shop.rows(*[n / ROWS for n in range(ROWS)])
    shop.pipeline("metrics: [fake/act: {journal: calls}]\n")
    first = shop.dicast("run", "p.yaml", "--limit", "7", "--json")
    assert (first.code, first.json["scored"]) == (0, 7)
    assert calls(shop) == [f"r{n}" for n in range(7)] == judged(shop)
    assert [event["type"] for event in shop.events()][1:4] == ["subject.read", "eval.started", "eval.completed"]
    assert shop.verified()


def test_odd_rows_are_in_the_order_of_the_source(shop):
    shop.rows(1, "raise", 0.5, "none", "wordy", 0.25)
    shop.pipeline("metrics: [fake/act: {journal: calls}]\n")
    shop.dicast("run", "p.yaml", "--json")
    ends = [(event["type"], event["subject_id"]) for event in shop.events() if event["type"].startswith("eval.")]
    started, completed, failed = "eval.started", "eval.completed", "eval.failed"
    kinds = (completed, failed, completed, failed, completed, completed)
    assert ends == [(type_, f"r{n}") for n, kind in enumerate(kinds) for type_ in (started, kind)]
    assert calls(shop) == [f"r{n}" for n in range(6)]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_inside_a_batch_is_resumed_with_one_verdict_for_each_row(shop, number):
    shop.rows(*[n / ROWS for n in range(ROWS)])
    shop.pipeline(PIPELINE)
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: len(calls(shop)) >= 20)  # the first batch is 0.2 s long
    process.send_signal(number)
    finish(process)
    kept, called = judged(shop), calls(shop)
    assert kept == [f"r{n}" for n in range(len(kept))]
    assert len(called) - 14 <= len(kept) < ROWS
    assert number == signal.SIGKILL or len(kept) >= len(called) - 1
    assert shop.verified()

    resumed = shop.dicast("run", "p.yaml", "--resume", "--json")
    assert resumed.code == 0
    assert sorted(Counter(judged(shop)).values()) == [1] * ROWS
    assert calls(shop)[len(called) :] == [f"r{n}" for n in range(len(kept), ROWS)]
    again = shop.dicast("run", "p.yaml", "--json", "--set", "ledger={ledger/sqlite: {path: other.db}}")
    assert settled(resumed.json) | {"sinks": None} == settled(again.json) | {"sinks": None}
