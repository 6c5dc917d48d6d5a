"""``dicast.reporting``: the result of each subject, from a run's events."""

from __future__ import annotations

import pytest

from dicast import Cost, Failure, Judgment, Score, Subject
from dicast._kernel.cli.screen import screen_parts
from dicast._kernel.values.score import FAILURE_KINDS
from dicast.reporting import (
    RECORD,
    OutcomeReader,
    exact,
    facts,
    failure_counts,
    failure_words,
    failures_text,
    figure,
    money,
    run_markdown,
    share,
)
from dicast.testing import FakeChatModel, FakeJudge, FakeMetric, run_pipeline
from dicast.toolkit.terminal import plain_lines


def rows(*outputs):
    return [Subject("row", f"r{number}", input="what?", output=text) for number, text in enumerate(outputs, 1)]


def read(text, subjects, batch=3, **components):
    """The subjects of a run, read in batches, and the reader."""
    done, reader = run_pipeline(text, subjects=subjects, components=components), OutcomeReader()
    result = []
    for start in range(0, len(done.events), batch):
        result += reader.take(done.events[start : start + batch])
    return [*result, *reader.end()], reader, done


TEXT = "metrics: [{cheap: {pass_at: 0.6}}, other]\n"


@pytest.mark.parametrize("batch", [1, 2, 7, 100])
def test_subjects_come_in_the_order_of_the_source_with_every_label(batch):
    scores = FakeMetric([Score(0.7, details="fine"), Score(0.5)])
    subjects, reader, _ = read(TEXT, rows("a", "b"), batch, cheap=scores, other=FakeMetric(Score(1.0)))
    assert [(subject.kind, subject.id) for subject in subjects] == [("row", "r1"), ("row", "r2")]
    assert reader.labels == [*subjects[0].outcomes] == ["metrics", "cheap", "other"]
    assert [subject.outcomes["cheap"].passed for subject in subjects] == [True, False]
    assert subjects[0].outcomes["cheap"].reason == "fine"
    assert subjects[0].content["output"] == "a"
    assert reader.counted == ["metrics"]


def test_the_combined_label_says_what_lowers_it():
    cheap, other = FakeMetric(Score(0.1, details="too long")), FakeMetric(Score(0.4))
    (subject,), *_ = read(TEXT, rows("a"), cheap=cheap, other=other)
    assert subject.outcomes["metrics"].reason == "cheap 0.1000: too long; other 0.4000"


def test_a_failure_is_the_metrics_own_and_the_others_have_no_verdict():
    failing = FakeMetric(Failure("refused", "it would not say"))
    (subject,), *_ = read(TEXT, rows("a"), cheap=failing, other=FakeMetric(Score(1.0)))
    full, cheap, other = subject.outcomes.values()
    assert (full.failure, full.score, full.passed) == ("refused", None, None)
    assert (cheap.failure, cheap.reason) == ("refused", "it would not say")
    assert (other.failure, other.score, bool(other.skipped)) == (None, None, True)
    assert subject.worst(["metrics"]) is full


def test_a_truth_that_the_gate_spared_is_skipped_and_says_so():
    text = "metrics: {proxy: [cheap], truth: [other]}\n"
    (subject,), *_ = read(text, rows("a"), cheap=FakeMetric(Score(0.2)), other=FakeMetric(Score(1.0)))
    assert subject.outcomes["other"].skipped == "spared by the gate"
    assert subject.outcomes["metrics"].basis == "proxy"


def test_what_the_budget_left_no_room_for_is_skipped():
    judge = FakeJudge(Judgment(0.9, 0.8, "llm", "m", Cost("0.1")), cost=Cost("0.1"))
    subjects, reader, done = read(
        "judges: [costly]\nbudget: {run: 0.1 usd, session: 9 usd, day: 9 usd}\n", rows("a", "b"), costly=judge
    )
    first, second = (subject.outcomes["costly"] for subject in subjects)
    assert (first.score, first.cost_usd, first.basis) == (0.9, "0.1", "model")
    assert second.score is None
    assert second.failure == "throttled_no_heuristic" or "run_cap" in second.skipped
    assert done.document["failed"] + done.document["skipped"] == 1


def test_a_task_that_failed_is_a_failure_of_what_would_have_judged_its_output():
    text = "task: {task/command: {command: [sh, -c, 'exit 3']}}\nmetrics: [proxy/format]\n"
    (subject,), reader, _ = read(text, [Subject("row", "1", input="x")])
    assert subject.outcomes["metrics"].failure == "crashed"
    assert [outcome.score for outcome in subject.outcomes.values()] == [None, None]
    assert subject.worst(reader.counted) is subject.outcomes["proxy/format"], "the only metric"


def test_two_clauses_on_one_label_share_the_row_of_its_coverage():
    gate = "gate: [{on: metrics, min_score: 0.5}, {on: metrics, min_pass_rate: 0.5}]\n"
    *_, done = read(TEXT + gate, rows("a"), cheap=FakeMetric(Score(1.0)), other=FakeMetric(Score(1.0)))
    assert [clause["rule"] for clause in done.document["gate"]["clauses"]].count("min_coverage") == 2
    assert run_markdown(done.document).count("| min_coverage ") == 1


def test_each_failure_is_counted_and_worded_by_the_component_that_failed():
    """The task gives two empty replies, and the judge no verdict about a third output: both have one kind in the data."""
    no_verdict = Failure("judge_output_invalid", "the reply is no verdict")
    judge = FakeJudge([Judgment(0.9, 0.8, "llm", "m", Cost.zero()), no_verdict])
    chat = FakeChatModel(lambda request: "" if "empty" in request.messages[-1].content else "fine")
    text = "task: {prompt/chat: {model: chat, user: '{{ input }}', retries: 0}}\njudges: [costly]\n"
    items = [Subject("row", str(number), input=text) for number, text in enumerate(("empty", "empty", "a", "b"))]
    subjects, _, done = read(text, items, costly=judge, chat=chat)
    document = done.document
    assert document["failures"] == {"judge_output_invalid": 3}
    assert document["failures_by_origin"] == {"task": {"judge_output_invalid": 2}}
    words = "2 task: reply is invalid, 1 judge_output_invalid (a model's reply is no verdict)"
    assert failures_text(document) == words
    assert words in run_markdown(document)
    assert f"failed: {words}" in " ".join(plain_lines(screen_parts(document)).split())
    assert [subject.outcomes["costly"].failure_words for subject in subjects] == [
        "task: reply is invalid",
        "task: reply is invalid",
        "",
        "a model's reply is no verdict",
    ]


def test_a_failed_row_that_nothing_judges_has_no_failed_verdict():
    chat = FakeChatModel("")
    text = "task: {prompt/chat: {model: chat, user: '{{ input }}', retries: 0}}\n"
    (subject,), _, done = read(text, [Subject("row", "1", input="x")], chat=chat)
    assert done.document["failures_by_origin"] == {"record": {"judge_output_invalid": 1}}
    assert failures_text(done.document) == "1 reply is invalid"
    assert subject.outcomes[RECORD].failure_words == "reply is invalid"


def test_a_run_that_judges_nothing_has_its_records():
    text = "task: {task/command: {command: [cat]}}\n"
    (subject,), reader, _ = read(text, [Subject("row", "1", input="x")])
    assert reader.labels == reader.counted == [RECORD]
    assert subject.outcomes[RECORD].passed is True


def test_a_kind_that_a_metric_does_not_judge_has_no_outcome_of_it():
    text = "metrics: [{cheap: {on: [turn]}}, {other: {on: [row]}}]\n"
    (subject,), *_ = read(text, rows("a"), cheap=FakeMetric(Score(1.0)), other=FakeMetric(Score(1.0)))
    assert [*subject.outcomes] == ["metrics", "other"]


def test_a_score_that_is_as_good_as_on_the_line_passes_as_in_the_document():
    scores = [Score(0.6 - 1e-12), Score(0.6), Score(0.59)]
    subjects, _, done = read("metrics: [{cheap: {pass_at: 0.6}}]\n", rows("a", "b", "c"), cheap=FakeMetric(scores))
    passes = [subject.outcomes["cheap"].passed for subject in subjects]
    assert sum(passes) == done.document["metrics"]["cheap"]["passes"]["passed"] == 2


def test_numbers_for_readers_and_for_programs():
    assert (figure(2 / 3), figure(None), share(0.25), share(None)) == ("0.6667", "-", "25.0%", "-")
    assert (exact(0.1 + 0.2), exact(None)) == ("0.30000000000000004", "")
    assert money({"usd": "0", "msat": "0"}) == "nothing"
    assert money({"usd": None, "msat": "12"}) == "unknown usd, 12 msat"


def test_a_label_that_another_clause_of_the_gate_is_on_decides_too():
    text = "metrics: [cheap, other]\njudges: [costly]\ngate: [{on: metrics, min_score: 0.3}, {on: costly, min_pass_rate: 0.9}, {on: cheap, min_score: 0.1}]\n"
    cheap, other = FakeMetric([Score(1.0), Score(1.0), Score(0.2)]), FakeMetric(Score(1.0))
    costly = FakeJudge([Judgment(score, 0.8, "llm", "m", Cost.zero()) for score in (0.9, 0.1, 0.9)])
    subjects, reader, _ = read(text, rows("a", "b", "c"), cheap=cheap, other=other, costly=costly)
    assert reader.counted == ["metrics", "costly", "cheap"]
    worst = [item.worst(reader.counted) for item in subjects]
    assert [None if item is None else (item.label, item.shortfall) for item in worst] == [
        None,
        ("costly", "0.1000, below 0.5"),
        ("metrics", "0.6000, as not every metric passes"),
    ]


def test_the_reason_of_a_judge_s_verdict_is_its_rationale():
    signals = {"rationale_redacted": "It is rude.", "rationale_scope": "ledger", "attempts": 1}
    costly = FakeJudge(Judgment(0.1, 0.8, "llm", "m", Cost.zero(), signals=signals))
    (subject,), _, _ = read("judges: [costly]\n", rows("a"), costly=costly)
    assert subject.outcomes["costly"].reason == "It is rude."
    assert facts({**signals, "finish_reason": "stop", "turns": 3}) == "turns 3"


def test_a_metric_of_the_gate_that_was_spared_is_no_subject_that_did_not_pass():
    text = "metrics: {proxy: [cheap], truth: [other]}\nscoring: {threshold: 0.9}\ngate: {on: other, min_score: 0.1}\n"
    (subject,), reader, _ = read(text, rows("a"), cheap=FakeMetric(Score(0.8)), other=FakeMetric(Score(1.0)))
    assert subject.outcomes["other"].skipped == "spared by the gate"
    assert reader.counted == ["metrics", "other"]
    assert subject.outcomes["other"].did_not_pass is False
    assert subject.worst(reader.counted).label == "metrics"  # what the proxies held back has not passed


def test_each_kind_of_failure_has_words_in_every_report():
    assert all(failure_words(kind) != kind for kind in FAILURE_KINDS)
    assert failure_counts({"timeout": 1200, "newer": 1}) == "1,200 timeout (no answer in time), 1 newer"
