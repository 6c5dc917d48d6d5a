"""``dicast calibrate`` on a cascade of recorded judges, and the cascade that uses the calibration."""

from __future__ import annotations

import json
import re
from hashlib import sha256

import orjson
import pytest
import yaml
from trust_project import CHEAP, Row, cascade, judge, rows_of

from dicast import Reply
from dicast.testing import FakeChatModel, run_pipeline


def good_above(line, *, below=0.4):
    """Return the error rate of a judge that is nearly always right if its confidence reaches *line*."""
    return lambda confidence: 0.02 if confidence >= line else below


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory):
    """Project with 200 rows, all judged by both stages."""
    return judge(tmp_path_factory.mktemp("judged"), rows_of(200, wrong=good_above(0.8)))


def calibrate(project, *options, code=0):
    return project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", *options, code=code)


def by_hand(rows, *, risk=0.1, alpha=0.1):
    """Compute the fixed sequence again: threshold, kept labels and errors."""
    from scipy import stats

    ladder = sorted({row.cheap[1] for row in rows}, reverse=True)
    last, is_tested = None, False
    for threshold in ladder:
        kept_rows = [row for row in rows if row.cheap[1] >= threshold]
        errors = sum((row.cheap[0] >= 0.5) != (row.gold >= 0.5) for row in kept_rows)
        is_tested = is_tested or len(kept_rows) >= max(22, -(-3 * len(rows) // 10))
        if not is_tested:
            continue
        if stats.binom.cdf(errors, len(kept_rows), risk) > alpha:
            break
        last = threshold, len(kept_rows), errors
    return last


def test_threshold_is_where_the_exact_test_stops(judged):
    from scipy import stats

    rows = rows_of(200, wrong=good_above(0.8))
    stage = calibrate(judged, "--signals", "confidence")["stages"][0]
    threshold, count, errors = by_hand(rows)
    assert (stage["threshold"], stage["kept"]["labels"], stage["errors"]) == (threshold, count, errors)
    assert stage["kept"]["share"] == count / 200
    assert stage["agreement"] == 1 - errors / count
    assert stage["upper"] == pytest.approx(stats.beta.ppf(0.9, errors + 1, count - errors), abs=1e-12)
    assert (stage["label"], stage["signal"], stage["method"], stage["n"]) == (
        "both.stages[0]",
        "confidence",
        "exact",
        200,
    )
    assert [rung["passed"] for rung in stage["ladder"]][-1] is None


def test_document_has_its_evidence_and_its_guarantee(judged):
    document = calibrate(judged, "--out", "out/c.json")
    assert json.loads((judged.folder / "out" / "c.json").read_text()) == document
    assert document["gold"] == {"n": 200, "digest": sha256((judged.folder / "gold.jsonl").read_bytes()).hexdigest()}
    assert (document["population"]["n"], len(document["population"]["runs"])) == (200, 1)
    assert document["guarantee"] == "holds for subjects drawn as these labels were"
    rest = {key: value for key, value in document.items() if key != "digest"}
    assert document["digest"] == sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()
    assert document["cascade"]["last_stage"]["value"] == 1.0
    escalated = 1 - document["stages"][0]["kept"]["share"]
    assert document["cascade"]["escalation_rate"] == pytest.approx(escalated)
    assert document["cascade"]["asked"] == pytest.approx({"both.stages[0]": 1.0, "both.stages[1]": escalated})


def test_summary_fits_80_columns_and_names_the_population(judged):
    text = judged.call("calibrate", "pipeline.yaml", "--gold", "gold.jsonl").stdout
    assert "This holds for subjects drawn as these labels were." in text
    assert "keep verdicts with confidence >= 0.8" in text
    assert "cost nothing; the cascade asks both.stages[1] about" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_no_threshold_is_exit_3_with_a_range_of_labels(project):
    project.write(rows_of(60, wrong=lambda _: 0.12))
    project.run()
    stage = calibrate(project, code=3)["stages"][0]
    assert stage["threshold"] is None
    assert stage["errors"] is None
    assert stage["needed"].keys() == {"low", "mid", "high", "words"}
    assert any(word in stage["needed"]["words"] for word in ("more labels", "none will do"))
    assert stage["reasons"]


@pytest.mark.parametrize(
    ("agree", "gold", "errors"),
    [
        ("pass", [1.0, 0.6, 0.4], [0, 0, 1]),
        ("within", [1.0, 0.6, 0.85], [0, 1, 0]),
        ("winner", [1.0, 0.5, 0.0], [0, 1, 1]),
    ],
)
def test_agreeing_is_by_side_by_distance_or_by_winner(project, agree, gold, errors):
    rows = [Row(f"r{n}", (1.0, 0.9), (1.0, 0.9), gold[n % 3]) for n in range(30)]
    project.write(rows)
    project.run()
    stage = calibrate(project, "--agree", agree, "--target", "0.9", code=0 if not any(errors) else 3)["stages"][0]
    assert stage["ladder"][0]["errors"] == 10 * sum(errors)


def test_sessions_with_several_labels_take_the_clustered_bound(project):
    from scipy import stats

    project.write(rows_of(120, wrong=good_above(0.5, below=0), sessions=30))
    project.run()
    stage = calibrate(project)["stages"][0]
    assert (stage["method"], stage["sessions"]) == ("korn-graubard", 30)
    count, errors = stage["kept"]["labels"], stage["errors"]
    assert stage["upper"] >= stats.beta.ppf(0.9, errors + 1, count - errors)


def test_few_sessions_are_reported(project):
    project.write(rows_of(120, wrong=lambda _: 0, sessions=6))
    project.run()
    assert any(reason.startswith("few_sessions") for reason in calibrate(project)["stages"][0]["reasons"])


@pytest.mark.parametrize(("sessions", "is_reported"), [(21, True), (22, False)])
def test_sessions_too_few_if_their_subjects_were_equal_are_reported(project, sessions, is_reported):
    """A target of .9 at alpha .1 needs 22 labels without an error, so 22 sessions if all subjects of a session are equal."""
    project.write(rows_of(132, wrong=lambda _: 0, sessions=sessions))
    project.run()
    reasons = calibrate(project)["stages"][0]["reasons"]
    assert [reason.partition(":")[0] for reason in reasons] == (["alike_sessions"] if is_reported else [])


def test_sessions_of_very_different_sizes_are_reported(project):
    sizes = [1] * 30 + [60]
    rows = [
        Row(f"r{number}", (0.9, 0.9), (0.9, 0.9), 1.0, f"s{session}")
        for number, session in enumerate(of for of, size in enumerate(sizes) for _ in range(size))
    ]
    project.write(rows)
    project.run()
    (stage,) = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--assume-random")["stages"]
    assert stage["sessions"] == 31
    assert any(reason.startswith("unequal_sessions: 31 sessions") for reason in stage["reasons"])


def test_one_session_says_nothing_of_others(project):
    project.write(rows_of(40, wrong=lambda _: 0, sessions=1))
    project.run()
    stage = calibrate(project, code=3)["stages"][0]
    assert stage["threshold"] is None
    assert any(reason.startswith("one_session") for reason in stage["reasons"])


def test_constant_confidences_are_kept_together(project):
    project.write([Row(f"r{n}", (1.0, 0.7), (1.0, 0.9), 1.0) for n in range(40)])
    project.run()
    stage = calibrate(project, "--assume-random")["stages"][0]
    assert (stage["threshold"], stage["kept"]["labels"], len(stage["ladder"])) == (0.7, 40, 1)
    assert any(reason.startswith("constant_signal") for reason in stage["reasons"])


def test_sequential_needs_more_evidence(judged):
    exact, running = calibrate(judged), calibrate(judged, "--sequential")
    stage = running["stages"][0]
    assert stage["method"] == "sequential"
    assert stage["threshold"] is None or stage["threshold"] >= exact["stages"][0]["threshold"]
    assert all(rung["upper"] <= 0.1 for rung in stage["ladder"] if rung["passed"])


def test_a_sequential_test_says_that_it_needs_more_labels(project):
    project.write(rows_of(60, wrong=lambda _: 0.05))
    project.run()
    fixed, running = (
        calibrate(project, *options, code=3)["stages"][0]["needed"] for options in ((), ("--sequential",))
    )
    assert running["low"] > 1.3 * fixed["low"]


def test_model_of_signals_is_cross_fitted_and_fixed_by_the_seed(judged):
    document = calibrate(judged, "--signals", "model", "--seed", "3")
    stage = document["stages"][0]
    assert (stage["signal"], stage["method"]) == ("model", "cross-fitted")
    assert stage["model"]["features"][0] == "confidence"
    assert len(stage["ladder"]) <= 40
    assert calibrate(judged, "--signals", "model", "--seed", "3") == document


def test_feature_that_no_verdict_has_is_refused(judged):
    message = judged.refused(
        "calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--signals", "model", "--features", "mood"
    )
    assert "--features mood" in message
    assert "attempts" in message


def test_three_stages_share_the_alpha_and_the_labels(project):
    from scipy import stats

    rows = rows_of(300, wrong=lambda c: 0.01 if c >= 0.8 else 0.3)
    project.write(rows)
    pipeline = cascade(ask_all=True)
    stages = pipeline["judges"][0]["hybrid/cascade"]["stages"]
    pipeline["judges"][0]["hybrid/cascade"]["stages"] = [stages[0], stages[1], stages[1]]
    project.pipeline(pipeline)
    project.run()
    first, second = calibrate(project, "--signals", "confidence")["stages"]
    count = first["kept"]["labels"]
    assert first["upper"] == pytest.approx(
        stats.beta.ppf(0.95, first["errors"] + 1, count - first["errors"]), abs=1e-12
    )
    assert second["n"] == 300 - count
    assert second["kept"]["share"] == pytest.approx(1 - first["kept"]["share"])


# Bad input: nothing is written, nothing asked


def refused(project, *options, gold="gold.jsonl"):
    message = project.refused("calibrate", "pipeline.yaml", "--gold", gold, *options)
    assert not (project.folder / "calibration.json").exists()
    return message


def test_labels_of_subjects_that_nobody_judged_are_refused(judged):
    judged.gold([*rows_of(30, wrong=lambda _: 0), Row("x1", (1, 1), (1, 1), 1.0)])
    message = refused(judged)
    assert "'x1'" in message
    assert "--judge-missing" in message


def test_two_labels_that_differ_are_refused_with_both_lines(judged):
    judged.lines(
        "gold.jsonl", [{"subject_id": f"r{n}", "score": 1} for n in range(30)] + [{"subject_id": "r3", "score": 0}]
    )
    message = refused(judged)
    assert "gold.jsonl:31" in message
    assert "'r3' has two labels that differ" in message
    assert "line 4" in message


def test_scores_outside_0_and_1_are_refused_by_line(judged):
    judged.lines("gold.jsonl", [{"subject_id": f"r{n}", "score": n} for n in range(30)])
    message = refused(judged)
    assert "gold.jsonl:3: 2 is not a score from 0 to 1" in message


def test_weighted_labels_are_refused(judged):
    (judged.folder / "gold.csv").write_text("subject_id,score,weight\n" + "".join(f"r{n},1,2\n" for n in range(30)))
    assert "not drawn with equal chances" in refused(judged, gold="gold.csv")


def test_too_few_labels_are_refused_with_the_least_number(judged):
    judged.gold(rows_of(21, wrong=lambda _: 0))
    assert "needs at least 22" in refused(judged)


@pytest.mark.parametrize(
    ("option", "value"), [("--target", "1"), ("--alpha", "0"), ("--target", "nan"), ("--window", "2")]
)
def test_rates_out_of_range_are_refused(judged, option, value):
    assert option in refused(judged, option, value)


def test_labels_in_csv_and_in_words_are_the_same_as_in_json(judged):
    before = calibrate(judged)
    rows = rows_of(200, wrong=good_above(0.8))
    text = "subject_id,label,labeller\n" + "".join(f"{row.id},{'pass' if row.gold else 'fail'},ada\n" for row in rows)
    (judged.folder / "gold.csv").write_text(text)
    after = judged.document("calibrate", "pipeline.yaml", "--gold", "gold.csv")
    assert after["stages"] == before["stages"]


def test_stage_under_several_fingerprints_is_refused(project):
    rows = rows_of(60, wrong=lambda _: 0)
    project.write(rows[:30], model="m-1")
    project.run()
    (project.folder / "replies.jsonl").unlink()
    project.write(rows[30:], model="m-2")
    project.run()
    project.gold(rows)
    message = refused(project)
    assert "answered under 2 fingerprints" in message
    assert "--run ID" in message


def test_verdicts_of_another_prompt_than_the_files_are_refused(judged):
    changed = cascade()
    changed["judges"][0]["hybrid/cascade"]["stages"][0]["llm/judge"]["criteria"] = [CHEAP, "and more"]
    judged.pipeline(changed)
    assert "another judge than the judge in the file" in refused(judged)


def test_labels_of_one_class_give_no_threshold_unless_assumed_random(project):
    project.write([Row(f"r{n}", (1.0, 0.9), (1.0, 0.9), 1.0) for n in range(200)])
    project.run()
    stage = calibrate(project, code=3)["stages"][0]
    assert stage["threshold"] is None
    assert reason_names(stage)[0] == "labels_of_one_class"
    assert calibrate(project, "--assume-random")["stages"][0]["threshold"] == 0.9
    stage = calibrate(project, "--signals", "model", "--assume-random", code=3)["stages"][0]
    assert "one_class" in reason_names(stage)


def reason_names(stage):
    return [reason.partition(":")[0] for reason in stage["reasons"]]


def confident(number, confidence, *, right=True):
    gold = float(number % 2)
    return Row(f"r{number}", (gold if right else 1 - gold, confidence), (gold, 0.9), gold)


def test_a_level_without_labels_is_never_certified(project):
    """Half of the subjects are below every labeled one, and the judge is often wrong there."""
    confident_rows = [confident(number, 0.9) for number in range(100)]
    unsure = [confident(number, 0.5, right=number % 3 > 0) for number in range(100, 200)]
    project.write([*confident_rows, *unsure])
    project.run()
    project.gold(confident_rows[:60])
    stage = calibrate(project, "--assume-random")["stages"][0]
    assert (stage["threshold"], stage["kept"]["labels"], stage["kept"]["share"]) == (0.9, 60, 0.5)
    assert [rung["passed"] for rung in stage["ladder"]] == [True, None]


def test_a_level_without_labels_does_not_stop_the_search(project):
    rows = [confident(number, (0.9, 0.8, 0.7)[number % 3]) for number in range(120)]
    project.write(rows)
    project.run()
    project.gold([row for row in rows if row.cheap[1] != 0.8])
    stage = calibrate(project, "--assume-random")["stages"][0]
    assert (stage["threshold"], [rung["passed"] for rung in stage["ladder"]]) == (0.7, [True, None, True])


def test_threshold_is_the_confidence_of_the_lowest_labeled_subject(project):
    """Above 50 confidences the rungs are quantiles, and a rung may lie below every labeled subject that it keeps."""
    rows = [confident(number, 1 - number / 1000) for number in range(200)]
    project.write(rows)
    project.run()
    project.gold(rows[:31])
    stage = calibrate(project, "--assume-random")["stages"][0]
    assert stage["threshold"] == pytest.approx(1 - 30 / 1000)
    assert stage["kept"]["labels"] == 31
    assert stage["threshold"] > min(rung["threshold"] for rung in stage["ladder"] if rung["passed"])


def test_labels_of_confident_subjects_alone_are_not_drawn_from_the_ledger(project):
    rows = [confident(number, 0.9 if number < 100 else 0.5) for number in range(200)]
    project.write(rows)
    project.run()
    project.gold(rows[:60])
    result = project.call("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    assert result.exit_code == 3
    assert "labels_not_drawn_from_ledger" in result.stdout
    stage = calibrate(project, code=3)["stages"][0]
    assert (stage["threshold"], reason_names(stage)) == (None, ["labels_not_drawn_from_ledger"])
    assert stage["labels_against_ledger"] == {"greatest_difference": 0.5, "p_value": 0.0001}
    assert calibrate(project, code=3) == calibrate(project, code=3)
    assumed = calibrate(project, "--assume-random")
    assert assumed["assume_random"] is True
    assert assumed["stages"][0]["threshold"] == 0.9


def test_labels_drawn_at_random_pass_the_check(judged):
    rows = rows_of(200, wrong=good_above(0.8))
    judged.gold(rows[:120])
    stage = calibrate(judged)["stages"][0]
    assert stage["threshold"] is not None
    assert stage["labels_against_ledger"]["p_value"] > 0.01


PAIRS = """
name: pairs
define: {grader: {replay/chat: {path: replies.jsonl}}}
source: {rows/jsonl: {path: rows.jsonl}}
judges: [{llm/pairwise: {model: grader}}]
ledger: {ledger/sqlite: {path: ledger.db}}
"""


@pytest.fixture
def pairs(project):
    """Forty pairs; people prefer the first output of each, and the judge reports ten ties."""
    lines = [
        {"id": f"p{n}", "input": "?", "output": f"out-{n}.", "reference": f"ref-{n}.", "people": n % 2}
        for n in range(40)
    ]
    project.lines("rows.jsonl", lines)
    project.lines("gold.jsonl", [{"subject_id": line["id"], "score": line["people"]} for line in lines])
    recording = yaml.safe_load(PAIRS)
    recording["define"]["grader"]["replay/chat"]["record"] = "model"
    del recording["ledger"]

    def reply(request):
        text = request.messages[-1].content
        number = int(re.search(r"out-(\d+)\.", text)[1])
        first = re.search(r"(out|ref)-\d+\.", text)[1]
        winner = "out" if number % 2 else "ref"
        winner_name = "tie" if number >= 30 else "first" if first == winner else "second"
        seal = re.search(r"^seal: (\S+)$", text, re.MULTILINE)[1]
        return Reply(json.dumps({"seal": seal, "winner": winner_name, "confidence": 0.9, "rationale": "r"}), model="m")

    run_pipeline(yaml.safe_dump(recording), components={"model": FakeChatModel(reply)})
    (project.folder / "pipeline.yaml").write_text(PAIRS)
    project.run()
    return project


def test_a_pairwise_judge_is_calibrated_by_winners(pairs):
    """A tie passes at .5: under ``pass``, half of these ten ties would agree with the labels."""
    document = calibrate(pairs, code=3)
    assert (document["agree"], document["stages"][0]["ladder"][0]["errors"]) == ("winner", 10)
    chosen = calibrate(pairs, "--agree", "pass", code=3)
    assert (chosen["agree"], chosen["stages"][0]["ladder"][0]["errors"]) == ("pass", 5)


def test_doctor_examines_a_pairwise_judge_by_winners(pairs):
    arguments = ("doctor", "pipeline.yaml", "--gold", "gold.jsonl", "--no-ask")
    (card,) = pairs.document(*arguments)["judges"]
    assert (card["agree"], card["accuracy"]["value"]) == ("winner", 0.75)
    assert card["labels"]["least_class"] == 20
    (card,) = pairs.document(*arguments, "--agree", "pass")["judges"]
    assert (card["agree"], card["accuracy"]["value"]) == ("pass", 0.875)


FAILING = """
define:
  grader: {openai/chat: {base_url: "http://127.0.0.1:9/v1", model: m, price: {input_per_mtok: 0.1, output_per_mtok: 0.1}}}
source: {rows/jsonl: {path: rows.jsonl}}
judges: [{llm/judge: {model: grader, retries: 0}}]
budget: {run: BUDGET usd}
ledger: {ledger/sqlite: {path: ledger.db}}
"""


@pytest.mark.parametrize(
    ("budget", "cause"),
    [
        ("0.000001", "30 verdicts failed: the cap run_cap prevented the call; raise it under 'budget'"),
        ("1", "the endpoint gave no reply (judge_call_failed)"),
    ],
)
def test_failed_verdicts_name_their_cause(project, budget, cause):
    rows = rows_of(30, wrong=lambda _: 0)
    project.lines("rows.jsonl", [{"id": row.id, "input": "?", "output": "x"} for row in rows])
    project.gold(rows)
    (project.folder / "pipeline.yaml").write_text(FAILING.replace("BUDGET", budget))
    project.call("run", "pipeline.yaml")
    result = project.call("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    assert result.exit_code == 3, result.output
    assert cause in result.stdout, result.stdout


def test_missing_verdicts_are_asked_for_and_only_these(project):
    rows = rows_of(60, wrong=lambda _: 0)
    project.write(rows)
    project.pipeline(cascade())
    project.document("run", "pipeline.yaml", "--limit", "30")
    message = refused(project)
    assert "--judge-missing" in message
    document = project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--judge-missing")
    assert project.document("runs", "--ledger", "ledger.db")["runs"][0]["kind"] == "tool"
    assert document["population"]["n"] == 60
    assert document["cascade"]["last_stage"]["value"] == 1.0


TALKS = """
source: {traces/messages: {path: talks.jsonl, id: "{{ id }}", subjects: [turn, session]}}
judges: [heuristic/turn, heuristic/session]
ledger: {ledger/sqlite: {path: ledger.db}}
"""


@pytest.fixture
def talks(project):
    """Thirty conversations of two turns each, each with a label."""
    turns = [("user", "Hi?"), ("assistant", "Yes, on Monday."), ("user", "Thanks"), ("assistant", "You are welcome.")]
    messages = [{"role": role, "content": text} for role, text in turns]
    project.lines("talks.jsonl", [{"id": f"c{number}", "messages": messages} for number in range(30)])
    project.lines("gold.jsonl", [{"subject_id": f"c{number}", "score": 1} for number in range(30)])
    (project.folder / "pipeline.yaml").write_text(TALKS)
    return project


def test_a_missing_session_is_judged_by_its_turns(talks):
    scores = {verdict["subject_id"]: verdict["score"] for verdict in talks_judged(talks)}
    (talks.folder / "ledger.db").unlink()
    arguments = ("--gold", "gold.jsonl", "--judge", "heuristic/session", "--judge-missing")
    talks.call("calibrate", "pipeline.yaml", *arguments)
    assert {
        verdict["subject_id"]: verdict["score"] for verdict in talks.verdicts() if verdict["subject_kind"] == "session"
    } == scores


def talks_judged(talks):
    talks.run()
    return [verdict for verdict in talks.verdicts() if verdict["subject_kind"] == "session"]


def test_a_judge_of_another_kind_than_the_labels_is_named(talks):
    talks.run()
    for options in ((), ("--judge-missing",)):
        message = refused(talks, *options)
        assert (
            "heuristic/turn judges subjects of the kind turn, and the labels are about other kinds (session)" in message
        )
        assert "--judge" in message


def test_judges_without_a_cascade_are_taken_from_cheap_to_expensive(project):
    rows = rows_of(100, wrong=lambda confidence: 0 if confidence >= 0.8 else 0.4)
    project.write(rows)
    pipeline = cascade()
    cheap, expensive = pipeline["judges"][0]["hybrid/cascade"]["stages"]
    cheap["llm/judge"]["as"], expensive["llm/judge"]["as"] = "cheap", "expensive"
    pipeline["judges"] = [cheap, expensive]
    project.pipeline(pipeline)
    project.run()
    document = calibrate(project)
    assert [stage["label"] for stage in document["stages"]] == ["cheap"]
    assert document["cascade"]["last_stage"]["value"] == 1.0
    alone = calibrate(project, "--judge", "expensive")
    assert alone["cascade"] is None
    assert alone["stages"][0]["label"] == "expensive"
    project.pipeline(cascade())
    assert calibrate(project)["stages"][0]["fingerprint"] == document["stages"][0]["fingerprint"]


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        (("calibrate",), "--out", "c.json"),
        (("doctor", "--no-ask"), "--out", "card.json"),
        (("doctor", "--no-ask"), "--html", "card.html"),
    ],
)
def test_a_file_replaces_only_an_older_one_of_its_command(judged, command, option, name):
    file = judged.folder / name
    arguments = (*command, "pipeline.yaml", "--gold", "gold.jsonl", option, name)
    for content in ('{\n  "version": "2.0.0"\n}\n', "<!doctype html>\n<html><head></head></html>\n", "notes"):
        file.write_text(content)
        done = judged.call(*arguments)
        assert (done.exit_code, file.read_text()) == (2, content)
        assert f"cannot write {name}: it has other content than such a file" in done.stderr
    file.unlink()
    for _ in range(2):
        assert judged.call(*arguments).exit_code == 0
    assert name in [path.name for path in judged.folder.iterdir() if path.stat().st_size > 100]
