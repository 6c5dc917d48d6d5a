"""Files with several labels: the counted label, each label in the document, and the checks that need a label."""

from __future__ import annotations

import json

import attrs
import pytest

from dicast import ConfigError, Failure, Judgment, Score, Subject
from dicast._kernel.cli.score_lines import score_lines
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.plan.clauses import Clause, Gate
from dicast._kernel.report.document import document
from dicast._kernel.report.fold import Report
from dicast._kernel.report.older import current_document
from dicast._kernel.resume.resume import MAY_CHANGE
from dicast.testing import FakeChatModel, FakeJudge, FakeMetric, run_pipeline

NAMES = {"mean", "pass_rate", "ci_low", "ci_high", "basis", "scored", "failed", "total"}


def rows(count, kind="row"):
    return [Subject(kind, str(number), output="x") for number in range(count)]


def both(gate=None, judgments=(0.76,), scores=(1.0,), count=4, **sections):
    """A run with a metric ``m`` and a judge ``j``; a None among the values is a failure."""
    replies = [Failure("refused", "no") if value is None else Judgment(value) for value in judgments]
    values = [Failure("refused", "no") if value is None else Score(value) for value in scores]
    components = {"m": FakeMetric(values * count if len(values) == 1 else values), "j": FakeJudge(replies * count)}
    text = {"metrics": ["m"], "judges": ["j"], **({} if gate is None else {"gate": gate}), **sections}
    return run_pipeline(json.dumps(text), subjects=rows(count), components=components)


def refused(text, **components):
    with pytest.raises(ConfigError) as caught:
        run_pipeline(text, subjects=rows(1), components=components)
    return [str(problem) for problem in caught.value.problems]


# What the document has


def test_every_label_has_its_figures_and_none_is_the_score_without_a_gate():
    done = both().document
    assert [*done["labels"]] == ["metrics", "j"]
    assert all(set(figures) >= NAMES for figures in done["labels"].values())
    assert (done["labels"]["metrics"]["mean"], done["labels"]["j"]["mean"]) == (1.0, 0.76)
    assert (done["score"], done["gate"], done["undecided"]) == (None, None, [])
    assert done["worst"] == []


@pytest.mark.parametrize(
    ("gate", "label", "mean"),
    [
        ({"on": "j"}, "j", 0.76),
        ({"on": "metrics"}, "metrics", 1.0),
        ([{"on": "j", "min_score": 0.5}, {"on": "metrics", "min_score": 0.5}], "j", 0.76),
        ({"on": "m"}, "m", 1.0),
    ],
)
def test_of_several_labels_the_first_clause_names_the_score_s(gate, label, mean):
    score = both(gate).document["score"]
    assert (score["label"], score["mean"]) == (label, mean)
    assert score["by_tier"] == ({"truth": 4, "proxy": 0} if label == "j" else {"truth": 0, "proxy": 4})


def test_the_only_label_is_the_score_s_whatever_metric_the_gate_is_on():
    components = {"m": FakeMetric(Score(1.0)), "n": FakeMetric(Score(0.0))}
    done = run_pipeline("metrics: [m, n]\ngate: {on: n, max_score: 0.5}", subjects=rows(2), components=components)
    assert (done.document["score"]["label"], done.document["score"]["mean"]) == ("metrics", 0.5)


def test_coverage_counts_the_subjects_that_every_accepting_label_scored():
    done = both(judgments=(0.5, None, 0.5, 0.5), count=4)
    assert (done.document["scored"], done.document["failed"], done.document["coverage"]) == (3, 1, 0.75)
    assert done.document["labels"]["j"] | {"failed": 1, "scored": 3, "total": 4} == done.document["labels"]["j"]
    assert (done.exit_code, done.document["gate"]) == (3, None)
    assert done.document["undecided"] == ["coverage 0.75 is below min_coverage 0.95 (the default)"]


def test_a_clause_with_a_label_has_the_coverage_of_that_label():
    done = both({"on": "metrics", "min_score": 0.9}, judgments=(0.5, None, 0.5, 0.5), count=4)
    assert (done.document["coverage"], done.exit_code, done.document["gate"]["passed"]) == (0.75, 0, True)


def test_a_clause_about_coverage_alone_needs_no_label():
    done = both({"min_coverage": 0.5}, judgments=(0.5, None, 0.5, 0.5), count=4)
    assert (done.exit_code, done.document["gate"]["passed"], done.document["score"]) == (0, True, None)


def test_a_judge_that_accepts_other_kinds_is_not_in_a_row_s_coverage():
    text = "metrics: [m]\njudges: [{j: {on: turn}}]"
    components = {"m": FakeMetric(Score(1.0)), "j": FakeJudge(Judgment(0.5))}
    done = run_pipeline(text, subjects=[*rows(2), *rows(1, "turn")], components=components)
    assert (done.document["scored"], done.document["coverage"]) == (3, 1.0)


def test_an_older_document_is_read_in_today_s_shape():
    old = {
        "scored": 2, "failed": 0, "unaffordable": 0, "judges": {"j": {"mean": 0.5, "scored": 2, "total": 3}},
        "score": {"label": "metrics", "mean": 1.0, "by_basis": {"truth": 2, "proxy": 0}},
        "gate": {"passed": True, "reasons": [], "clauses": [], "given": False},
    }  # fmt: skip
    document = current_document(old)
    assert (document["gate"], document["undecided"]) == (None, [])
    assert (document["labels"]["metrics"]["mean"], document["labels"]["metrics"]["basis"]) == (1.0, "truth")
    assert set(document["labels"]["j"]) >= NAMES
    assert document["labels"]["j"]["failed"] == 1
    gated = current_document({**old, "gate": {"passed": None, "reasons": ["why"], "clauses": [], "given": True}})
    assert (gated["gate"]["passed"], gated["undecided"]) == (None, ["why"])
    assert current_document(document) is document


# What needs a label


@pytest.mark.parametrize("rule", ["min_score: 0.5", "max_score: 0.5", "min_pass_rate: 0.5", "min_basis: proxy"])
def test_a_rule_about_a_label_is_refused_without_one(rule):
    text = f"metrics: [m]\njudges: [j]\ngate:\n  - {{on: j, min_score: 0.1}}\n  - {{{rule}}}\n"
    (problem,) = refused(text, m=FakeMetric(Score(1.0)), j=FakeJudge())
    name = rule.partition(":")[0]
    assert problem.startswith(f"<text>:5:{6 + len(name) + 2}: {name} needs one label")
    assert "set on to metrics (m alone), j, or a single metric: m" in problem


def test_an_unknown_label_names_the_nearest():
    (problem,) = refused(
        "metrics: [m]\njudges: [judge]\ngate: {on: juge}\n", m=FakeMetric(Score(1.0)), judge=FakeJudge()
    )
    assert "'juge' is none" in problem
    assert "did you mean 'judge'?" in problem


def test_a_judge_that_set_adds_needs_a_label_too():
    file = {"metrics": ["proxy/format"], "gate": {"min_score": 0.5}}
    with pytest.raises(
        ConfigError, match=r"set on to metrics \(proxy/format alone\), heuristic/turn, or a single metric: proxy/format"
    ):
        load_pipeline(file, {"judges": ["heuristic/turn"]}, needs_source=False)


def test_set_removes_a_gate():
    pipeline = load_pipeline(
        {"metrics": ["proxy/format"], "gate": {"min_score": 1}}, {"gate": None}, needs_source=False
    )
    assert pipeline.gate.clauses == ()


def test_an_early_stop_on_the_score_needs_a_label():
    text = "metrics: [m]\njudges: [j]\nearly_stop: [stats/threshold: {metric: score, threshold: 0.5}]\n"
    (problem,) = refused(text, m=FakeMetric(Score(1.0)), j=FakeJudge())
    assert "stats/threshold watches the run's score, but the file has several labels (metrics, j)" in problem
    assert "choose one with gate: {on: LABEL}, or with metric: scores.metrics" in problem
    done = both({"on": "j"}, early_stop=[{"stats/threshold": {"metric": "score", "threshold": 0.5}}])
    assert done.document["stopped"]["value"] == 0.76


@pytest.mark.parametrize(
    ("metric", "hint"),
    [
        ("m", "scores.m"),
        ("j", "scores.j"),
        ("metrics", "scores.metrics"),
        ("metrics.scores.m", "scores.m"),
        ("scores.k", "scores.j"),
    ],
)
def test_an_early_stop_on_a_metric_that_no_row_has_is_refused_with_the_paths(metric, hint):
    text = f"metrics: [m]\njudges: [j]\nearly_stop: [stats/threshold: {{metric: {metric}, threshold: 0.5}}]\n"
    (problem,) = refused(text, m=FakeMetric(Score(1.0)), j=FakeJudge())
    assert f"metric of stats/threshold is {metric!r}, but a row has no such metric" in problem
    assert "choose from score, scores.metrics, scores.m, scores.j" in problem
    assert metric == "scores.k" or f"did you mean {hint!r}?" in problem


def test_an_early_stop_may_watch_scores_flags_and_recorded_scores():
    for metric in ("scores.metrics", "scores.j", "score_flags.metrics", "scores.recorded/accuracy"):
        stop = {"stats/threshold": {"metric": metric, "threshold": 2}}
        assert both({"on": "j"}, early_stop=[stop]).document["stopped"] is None


# Criteria


def criteria_file(*names):
    listed = ", ".join(f"{name}: {{user: '{name}?'}}" for name in names)
    return f"task: {{prompt/chat: {{model: chat, criteria: {{{listed}}}}}}}\nextractors: [score_extractor/scores: {{threshold: 0.5}}]\n"


def chat_model(replies):
    """A chat model with the reply to each question."""

    def reply(request):
        (question,) = [message.content for message in request.messages if message.role == "user"]
        return replies[question]

    return FakeChatModel(reply)


def test_each_criterion_of_the_task_is_a_label():
    chat = chat_model({"kind?": '{"score": 0.9}', "clear?": '{"score": 0.2}'})
    done = run_pipeline(criteria_file("kind", "clear"), subjects=rows(3), components={"chat": chat}).document
    assert [*done["labels"]] == ["kind", "clear"]
    assert [round(done["labels"][name]["mean"], 9) for name in ("kind", "clear")] == [0.9, 0.2]
    assert [done["labels"][name]["pass_rate"] for name in ("kind", "clear")] == [1.0, 0.0]
    assert (done["score"], done["coverage"], done["undecided"]) == (None, 1.0, [])
    assert list(score_lines(done)) == ["score: none, as there are 2 labels; choose one with gate: {on: LABEL}"]
    (problem,) = refused(f"{criteria_file('kind', 'clear')}gate: {{min_score: 0.5}}\n", chat=chat)
    assert "set on to kind or clear" in problem


def test_the_only_criterion_is_the_score_s():
    chat = chat_model({"kind?": '{"score": 0.75}'})
    text = f"{criteria_file('kind')}gate: {{min_score: 0.5}}\n"
    done = run_pipeline(text, subjects=rows(3), components={"chat": chat})
    assert (done.exit_code, done.document["score"]["label"], done.document["score"]["mean"]) == (0, "kind", 0.75)
    assert done.document["gate"]["clauses"][1]["on"] == "kind"
    assert not any(
        "scores by basis" in line for line in score_lines(done.document)
    )  # nothing says what a criterion rests on


def test_a_criterion_without_a_score_lowers_coverage():
    chat = chat_model({"kind?": '{"score": 0.75}', "clear?": "I cannot say."})
    done = run_pipeline(criteria_file("kind", "clear"), subjects=rows(2), components={"chat": chat})
    assert (done.document["coverage"], done.document["failures"], done.exit_code) == (0.0, {"invalid_score": 2}, 3)
    assert done.document["labels"]["kind"]["scored"] == 2
    assert done.document["labels"]["clear"] | {"scored": 0, "failed": 2, "total": 2} == done.document["labels"]["clear"]


def test_criteria_and_a_judge_are_labels_together():
    chat = chat_model({"kind?": '{"score": 0.75}'})
    text = f"{criteria_file('kind')}judges: [j]\ngate: {{on: kind, min_score: 0.7}}\n"
    done = run_pipeline(text, subjects=rows(2), components={"chat": chat, "j": FakeJudge(Judgment(0.1))})
    assert [*done.document["labels"]] == ["j", "kind"]
    assert (done.document["score"]["label"], done.exit_code, done.document["coverage"]) == ("kind", 0, 1.0)


# Runs that older versions recorded

NEW = ("labels", "score_label", "pass_rule")


def folded(events, **now):
    """Return the document of *events*, with ``run.started`` as an older version recorded it, updated by *now*."""
    report = Report()
    for event in events:
        if event.type == "run.started":
            old = {name: value for name, value in event.payload.items() if name not in NEW}
            payload = {**old, "counted": ["metrics"], "pass_at": {"metrics": 0.5}, **now}
            report.observe(attrs.evolve(event, payload=payload))
        else:
            report.observe(event)
    return document(report, "median", Gate((Clause("j", min_score=0.9),)), stopped=None)


def test_the_events_of_an_older_version_can_be_folded():
    events = both({"on": "j"}).events
    done = folded(events)
    assert (done["score"]["label"], done["score"]["mean"]) == ("metrics", 1.0)
    assert [*done["labels"]] == ["metrics", "j"]


def test_a_run_that_is_taken_up_has_today_s_labels():
    events = both({"on": "j"}).events
    started = next(event.payload for event in events if event.type == "run.started")
    assert set(NEW) <= set(MAY_CHANGE)
    done = folded(events, **{name: started[name] for name in MAY_CHANGE})
    assert (done["score"]["label"], done["gate"]["passed"]) == ("j", False)
    assert done["labels"]["j"]["mean"] == 0.76
