"""The score of a subject in a run's records, if several labels judged it."""

from __future__ import annotations

import attrs

from dicast import Failure, Judgment, Score
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample

SUBJECTS = [sample("x", id="a"), sample("y", id="b")]


@attrs.frozen
class Seen:
    """Aggregate that keeps the metrics of each record, by the row's id."""

    name = "seen"
    records: dict = attrs.field(factory=dict, eq=False)

    def add(self, record):
        self.records[record["row"]["id"]] = dict(record["metrics"])

    def finish(self):
        return self.records


def records(text, **components):
    done = run_pipeline(f"{text}\naggregates: [seen]", subjects=SUBJECTS, components={**components, "seen": Seen()})
    return done.document["aggregates"]["seen"]


def test_of_several_labels_no_score_is_the_record_s_unless_the_gate_names_one():
    strict, kind = [Judgment(0.25), Failure("refused", "no")], FakeJudge(Judgment(1.0))
    scores = records("judges: [strict, kind]", strict=FakeJudge(strict), kind=kind)
    assert scores == {
        "a": {"scores": {"strict": 0.25, "kind": 1.0}, "score": None},
        "b": {"scores": {"kind": 1.0}, "score": None},
    }
    scores = records("judges: [strict, kind]\ngate: {on: strict}", strict=FakeJudge(strict), kind=kind)
    assert scores == {"a": {"scores": {"strict": 0.25, "kind": 1.0}, "score": 0.25}, "b": {"scores": {"kind": 1.0}}}


def test_no_judges_score_stands_in_for_metrics_that_failed():
    metric = FakeMetric([Score(0.5), Failure("refused", "no")])
    text = "metrics: [checked]\njudges: [kind]\ngate: {on: metrics}"
    scores = records(text, checked=metric, kind=FakeJudge(Judgment(1.0)))
    assert scores["a"]["score"] == 0.5
    assert scores["b"] == {"scores": {"kind": 1.0}}


def test_the_score_is_that_of_the_label_that_the_gate_looks_at():
    strict = FakeJudge([Judgment(0.25), Judgment(0.75)])
    scores = records(
        "judges: [kind, strict]\ngate: {on: strict, min_score: 0.1}", kind=FakeJudge(Judgment(1.0)), strict=strict
    )
    assert {name: record["score"] for name, record in scores.items()} == {"a": 0.25, "b": 0.75}
