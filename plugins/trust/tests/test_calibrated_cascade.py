"""The cascade with a calibration: kept verdicts, refused calibrations, and revocation."""

from __future__ import annotations

import json

import pytest
from trust_project import CHEAP, Row, cascade, judge, rows_of

SURE = rows_of(120, wrong=lambda confidence: 0 if confidence >= 0.8 else 0.4)


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory):
    return judge(tmp_path_factory.mktemp("judged"), SURE)


@pytest.fixture
def calibrated(judged):
    """Calibrated project, whose cascade uses the calibration."""
    judged.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    judged.pipeline(cascade(calibration="calibration.json"))
    return judged


def test_what_reaches_the_threshold_is_kept_and_says_so(calibrated):
    calibrated.run()
    threshold = json.loads((calibrated.folder / "calibration.json").read_text())["stages"][0]["threshold"]
    kept_ids = {row.id for row in SURE if row.cheap[1] >= threshold}
    for verdict in calibrated.verdicts():
        calibration = verdict["signals"]["calibration"]
        assert verdict["calibrated"] is calibration["kept"] is (verdict["subject_id"] in kept_ids)
        assert (verdict["judge_kind"] == "hybrid") is (verdict["subject_id"] not in kept_ids)
        assert calibration["threshold"] == threshold
        assert calibration["reasons"] == ([] if calibration["kept"] else ["below_threshold"])


def test_null_threshold_always_escalates(project):
    project.write(rows_of(60, wrong=lambda _: 0.5))
    project.run()
    project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", code=3)
    project.pipeline(cascade(calibration="calibration.json"))
    assert project.run()["judges"]["both"]["escalated"] == 60
    assert {verdict["calibrated"] for verdict in project.verdicts()} == {False}
    assert project.verdicts()[0]["signals"]["calibration"]["reasons"] == ["no_threshold"]


def events(project):
    return sum(1 for _ in project.call("ledger", "export", "--ledger", "ledger.db").stdout.splitlines())


def refused_run(project):
    before = events(project)
    message = project.refused("run", "pipeline.yaml")
    assert events(project) == before  # nothing was asked, nothing recorded
    return message


def test_changed_prompt_is_refused_by_the_option_that_differs(calibrated):
    changed = cascade(calibration="calibration.json")
    changed["judges"][0]["hybrid/cascade"]["stages"][0]["llm/judge"]["criteria"] = [CHEAP, "and kindness"]
    calibrated.pipeline(changed)
    message = refused_run(calibrated)
    assert "both.stages[0] is not the calibrated judge" in message
    assert "criteria was" in message
    assert "and kindness" in message


def test_changed_recording_is_refused(calibrated):
    with (calibrated.folder / "replies.jsonl").open("a") as file:
        file.write((calibrated.folder / "replies.jsonl").read_text().splitlines()[1] + "\n")
    assert "one of its files has changed" in refused_run(calibrated)


def test_changed_last_stage_needs_no_new_calibration(calibrated):
    changed = cascade(calibration="calibration.json")
    changed["judges"][0]["hybrid/cascade"]["stages"][1]["llm/judge"]["retries"] = 0
    calibrated.pipeline(cascade(calibration="calibration.json"))
    before = calibrated.run()
    calibrated.pipeline(changed)
    after = calibrated.run()
    assert before["scored"] == after["scored"] > 0
    assert [item["calibrated"] for item in calibrated.verdicts(after["run_id"])] == [
        item["calibrated"] for item in calibrated.verdicts(before["run_id"])
    ]
    assert any(item["calibrated"] for item in calibrated.verdicts(after["run_id"]))


def test_other_number_of_stages_is_refused(calibrated):
    changed = cascade(calibration="calibration.json")
    stages = changed["judges"][0]["hybrid/cascade"]["stages"]
    stages.append(stages[1])
    calibrated.pipeline(changed)
    assert "has 1 steps and the cascade 2" in refused_run(calibrated)


def test_edit_by_hand_is_refused(calibrated):
    path = calibrated.folder / "calibration.json"
    path.write_text(path.read_text().replace('"target": 0.9', '"target": 0.99'))
    assert "(digest)" in refused_run(calibrated)


@pytest.mark.parametrize(
    ("text", "message"), [("{nope", "cannot be read"), ("[]", "not a calibration"), (None, "no calibration at")]
)
def test_file_that_is_no_calibration_is_refused(calibrated, text, message):
    path = calibrated.folder / "calibration.json"
    path.unlink() if text is None else path.write_text(text)
    assert message in refused_run(calibrated)


def test_calibration_and_threshold_together_are_an_error(calibrated):
    calibrated.pipeline(cascade(calibration="calibration.json", escalation_threshold=0.7))
    assert "remove escalation_threshold" in calibrated.refused("check", "pipeline.yaml")


def test_audit_without_a_calibration_is_an_error(project):
    project.write(SURE[:3])
    project.pipeline(cascade(audit={"rate": 0.1}))
    assert "audit needs a calibration" in project.refused("check", "pipeline.yaml")


def drifted(rate):
    """Return rows of a later time, on which the cheap judge is wrong at *rate* at every confidence; the expensive judge is still right."""
    rows = rows_of(600, wrong=lambda _: rate, seed=9)
    return [Row(f"n{number}", (row.cheap[0], 1.0), row.expensive, row.gold) for number, row in enumerate(rows)]


@pytest.fixture
def shifting(project):
    """Project with rows of two times: the calibration is from the first; in the second the judge has drifted."""
    rows = [*SURE, *drifted(0.5)]
    project.write(rows)
    project.gold(SURE)
    project.lines("rows.jsonl", [{"id": row.id, "input": "?", "output": f"answer-{row.id}"} for row in SURE])
    project.run()
    project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    project.lines(
        "rows.jsonl", [{"id": row.id, "input": "?", "output": f"answer-{row.id}"} for row in rows[len(SURE) :]]
    )
    project.pipeline(cascade(calibration="calibration.json", audit={"rate": 0.2, "seed": 1}))
    return project


def events_of(project, type_):
    lines = project.call("ledger", "export", "--ledger", "ledger.db").stdout.splitlines()
    return [
        json.loads(event["payload"]) if isinstance(event["payload"], str) else event["payload"]
        for event in map(json.loads, lines)
        if event["type"] == type_
    ]


def test_audits_revoke_a_calibration_that_holds_no_more_also_for_later_runs(shifting):
    shifting.run()
    (revoked,) = events_of(shifting, "calibration.revoked")
    assert revoked["label"] == "both.stages[0]"
    assert revoked["e_value"] >= 10
    assert 0 < revoked["losses"] <= revoked["n"] <= 60
    verdicts = shifting.verdicts()
    audited = [verdict["signals"]["audit"] for verdict in verdicts if "audit" in verdict["signals"]]
    assert all(entry["propensity"] == 0.2 and entry["stage"] == 1 for entry in audited)
    assert sum(entry["loss"] for entry in audited) >= revoked["losses"]
    assert verdicts[-1]["calibrated"] is False
    assert verdicts[-1]["signals"]["calibration"]["reasons"] == ["revoked"]
    shifting.run()
    assert {verdict["calibrated"] for verdict in shifting.verdicts()} == {False}
    assert len(events_of(shifting, "calibration.revoked")) == 1


def test_same_subjects_are_audited_once_over_all_runs(shifting):
    shifting.pipeline(cascade(calibration="calibration.json", audit={"rate": 0.02, "seed": 1}))
    shifting.run()
    first = [entry["who"] for entry in events_of(shifting, "calibration.audited")]
    shifting.run()
    assert [entry["who"] for entry in events_of(shifting, "calibration.audited")] == first
    assert len(set(first)) == len(first) > 0


def test_ledger_with_audits_verifies_and_calibrates_again(shifting):
    shifting.run()
    assert shifting.document("ledger", "verify", "--ledger", "ledger.db")["ok"] is True
    document = shifting.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--assume-random")
    assert document["population"]["n"] == 720
