"""The figures of a live run: the newest verdicts count, by subtraction of older ones, as in a report that is made anew."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager

import attrs
import pytest

from dicast import Due, Failure, Judgment, Score, Subject
from dicast._kernel.report import current
from dicast._kernel.report.current import CurrentReport
from dicast.testing import FakeJudge, FakeMetric, MemoryLedger, run_pipeline

PIPELINES = {
    "judges": "judges: [one, two]\ngate: [{on: one, min_score: 0.5}, {on: two, min_pass_rate: 0.5}]\n",
    "metrics": "metrics: [half]\njudges: [one]\ngate: [{on: half, min_score: 0.2}, {on: one, min_coverage: 0.1}]\n",
}


@attrs.frozen
class Live:
    """A live source of turns, which come again at random."""

    live = True
    kinds = ("turn",)

    seed: int

    @asynccontextmanager
    async def open(self, run):
        yield self

    async def subjects(self):
        chance = random.Random(self.seed)
        for _ in range(40):
            number = chance.randrange(15)
            yield Due(Subject("turn", f"t{number}", "asked", "said", session_id=f"s{number % 4}"), "bus")


def answers(seed, make):
    """Generate answers of a judge or a metric: scores with few different values, and failures."""
    chance = random.Random(seed)
    cut = {"cut_replies": 1, "finish_reason": "odd"}
    choices = [*(make(score) for score in (0.0, 0.25, 0.5, 1.0)), make(1.0, cut), Failure("crashed", "no")]
    return [chance.choice(choices) for _ in range(40)]


def document(pipeline, seed):
    judges = {
        name: FakeJudge(answers(f"{seed}{name}", lambda score, signals=None: Judgment(score, signals=signals or {})))
        for name in ("one", "two")
    }
    half = FakeMetric(answers(f"{seed}", lambda score, signals=None: Score(score)))
    text = f"name: watched\n{PIPELINES[pipeline]}ledger: book\n"
    done = run_pipeline(text, source=Live(seed), components={**judges, "half": half, "book": MemoryLedger()})
    document_ = {key: value for key, value in done.document.items() if key not in ("run_id", "ledger")}
    return {**document_, "warnings": sorted(document_["warnings"], key=repr)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_figures_of_repeated_verdicts_are_equal_to_those_of_a_report_that_is_made_anew(pipeline, seed, monkeypatch):
    subtracted = document(pipeline, seed)
    monkeypatch.setattr(current, "RECENT", 3)
    assert subtracted == document(pipeline, seed)
    monkeypatch.setattr(CurrentReport, "settle", lambda _: False)
    assert subtracted == document(pipeline, seed)
    assert subtracted["subjects"] <= 15
    assert subtracted["scored"] + subtracted["failed"] == subtracted["subjects"]
