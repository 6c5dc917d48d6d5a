"""Audits by people: kept verdicts of a watch wait for labels, and labels that disagree too often revoke the calibration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicast import pipeline_judges
from dicast._kernel.cli import main
from dicast_hybrid.document import answered
from dicast_trust.calibration.document import digest
from dicast_trust.labeling.label import Work

PIPELINE = """
name: live
source: {traces/events: {path: trace.jsonl, subjects: [turn]}}
judges:
  - hybrid/cascade:
      as: both
      stages: [{heuristic/turn: {lookahead_messages: 0}}, heuristic/turn]
      calibration: calibration.json
      audit: {rate: 1, seed: 0, against: gold}
ledger: {ledger/sqlite: {path: ledger.db}}
"""
RULES = "      calibration: calibration.json\n      audit: {rate: 1, seed: 0, against: gold}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cascade whose first stage keeps all, with a target of .9."""
    monkeypatch.chdir(tmp_path)
    Path("plain.yaml").write_text(PIPELINE.replace(RULES, ""))
    Path("trace.jsonl").write_text("")
    stage = pipeline_judges(Path("plain.yaml")).judges[0].inside[".stages[0]"]
    of = {"component": stage.name, "version": stage.version, "options": stage.options, "fingerprint": stage.fingerprint}
    step = {"label": stage.label, "fingerprint": answered(stage.fingerprint, None), "of": {**of, "model": None}}
    step |= {"signal": "confidence", "model": None, "threshold": 0.0, "audit_risk": None}
    document = {"version": 1, "target": 0.9, "alpha": 0.1, "agree": "pass", "window": None, "pass_at": 0.5}
    document |= {"stages": [step]}
    Path("calibration.json").write_text(json.dumps(document | {"digest": digest(document)}))
    Path("live.yaml").write_text(PIPELINE)
    return tmp_path


def say(numbers, sessions=None):
    """Add turns to the trace, each the last one of its session unless *sessions* says otherwise."""
    with Path("trace.jsonl").open("a") as trace:
        for number in numbers:
            session, day = f"s{number}" if sessions is None else sessions, f"2026-03-02T09:{number:02}"
            texts = {"user_prompt_text": "q", "final_response_text": f"answer {number}"}
            turn = {"stop_reason": "end_turn", "tool_call_count": 0, "signals_extra": texts}
            for type_, turn_id, second, payload in (
                ("turn.completed", f"t{number}", "00", turn),
                ("session.ended", None, "30", {"disposition": "completed"}),
            ):
                if type_ == "turn.completed" or sessions is None:
                    event = {"type": type_, "time": f"{day}:{second}Z", "session_id": session, "turn_id": turn_id}
                    trace.write(json.dumps({**event, "payload": payload}) + "\n")


def label(capsys, numbers, *, right):
    """Import labels of turns that agree with the verdicts, or do not."""
    scores = {one["subject_id"]: one["score"] for one in verdicts(capsys)}
    rows = [(f"t{n}", (scores[f"t{n}"] >= 0.5) == right) for n in numbers]
    Path("gold.jsonl").write_text("".join(json.dumps({"subject_id": a, "score": int(b)}) + "\n" for a, b in rows))
    assert main(["labels", "import", "gold.jsonl", "--ledger", "ledger.db", "--labeller", "ada"]) == 0


def watch():
    assert main(["watch", "live.yaml", "--once"]) in (0, 3)


def told(capsys, type_):
    capsys.readouterr()
    main(["ledger", "export", "--ledger", "ledger.db"])
    events = map(json.loads, capsys.readouterr().out.splitlines())
    return [event["payload"] for event in events if event["type"] == type_]


def verdicts(capsys):
    capsys.readouterr()
    main(["verdicts", "--ledger", "ledger.db", "--judge", "both", "--json"])
    return json.loads(capsys.readouterr().out)["verdicts"]


def test_labels_of_a_watch_audit_what_is_kept_and_revoke_it(folder, capsys):
    say(range(12))
    watch()
    kept = verdicts(capsys)
    assert all(
        {**one["signals"]["audit"], "output_digest": "?"}
        == {"against": "gold", "propensity": 1.0, "output_digest": "?"}
        for one in kept
    )
    assert [one["calibrated"] for one in kept] == [True] * 12
    assert told(capsys, "calibration.audited") == []  # nobody has labelled them
    label(capsys, range(10), right=False)
    say(range(20, 23))
    watch()
    audits = told(capsys, "calibration.audited")
    assert [(one["against"], one["loss"]) for one in audits] == [("gold", True)] * 10
    (revoked,) = told(capsys, "calibration.revoked")
    assert revoked["losses"] == revoked["n"] <= 10
    assert revoked["e_value"] >= 10
    later = [one for one in verdicts(capsys) if one["subject_id"] in ("t20", "t21", "t22")]
    assert [one["calibrated"] for one in later] == [False] * 3
    assert later[0]["signals"]["calibration"]["reasons"] == ["revoked"]


def test_labels_that_agree_revoke_nothing_and_count_once(folder, capsys):
    say(range(6))
    watch()
    label(capsys, range(6), right=True)
    for number in (30, 31):
        say([number])
        watch()
    audits = told(capsys, "calibration.audited")
    assert [one["subject"] for one in audits] == [f"t{n}" for n in range(6)]
    assert not any(one["loss"] for one in audits)
    assert told(capsys, "calibration.revoked") == []
    assert all(one["calibrated"] for one in verdicts(capsys))


def test_one_audit_a_session_counts(folder, capsys):
    say(range(5), sessions="all-one")
    say([40])
    watch()
    label(capsys, [0, 1, 2, 40], right=False)
    say([41])
    watch()
    assert [one["who"] for one in told(capsys, "calibration.audited")] == ["session all-one", "session s40"]


def test_labels_that_were_there_before_the_verdict_are_no_audit(folder, capsys):
    say(range(4))
    watch()
    label(capsys, range(4), right=False)
    capsys.readouterr()
    assert main(["watch", "live.yaml", "--once", "--new"]) in (0, 3)  # the same turns, judged anew
    say([50])
    watch()
    audits = told(capsys, "calibration.audited")
    assert len(audits) == len({one["subject"] for one in audits}) == 4  # those of the first verdicts, and no more


def test_a_labeller_is_shown_what_waits_and_nothing_else(folder, capsys):
    say(range(3))
    watch()
    work = Work(None, pipeline_judges(Path("live.yaml")), ())
    chosen = work.read(lambda live: work.chosen(live, "ada", "audits", 0))
    assert {one.subject.id for one in chosen.subjects} == {"t0", "t1", "t2"}
    label(capsys, [1], right=True)
    chosen = work.read(lambda live: work.chosen(live, "ada", "audits", 0))
    assert {one.subject.id for one in chosen.subjects} == {"t0", "t2"}
    Path("live.yaml").write_text(PIPELINE.replace("rate: 1,", "rate: 0,"))
    assert main(["watch", "live.yaml", "--once", "--new"]) in (0, 3)
    assert all("audit" not in one["signals"] for one in verdicts(capsys)[-3:])
