"""Metrics on a scale of their own, without a range: their numbers are recorded, counted and compared as they are."""

from __future__ import annotations

import json
from math import isnan

import attrs
import pytest

from dicast import Entry, Failure, InvalidScore, RawScore, RequestError, Score
from dicast.reading import RAW, VerdictColumns
from dicast.reporting import run_markdown
from dicast.testing import run_pipeline, sample


@attrs.frozen
class Number:
    """The number that the output is."""

    name = "number"
    tier = "truth"
    needs_range = True

    def score(self, subject):
        if subject.output == "broken":
            return Failure("crashed", "no number")
        return RawScore(subject.output, 0.5, "on purpose")


@attrs.frozen
class Proxy:
    name = "proxy"
    tier = "proxy"

    def score(self, subject):
        return Score(0.0 if subject.output == -1 else 1.0)


@attrs.frozen
class Truth:
    name = "truth"
    tier = "truth"

    def score(self, subject):
        return Score(0.25)


COMPONENTS = {"it": Number(), "proxy": Proxy(), "truth": Truth()}


def judged(pipeline, *outputs):
    subjects = [sample(output, id=str(n)) for n, output in enumerate(outputs)]
    return run_pipeline(pipeline, subjects=subjects, components=COMPONENTS)


def test_a_raw_value_is_recorded_without_a_score():
    done = judged("metrics: [it]", 83.5, -4)
    assert [(verdict.score, verdict.raw, verdict.tier) for verdict in done.verdicts] == [
        (None, 83.5, "truth"),
        (None, -4.0, "truth"),
    ]
    (item,) = done.verdicts[0].scores
    assert (item["value"], item["raw"], item["confidence"], item["details"]) == (None, 83.5, 0.5, "on purpose")
    assert done.verdicts[0].signals["raw"] == {"it": 83.5}
    assert done.of("run.started")[0].payload["raw"] == ["it", "metrics"]


def test_a_mapped_number_keeps_its_raw_value():
    done = judged("metrics: [it: {as: it, range: [0, 10]}]", 8)
    assert (done.verdicts[0].score, done.verdicts[0].raw, done.verdicts[0].scores[0]["raw"]) == (0.8, None, 8.0)


def test_raw_verdicts_count_as_scored_and_the_figures_say_their_scale():
    done = judged("metrics: [it]", 80, 90, 100, "broken").document
    assert (done["scored"], done["failed"], done["coverage"]) == (3, 1, 0.75)
    score = done["score"]
    assert (score["mean"], score["aggregate"], score["scale"]) == (90.0, 90.0, "raw")
    assert (score["pass_rate"], score["passes"], score["reasons"]) == (None, None, ["raw_scale"])
    assert 70 < score["ci_low"] < 80
    assert 100 < score["ci_high"] < 110
    assert done["metrics"]["it"]["mean"] == 90.0
    assert done["metrics"]["it"]["scale"] == "raw"
    assert done["worst"] == []


def test_with_a_pass_at_raw_values_pass():
    score = judged("metrics: [it: {as: it, pass_at: 85}]", 80, 90, 100, 85).document["score"]
    assert (score["pass_rate"], score["scale"], "reasons" in score) == (0.75, "raw", False)


def test_proxies_next_to_a_raw_metric_only_gate():
    done = judged("metrics: [proxy, it]", 80, 90, -1)
    assert [(verdict.score, verdict.raw, verdict.tier) for verdict in done.verdicts] == [
        (None, 80.0, "truth"),
        (None, 90.0, "truth"),
        (None, None, "proxy"),
    ]
    assert [item["weight"] for item in done.verdicts[0].scores] == [0.0, 1.0]
    assert (done.document["score"]["mean"], done.document["scored"]) == (85.0, 3)


def test_a_raw_metric_of_weight_0_stands_next_to_the_score():
    done = judged("metrics: [truth, it: {as: it, weight: 0}]", 80)
    assert (done.verdicts[0].score, done.verdicts[0].raw) == (0.25, None)
    assert done.verdicts[0].signals["raw"] == {"it": 80.0}
    assert (done.document["metrics"]["it"]["mean"], done.document["score"]["mean"]) == (80.0, 0.25)
    assert "scale" not in done.document["score"]


def test_rollouts_are_aggregated_on_the_raw_scale():
    done = judged("metrics: [it]\nscoring: {rollouts: 3, aggregation: mean}", 80)
    assert (done.verdicts[0].raw, done.verdicts[0].signals["rollouts"]) == (80.0, [80.0, 80.0, 80.0])


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("metrics: [it, truth]", "it has a raw scale, but truth has a weight too; give it a range"),
        ("metrics: {proxy: [it]}", "a proxy is compared with scoring.threshold"),
        ("metrics: [it: {on_failure: zero}]", "0 is not the lowest score of it"),
        ("metrics: [it]\nscoring: {audit: {rate: 0.1}}", "audits correct means in [0, 1]"),
        ("metrics: [it]\ngate: {min_pass_rate: 0.5}", "set pass_at of the metric to the smallest passing number"),
        ("metrics: [truth: {pass_at: 2}]", "expected a number from 0 to 1, got 2"),
    ],
)
def test_pipelines_in_which_a_raw_value_has_no_meaning_are_refused(pipeline, message):
    with pytest.raises(RequestError) as refused:
        judged(pipeline, 80)
    assert message in str(refused.value)


def test_a_gate_on_a_raw_label_is_about_raw_values():
    def passed(line, *outputs):
        return judged(f"metrics: [proxy, it]\ngate: {{min_score: {line}}}", *outputs).document["gate"]["passed"]

    assert passed(85, 80, 90)
    assert passed(86, 80, 90) is False
    assert passed(85, 80, 90, -1) is None  # nothing bounds what the proxies held back


def test_a_drop_on_a_raw_scale_may_be_larger_than_1():
    gate = "gate: {on: LABEL, baseline: last, max_drop: 20}"
    done = judged(f"metrics: [it]\n{gate.replace('LABEL', 'it')}", 80, 90).document
    assert [clause["line"] for clause in done["gate"]["clauses"] if clause["rule"] == "max_drop"] == [20]
    with pytest.raises(RequestError, match="cannot drop by more than 20; write 0.2 for 20 points"):
        judged(f"metrics: [truth]\n{gate.replace('LABEL', 'truth')}", 80)


def test_a_score_without_value_and_raw_is_none():
    with pytest.raises(InvalidScore):
        Score(None)
    with pytest.raises(InvalidScore):
        Score(None, raw=float("inf"))
    assert Score(None, raw=3).raw == 3.0


def test_the_document_of_a_raw_run_is_json():
    assert json.dumps(judged("metrics: [proxy, it]", 80, -1).document)


def test_columns_mark_raw_values_and_leave_them_out_of_unit_scores():
    done = judged("metrics: [proxy, it]", 80, -1)
    result = VerdictColumns().add(Entry(n, event, "", "") for n, event in enumerate(done.of("eval.completed")))
    assert [flag & RAW != 0 for flag in result.flags] == [True, True]
    assert (result.scores[0], isnan(result.scores[1])) == (80.0, True)
    assert len(result.unit_scores().codes) == 0


def test_markdown_says_that_a_mean_is_on_a_raw_scale():
    lines = run_markdown(judged("metrics: [proxy, it]", 0.5, 0.25).document).splitlines()
    assert any(line.startswith("| mean score of `metrics` | 0.3750 (raw scale)") for line in lines)
    assert [line.split(" | ")[1] for line in lines if line.startswith(("| `it`", "| `proxy`"))] == [
        "1.0000",
        "0.3750 (raw scale)",
    ]
