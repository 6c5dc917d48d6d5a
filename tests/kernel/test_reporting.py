"""``dicast.reporting``: the result of each subject, from a run's events."""

from __future__ import annotations

import pytest

from dicast import Cost, Failure, Judgment, Score, Subject
from dicast.reporting import RECORD, OutcomeReader, exact, facts, figure, money, share
from dicast.testing import FakeJudge, FakeMetric, run_pipeline


def rows(*outputs):
    return [Subject("row", f"r{number}", input="what?", output=text) for number, text in enumerate(outputs, 1)]


def read(text, subjects, batch=3, **components):
    """The subjects of a run, read in batches, and the reader."""
    done, reader = run_pipeline(text, subjects=subjects, components=components), OutcomeReader()
    found = []
    for start in range(0, len(done.events), batch):
        found += reader.take(done.events[start : start + batch])
    return [*found, *reader.end()], reader, done


TEXT = "metrics: [{cheap: {pass_at: 0.6}}, other]\n"


@pytest.mark.parametrize("batch", [1, 2, 7, 100])
def test_subjects_come_in_the_order_of_the_source_with_every_label(batch):
    scores = FakeMetric([Score(0.7, details="fine"), Score(0.5)])
    found, reader, _ = read(TEXT, rows("a", "b"), batch, cheap=scores, other=FakeMetric(Score(1.0)))
    assert [(one.kind, one.id) for one in found] == [("row", "r1"), ("row", "r2")]
    assert reader.labels == [*found[0].outcomes] == ["metrics", "cheap", "other"]
    assert [one.outcomes["cheap"].passed for one in found] == [True, False]
    assert found[0].outcomes["cheap"].reason == "fine"
    assert found[0].content["output"] == "a"
    assert reader.counted == ["metrics"]


def test_the_combined_label_says_what_lowers_it():
    cheap, other = FakeMetric(Score(0.1, details="too long")), FakeMetric(Score(0.4))
    (one,), *_ = read(TEXT, rows("a"), cheap=cheap, other=other)
    assert one.outcomes["metrics"].reason == "cheap 0.1000: too long; other 0.4000"


def test_a_failure_is_the_metrics_own_and_the_others_have_no_verdict():
    failing = FakeMetric(Failure("refused", "it would not say"))
    (one,), *_ = read(TEXT, rows("a"), cheap=failing, other=FakeMetric(Score(1.0)))
    whole, cheap, other = one.outcomes.values()
    assert (whole.failure, whole.score, whole.passed) == ("refused", None, None)
    assert (cheap.failure, cheap.reason) == ("refused", "it would not say")
    assert (other.failure, other.score, bool(other.skipped)) == (None, None, True)
    assert one.worst(["metrics"]) is whole


def test_a_truth_that_the_gate_spared_is_skipped_and_says_so():
    text = "metrics: {proxy: [cheap], truth: [other]}\n"
    (one,), *_ = read(text, rows("a"), cheap=FakeMetric(Score(0.2)), other=FakeMetric(Score(1.0)))
    assert one.outcomes["other"].skipped == "spared by the gate"
    assert one.outcomes["metrics"].basis == "proxy"


def test_what_the_budget_left_no_room_for_is_skipped():
    judge = FakeJudge(Judgment(0.9, 0.8, "llm", "m", Cost("0.1")), cost=Cost("0.1"))
    found, reader, done = read(
        "judges: [dear]\nbudget: {run: 0.1 usd, session: 9 usd, day: 9 usd}\n", rows("a", "b"), dear=judge
    )
    first, second = (one.outcomes["dear"] for one in found)
    assert (first.score, first.cost_usd, first.basis) == (0.9, "0.1", "model")
    assert second.score is None
    assert second.failure == "throttled_no_heuristic" or "run_cap" in second.skipped
    assert done.document["failed"] + done.document["skipped"] == 1


def test_a_task_that_failed_is_a_failure_of_what_would_have_judged_its_output():
    text = "task: {task/command: {command: [sh, -c, 'exit 3']}}\nmetrics: [proxy/format]\n"
    (one,), reader, _ = read(text, [Subject("row", "1", input="x")])
    assert one.outcomes["metrics"].failure == "crashed"
    assert [outcome.score for outcome in one.outcomes.values()] == [None, None]
    assert one.worst(reader.counted) is one.outcomes["metrics"]


def test_a_run_that_judges_nothing_has_its_records():
    text = "task: {task/command: {command: [cat]}}\n"
    (one,), reader, _ = read(text, [Subject("row", "1", input="x")])
    assert reader.labels == reader.counted == [RECORD]
    assert one.outcomes[RECORD].passed is True


def test_a_kind_that_a_metric_does_not_judge_has_no_outcome_of_it():
    text = "metrics: [{cheap: {on: [turn]}}, {other: {on: [row]}}]\n"
    (one,), *_ = read(text, rows("a"), cheap=FakeMetric(Score(1.0)), other=FakeMetric(Score(1.0)))
    assert [*one.outcomes] == ["metrics", "other"]


def test_a_score_that_is_as_good_as_on_the_line_passes_as_in_the_document():
    scores = [Score(0.6 - 1e-12), Score(0.6), Score(0.59)]
    found, _, done = read("metrics: [{cheap: {pass_at: 0.6}}]\n", rows("a", "b", "c"), cheap=FakeMetric(scores))
    passes = [one.outcomes["cheap"].passed for one in found]
    assert sum(passes) == done.document["metrics"]["cheap"]["passes"]["passed"] == 2


def test_numbers_for_readers_and_for_programs():
    assert (figure(2 / 3), figure(None), share(0.25), share(None)) == ("0.6667", "-", "25.0%", "-")
    assert (exact(0.1 + 0.2), exact(None)) == ("0.30000000000000004", "")
    assert money({"usd": "0", "msat": "0"}) == "nothing"
    assert money({"usd": None, "msat": "12"}) == "unknown usd, 12 msat"


def test_a_label_that_another_clause_of_the_gate_is_on_decides_too():
    text = "metrics: [cheap, other]\njudges: [dear]\ngate: [{on: metrics, min_score: 0.3}, {on: dear, min_pass_rate: 0.9}, {on: cheap, min_score: 0.1}]\n"
    cheap, other = FakeMetric([Score(1.0), Score(1.0), Score(0.2)]), FakeMetric(Score(1.0))
    dear = FakeJudge([Judgment(score, 0.8, "llm", "m", Cost.zero()) for score in (0.9, 0.1, 0.9)])
    found, reader, _ = read(text, rows("a", "b", "c"), cheap=cheap, other=other, dear=dear)
    assert reader.counted == ["metrics", "dear", "cheap"]
    worst = [one.worst(reader.counted) for one in found]
    assert [None if one is None else (one.label, one.shortfall) for one in worst] == [
        None,
        ("dear", "0.1000, below 0.5"),
        ("metrics", "0.6000, as not every metric passes"),
    ]


def test_the_reason_of_a_judge_s_verdict_is_its_rationale():
    signals = {"rationale_redacted": "It is rude.", "rationale_scope": "ledger", "attempts": 1}
    dear = FakeJudge(Judgment(0.1, 0.8, "llm", "m", Cost.zero(), signals=signals))
    (one,), _, _ = read("judges: [dear]\n", rows("a"), dear=dear)
    assert one.outcomes["dear"].reason == "It is rude."
    assert facts(signals) == "attempts 1"


def test_a_metric_of_the_gate_that_was_spared_is_no_subject_that_did_not_pass():
    text = "metrics: {proxy: [cheap], truth: [other]}\nscoring: {threshold: 0.9}\ngate: {on: other, min_score: 0.1}\n"
    (one,), reader, _ = read(text, rows("a"), cheap=FakeMetric(Score(0.8)), other=FakeMetric(Score(1.0)))
    assert one.outcomes["other"].skipped == "spared by the gate"
    assert reader.counted == ["metrics", "other"]
    assert one.outcomes["other"].did_not_pass is False
    assert one.worst(reader.counted).label == "metrics"  # what the proxies held back has not passed
