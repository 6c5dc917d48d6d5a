"""Summary of a run with verdicts kept by a calibration."""

from __future__ import annotations

from trust_project import cascade, rows_of


def test_summary_tells_calibrated_models_from_others(project):
    rows = rows_of(120, wrong=lambda confidence: 0 if confidence >= 0.8 else 0.4)
    project.write(rows)
    project.run()
    project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    project.pipeline(cascade(calibration="calibration.json"))
    text = " ".join(project.call("run", "pipeline.yaml", "--full").stdout.split())
    count = sum(verdict["calibrated"] for verdict in project.verdicts())
    assert f"calibrated model: {count}, uncalibrated model: {120 - count}" in text
    assert project.run()["score"]["calibrated"] == count
