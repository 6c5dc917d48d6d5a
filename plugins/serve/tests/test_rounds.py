"""Rounds: one head for all who ask in the same one."""

from __future__ import annotations

import asyncio

import pytest

from dicast import Head, LedgerError
from dicast_serve import rounds as rounds_module
from dicast_serve.rounds import LATEST_OF_ALL, LATEST_OF_RUNS, SOONEST, Rounds

OLD, NEW = Head(3, "a" * 64), Head(9, "b" * 64)


def started_rounds():
    rounds = Rounds()
    assert rounds.begin(OLD) is None  # a new viewer has just made its own requests
    return rounds, rounds.begin(NEW)


def test_a_round_is_named_after_its_head_and_begins_once():
    rounds, name = started_rounds()
    assert name == f"1-9-{'b' * 12}" == rounds.begin(NEW)
    assert rounds.has_all


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(rounds_module, "monotonic", clock)
    return clock


def test_expensive_figures_of_all_verdicts_do_not_delay_the_figures_of_runs(clock):
    rounds, name = started_rounds()
    rounds.of_all.add_busy_time(100.0)
    clock.now += SOONEST
    later = rounds.begin(Head(11, "c" * 64))
    assert later != name
    assert not rounds.has_all
    clock.now += LATEST_OF_ALL - SOONEST
    assert rounds.begin(Head(11, "c" * 64)) != later  # the ledger has not grown since, but these figures are older
    assert rounds.has_all


def test_no_cost_of_an_answer_stops_the_rounds(clock):
    rounds, name = started_rounds()
    rounds.of_runs.add_busy_time(1e6)
    rounds.of_all.add_busy_time(1e6)
    clock.now += LATEST_OF_RUNS - 0.1
    assert rounds.begin(Head(11, "c" * 64)) == name
    clock.now += 0.1
    assert rounds.begin(Head(11, "c" * 64)) != name


def test_a_run_that_stops_running_starts_a_round_without_a_new_row(clock):
    rounds = Rounds()
    rounds.begin(NEW, frozenset({"run"}))
    clock.now += SOONEST
    name = rounds.begin(NEW, frozenset())
    assert name is not None
    clock.now += LATEST_OF_ALL
    assert rounds.begin(NEW, frozenset()) == name


def test_all_who_ask_in_a_round_get_the_head_that_was_read_first():
    async def ask():
        rounds, name = started_rounds()
        heads = iter([NEW, Head(10, "c" * 64)])

        async def read():
            return next(heads)

        return [await rounds.head(round_name, read) for round_name in (name, name, None)]

    assert asyncio.run(ask()) == [NEW, NEW, Head(10, "c" * 64)]


def test_all_requests_of_a_round_get_the_answers_of_its_start_while_it_is_new(monkeypatch):
    rounds, name = started_rounds()
    start = rounds.moment(name)
    monkeypatch.setattr("dicast_serve.rounds.time", lambda: start + LATEST_OF_RUNS / 2)
    assert rounds.moment(name) == start
    assert rounds.moment(None) == rounds.moment("an older round") == start + LATEST_OF_RUNS / 2
    monkeypatch.setattr("dicast_serve.rounds.time", lambda: start + LATEST_OF_RUNS)
    assert rounds.moment(name) == start + LATEST_OF_RUNS


def test_a_head_that_could_not_be_read_is_read_again_in_the_same_round():
    async def ask():
        rounds, name = started_rounds()
        tries = []

        async def read():
            tries.append(1)
            if len(tries) == 1:
                raise LedgerError("the ledger is locked")
            return NEW

        with pytest.raises(LedgerError, match="locked"):
            await rounds.head(name, read)
        return await rounds.head(name, read)

    assert asyncio.run(ask()) == NEW
