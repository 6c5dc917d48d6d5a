"""``dicast calibrate --metric``: the score above which a pass of a metric agrees with people."""

from __future__ import annotations

import json
import random

import pytest

PIPELINE = {
    "name": "metric",
    "source": {"rows/jsonl": {"path": "rows.jsonl"}},
    "metrics": [{"diff/similarity": {"as": "similar"}}],
    "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
}


@pytest.fixture
def labeled(project):
    """Write and run 200 rows with known similarities; label each as good if *is_good* of its similarity holds."""

    def write(is_good, pipeline=PIPELINE):
        numbers = random.Random(3).choices(range(101), k=200)
        rows = [
            {"id": f"r{index}", "output": "a" * number + "b" * (100 - number), "reference": "a" * 100}
            for index, number in enumerate(numbers)
        ]
        project.lines("rows.jsonl", rows)
        labels = [{"subject_id": f"r{index}", "score": float(is_good(number))} for index, number in enumerate(numbers)]
        project.lines("gold.jsonl", labels)
        project.pipeline(pipeline)
        project.run()
        return {f"r{index}": number / 100 for index, number in enumerate(numbers)}

    return write


def test_the_threshold_is_the_lowest_score_whose_passes_keep_the_target(project, labeled):
    scores = labeled(lambda number: number >= 70)
    document = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    (stage,) = document["stages"]
    kept_scores = [score for score in scores.values() if score >= stage["threshold"]]
    wrong = sum(score < 0.7 for score in kept_scores)
    assert document["metric"] == "similar"
    assert (stage["signal"], stage["of"]["component"]) == ("score", "diff/similarity")
    assert 0.6 < stage["threshold"] <= 0.72
    assert (stage["errors"], stage["kept"]["labels"]) == (wrong, len(kept_scores))
    assert stage["upper"] <= 0.1
    assert json.loads((project.folder / "calibration.json").read_text()) == document


def test_the_text_has_the_pass_line_as_an_option_of_the_metric(project, labeled):
    labeled(lambda number: number >= 70)
    printed = project.call("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    threshold = json.loads((project.folder / "calibration.json").read_text())["stages"][0]["threshold"]
    assert printed.exit_code == 0
    assert f"use it as the metric's pass line, pass_at: {threshold!r}" in printed.stdout
    lined = {**PIPELINE, "metrics": [{"diff/similarity": {"as": "similar", "pass_at": threshold}}]}
    project.pipeline(lined)
    repeated = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    assert repeated["stages"][0]["threshold"] == threshold


def test_labels_that_the_score_does_not_separate_leave_no_threshold(project, labeled):
    labeled(lambda number: number % 2)
    printed = project.call("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    assert printed.exit_code == 3
    assert "similar: no threshold (200 labels)" in printed.stdout
    assert "no score is certified" in printed.stdout
    assert "escalate" not in printed.stdout


def test_scores_of_a_changed_metric_are_not_calibrated(project, labeled):
    labeled(lambda number: number >= 70)
    project.pipeline({**PIPELINE, "metrics": [{"diff/similarity": {"as": "similar", "scorer": "token_sort_ratio"}}]})
    refused = project.refused("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    assert "similar" in refused
    assert "run the file first" in refused


def test_rows_without_a_score_are_counted_as_failures(project, labeled):
    labeled(lambda number: number >= 70)
    lines = (project.folder / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rows.append({"id": "none", "output": "a"})
    project.lines("rows.jsonl", rows)
    project.run()
    labels = [json.loads(line) for line in (project.folder / "gold.jsonl").read_text().splitlines()]
    project.lines("gold.jsonl", [*labels, {"subject_id": "none", "score": 1.0}])
    document = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    assert (document["stages"][0]["n"], document["stages"][0]["failures"]) == (200, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "simlar"], "similar"),
        (["--metric", "similar", "--judge", "x"], "--judge is for judges; remove it or --metric"),
        (["--metric", "similar", "--agree", "within"], "--agree is for judges"),
        (["--metric", "similar", "--judge-missing"], "--judge-missing is for judges"),
    ],
)
def test_wrong_requests_are_refused_by_name(project, labeled, options, message):
    labeled(lambda number: number >= 70)
    assert message in project.refused("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", *options)


def test_labels_of_subjects_without_a_score_are_refused_with_a_step_that_metrics_have(project, labeled):
    labeled(lambda number: number >= 70)
    labels = (project.folder / "gold.jsonl").read_text()
    (project.folder / "gold.jsonl").write_text(labels + '{"subject_id": "unknown", "score": 1}\n')
    refused = project.refused("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--metric", "similar")
    assert "unknown" in refused
    assert "run the file over them first" in refused
    assert "--judge-missing" not in refused
