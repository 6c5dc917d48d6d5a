"""Bad input, case by case: exit code 2 before a judge is asked, with a message that names the fault, or a result that states its limits."""

from __future__ import annotations

import json

import pytest
from trust_project import CHEAP, Row, cascade, judge, rows_of

ROWS = rows_of(60, wrong=lambda confidence: 0.0 if confidence > 0.6 else 0.4, seed=1)


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory):
    """Sixty rows, judged by both stages, with labels of all."""
    return judge(tmp_path_factory.mktemp("judged"), ROWS)


def events(project):
    return len(project.call("ledger", "export", "--ledger", "ledger.db").stdout.splitlines())


def refused(project, *arguments):
    """Return the message of a refused command, which has asked no judge and recorded nothing."""
    before = events(project)
    message = project.refused(*arguments)
    assert events(project) == before
    assert "Traceback" not in message
    return " ".join(message.split())


def gold(project, *lines):
    project.lines("bad.jsonl", [{"subject_id": row.id, "score": row.gold} for row in ROWS] + [*lines])


COMMANDS = ("calibrate", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_labels_of_subjects_nobody_judged(judged, command):
    lines = [{"subject_id": f"x{number}", "score": 1} for number in range(30)]
    judged.lines("bad.jsonl", lines)
    message = refused(judged, command, "pipeline.yaml", "--gold", "bad.jsonl")
    assert "'x0'" in message
    assert "bad.jsonl" in message


@pytest.mark.parametrize("command", COMMANDS)
def test_two_labels_that_differ_for_one_subject(judged, command):
    gold(judged, {"subject_id": "r5", "score": 1 - ROWS[5].gold})
    message = refused(judged, command, "pipeline.yaml", "--gold", "bad.jsonl")
    assert "bad.jsonl:61" in message
    assert "'r5' has two labels that differ" in message
    assert "on line 6" in message


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("score", [1.5, -0.1, "good-ish", None])
def test_scores_outside_0_and_1(judged, command, score):
    gold(judged, {"subject_id": "r5", "score": score})
    message = refused(judged, command, "pipeline.yaml", "--gold", "bad.jsonl")
    assert "bad.jsonl:61" in message


def test_one_class_only(judged):
    """Labels of one class can calibrate, because they show errors. They do not decide a card, and kappa is null."""
    judged.lines("ones.jsonl", [{"subject_id": row.id, "score": 1} for row in ROWS])
    card = judged.document("doctor", "pipeline.yaml", "--gold", "ones.jsonl", "--no-ask")
    (judge,) = card["judges"]
    assert (judge["can_gate"], judge["kappa"]["low"]) == (None, None)
    assert "labels of both classes are needed" in judge["undefined"]["kappa"]
    document = judged.document("calibrate", "pipeline.yaml", "--gold", "ones.jsonl", code=3)
    assert document["stages"][0]["threshold"] is None


def test_a_model_of_signals_learns_nothing_of_one_class(project):
    rows = [Row(f"r{number}", (1.0, 0.5 + number % 5 / 10), (1.0, 0.9), 1.0) for number in range(160)]
    project.write(rows)
    project.run()
    arguments = ("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--signals", "model")
    (stage,) = project.document(*arguments, code=3)["stages"]
    assert stage["reasons"] == [
        "one_class: the verdicts agree with all labels, or with no label, so a model learns nothing"
    ]
    (stage,) = project.document(*arguments[:-1], "auto", "--assume-random")["stages"]
    assert (stage["signal"], stage["threshold"]) == ("confidence", 0.5)


def test_fewer_than_the_least_n(judged):
    judged.lines("few.jsonl", [{"subject_id": row.id, "score": row.gold} for row in ROWS[:21]])
    message = refused(judged, "calibrate", "pipeline.yaml", "--gold", "few.jsonl")
    assert "21 labels" in message
    assert "needs at least 22" in message


def changed(**stage):
    """Return the cascade with a calibration, and another first stage."""
    pipeline = cascade(calibration="calibration.json")
    first = pipeline["judges"][0]["hybrid/cascade"]["stages"][0]["llm/judge"]
    first.update(stage)
    return pipeline


def another_judge():
    pipeline = changed()
    pipeline["judges"][0]["hybrid/cascade"]["stages"][0] = {"llm/jury": {"judges": [{"llm/judge": {"model": "grader", "criteria": [CHEAP]}}] * 2}}  # fmt: skip
    return pipeline


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        (another_judge(), "it was llm/judge, and is llm/jury"),
        (changed(criteria=["another look"]), "criteria was"),
        (changed(system_prompt="Be kind."), "system_prompt was"),
        (changed(rubric="turn-llm-v1"), "rubric was"),
        (changed(model={"replay/chat": {"path": "others.jsonl"}}), "model.replay/chat.path was"),
    ],
    ids=["judge", "prompt", "system prompt", "rubric", "model"],
)
def test_a_calibration_of_another_judge(judged, pipeline, expected):
    judged.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    (judged.folder / "others.jsonl").write_text((judged.folder / "replies.jsonl").read_text())
    judged.pipeline(pipeline)
    message = refused(judged, "run", "pipeline.yaml")
    assert "is not the calibrated judge" in message
    assert expected in message


def test_a_file_edited_by_hand(judged):
    judged.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    path = judged.folder / "calibration.json"
    document = json.loads(path.read_text())
    document["stages"][0]["threshold"] = 0.0
    path.write_text(json.dumps(document))
    judged.pipeline(cascade(calibration="calibration.json"))
    assert "digest" in refused(judged, "run", "pipeline.yaml")


def test_sessions_of_one_subject_are_as_none(judged):
    before = judged.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")["stages"][0]
    judged.lines(
        "alone.jsonl", [{"subject_id": row.id, "score": row.gold, "session_id": f"s-{row.id}"} for row in ROWS]
    )
    stage = judged.document("calibrate", "pipeline.yaml", "--gold", "alone.jsonl")["stages"][0]
    assert (stage["method"], stage["sessions"], stage["ladder"]) == ("exact", None, before["ladder"])


def test_constant_confidences(project):
    project.write([Row(f"r{number}", (1.0, 0.8), (1.0, 0.9), 1.0) for number in range(40)])
    project.run()
    (stage,) = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--assume-random")["stages"]
    assert (stage["threshold"], stage["kept"]["share"]) == (0.8, 1.0)
    assert stage["reasons"][1:] == [
        "constant_signal: every verdict has the same signal, so all verdicts are kept or all escalate"
    ]


def test_all_verdicts_failed(judged):
    recorded = [json.loads(line) for line in (judged.folder / "replies.jsonl").read_text().splitlines()]
    broken = json.loads(json.dumps(recorded).replace('\\"score\\"', '\\"scope\\"'))
    judged.lines("replies.jsonl", broken)
    pipeline = cascade(ask_all=True)
    judged.pipeline(pipeline)
    judged.call("run", "pipeline.yaml")
    (stage,) = judged.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--run", "last", code=3)["stages"]
    assert (stage["threshold"], stage["n"], stage["failures"]) == (None, 0, 60)
    (reason,) = stage["reasons"]
    assert reason.startswith("all_failed: every verdict on a labeled subject is a failure: 60 verdicts failed")
    assert "the endpoint gave no reply (judge_call_failed)" in reason
    message = refused(judged, "doctor", "pipeline.yaml", "--gold", "gold.jsonl")
    assert "failed" in message or "another judge" in message


def test_a_run_without_a_known_n(project):
    """A live source has neither a random order nor a known size: no stop can decide, and no rate gives a width."""
    (project.folder / "trace.jsonl").write_text("")
    pipeline = {"source": {"traces/events": {"path": "trace.jsonl"}}, "judges": ["heuristic/turn"]}
    project.pipeline(pipeline | {"early_stop": [{"trust/anytime": {"at": 0.5}}]})
    assert "add shuffle: SEED" in project.refused("run", "pipeline.yaml")
    stopping = pipeline | {"early_stop": [{"trust/anytime": {"at": 0.5}}]}
    stopping["source"] = {"traces/events": {"path": "trace.jsonl", "shuffle": 1}}
    project.pipeline(stopping)
    assert "'early_stop' needs a source that ends" in project.refused("watch", "pipeline.yaml", "--once")
    project.pipeline({key: value for key, value in stopping.items() if key != "early_stop"})
    assert "no random order" in project.refused("watch", "pipeline.yaml", "--once")
    metrics = {"proxy": [{"proxy/length": {"min": 3}}], "truth": [{"check/contains": {"value": "x"}}]}
    audit = {"audit": {"rate": {"auto": {"width": 0.02}}}}
    project.pipeline({"source": pipeline["source"], "metrics": metrics, "scoring": audit})
    assert "the number of subjects is unknown" in project.refused("watch", "pipeline.yaml", "--once")


@pytest.mark.parametrize(("option", "value"), [("--target", "1"), ("--target", "nan"), ("--alpha", "0")])
def test_a_target_or_an_alpha_outside_0_and_1(judged, option, value):
    message = refused(judged, "calibrate", "pipeline.yaml", "--gold", "gold.jsonl", option, value)
    assert option in message
    assert "between 0 and 1" in message


def test_weights(judged):
    gold(judged)
    lines = [json.loads(line) | {"weight": 2} for line in (judged.folder / "bad.jsonl").read_text().splitlines()]
    judged.lines("bad.jsonl", lines)
    message = refused(judged, "calibrate", "pipeline.yaml", "--gold", "bad.jsonl")
    assert "equal chances" in message


@pytest.mark.parametrize("drawn", ["stratified", "disagreements", "audits", "by hand"])
def test_labels_that_say_themselves_how_they_were_drawn(judged, drawn):
    gold(judged, {"subject_id": "r5", "score": ROWS[5].gold, "drawn": drawn})
    for command in ("calibrate", "doctor"):
        message = refused(judged, command, "pipeline.yaml", "--gold", "bad.jsonl")
        assert "bad.jsonl:61" in message
        assert "such a 'drawn' were not drawn with equal chances" in message


def test_a_weight_is_named_by_its_own_line(judged):
    gold(judged, {"subject_id": "r5", "score": ROWS[5].gold, "weight": 3})
    assert "bad.jsonl:61" in refused(judged, "calibrate", "pipeline.yaml", "--gold", "bad.jsonl")


def test_a_label_of_a_subject_nobody_judged_is_named_by_its_line(judged):
    gold(judged, {"subject_id": "r600", "score": 1})
    message = refused(judged, "calibrate", "pipeline.yaml", "--gold", "bad.jsonl")
    assert "bad.jsonl:61" in message
    assert "'r600'" in message


def test_a_card_says_which_labels_it_has_no_verdict_for(judged):
    gold(judged, {"subject_id": "r600", "score": 1}, {"subject_id": "s1", "subject_kind": "session", "score": 1})
    (judge,) = judged.document("doctor", "pipeline.yaml", "--gold", "bad.jsonl", "--no-ask")["judges"]
    assert (judge["labels"]["n"], judge["labels"]["without_verdict"], judge["labels"]["example"]) == (60, 1, "r600")
    text = " ".join(judged.call("doctor", "pipeline.yaml", "--gold", "bad.jsonl", "--no-ask").stdout.split())
    assert "not counted: 1 label of subjects without a verdict, such as 'r600'" in text


def test_labels_that_differ_name_no_labeller_where_none_is_known(judged):
    gold(judged, {"subject_id": "r5", "score": 1 - ROWS[5].gold})
    message = refused(judged, "calibrate", "pipeline.yaml", "--gold", "bad.jsonl")
    assert "nobody named" not in message
    assert "adjudicated: true" in message


def test_labels_of_another_kind_say_which_kind_was_judged(judged):
    judged.lines("bad.jsonl", [{"subject_id": row.id, "subject_kind": "turn", "score": row.gold} for row in ROWS])
    message = refused(judged, "calibrate", "pipeline.yaml", "--gold", "bad.jsonl")
    assert "bad.jsonl:1" in message
    assert "row 'r0', but the label has the kind 'turn'" in message


@pytest.mark.parametrize(
    "arguments", [("calibrate", "--out"), ("doctor", "--no-ask", "--out"), ("doctor", "--no-ask", "--html")]
)
@pytest.mark.parametrize("name", ["pipeline.yaml", "gold.jsonl"])
def test_what_a_command_reads_is_not_written_over(judged, arguments, name):
    before = (judged.folder / name).read_bytes()
    message = refused(judged, arguments[0], "pipeline.yaml", "--gold", "gold.jsonl", *arguments[1:], f"./{name}")
    assert "the command reads this file" in message
    assert (judged.folder / name).read_bytes() == before


def test_labels_of_one_session_ask_for_labels_of_others(project):
    project.write([Row(row.id, row.cheap, row.expensive, row.gold, "s") for row in rows_of(160, wrong=lambda _: 0.05)])
    project.run()
    document = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--signals", "confidence", code=3)
    (stage,) = document["stages"]
    assert [reason.partition(":")[0] for reason in stage["reasons"]] == ["one_session", "few_sessions"]
    assert "each of a different session" in stage["needed"]["words"]
    document = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--signals", "model", code=3)
    assert "no other part remains to learn from" in document["stages"][0]["reasons"][0]


@pytest.mark.parametrize("ask", ["--ask", "--no-ask"])
def test_recorded_replies_that_repeat_themselves_reach_no_bar(judged, ask):
    judged.run()
    (judge,) = judged.document("doctor", "pipeline.yaml", "--gold", "gold.jsonl", ask)["judges"]
    assert (judge["self_consistency"]["value"], judge["self_consistency"]["n"]) == (1.0, 50)
    (bar,) = [entry for entry in judge["bars"] if entry["rule"] == "min_consistency"]
    assert (bar["value"], bar["passed"]) == (None, None)
    assert "a recording or a cache" in judge["undefined"]["self_consistency"]
