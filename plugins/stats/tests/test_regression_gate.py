"""Clause of a gate with a baseline."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

import dicast
from dicast import ConfigError, commands
from dicast.testing import GateClauseConformance
from dicast_stats.compare.command import compare

CLAUSE = {"baseline": "main", "max_drop": 0.02}


class TestRegression(GateClauseConformance):
    clause = "baseline"
    options = CLAUSE
    invalid = {"max_drop": 0.1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judge(passing, name="main", *, gate=None, of=40, rows=None, metrics=None, **options):
    """Judge a file in which the first *passing* of *of* outputs pass."""
    if rows is None:
        rows = [
            {"id": str(number), "input": f"q{number}", "output": f"{'yes' if number < passing else 'no'} {name}"}
            for number in range(of)
        ]
    with open(f"{name}.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    pipeline = {
        "name": name,
        "source": {"rows/jsonl": {"path": f"{name}.jsonl"}},
        "metrics": metrics or [{"check/contains": {"as": "good", "value": "yes"}}],
        **options,
    }
    return dicast.run(pipeline if gate is None else {**pipeline, "gate": {**CLAUSE, **gate}})


def clause_of(run):
    return next(clause for clause in run.gate["clauses"] if clause["rule"] == "max_drop")


@pytest.mark.parametrize(
    ("passing", "options", "passed", "code", "words"),
    [
        (39, {}, True, 0, ""),
        (36, {}, True, 0, ""),
        (20, {}, False, 1, "dropped: -0.40"),
        (34, {}, None, 0, "cannot tell: -0.05"),
        (34, {"undecided": "exit3"}, None, 3, "more pairs are needed to tell"),
        (34, {"undecided": "fail"}, None, 1, "max_drop is 0.02"),
        (34, {"max_drop": 0.05}, True, 0, ""),
        (34, {"bound": "point"}, False, 1, "dropped"),
        (36, {"bound": "interval"}, True, 0, ""),
        (34, {"bound": "interval"}, None, 3, "max_drop is 0.02 for the whole interval (bound: interval); "),
        (34, {"bound": "interval", "undecided": "pass"}, None, 0, "cannot tell"),
        (20, {"bound": "interval"}, False, 1, "dropped"),
    ],
)
def test_the_clause_has_three_answers_by_its_bound(folder, passing, options, passed, code, words):
    judge(36)
    run = judge(passing, "new", gate=options)
    clause = clause_of(run)
    assert (clause["passed"], run.exit_code) == (passed, code)
    assert clause["value"] == pytest.approx((passing - 36) / 40)
    assert words in " ".join(run.gate["reasons"])
    assert run.gate["passed"] is {0: True, 1: False, 3: None}[code]


def test_the_gate_and_compare_have_equal_numbers(folder):
    judge(36)
    run = judge(29, "new", gate={}, baseline={"run": "main", "compare": ["stats/paired"]})
    text = CliRunner().invoke(compare, ["main", "new", "--json"], catch_exceptions=False).output
    answer, clause = json.loads(text)["answers"]["good"], clause_of(run)
    expected = (clause["value"], clause["low"], clause["high"])
    assert (answer["mean_difference"], answer["ci_low"], answer["ci_high"]) == expected
    paired = run.comparison["stats/paired"]
    assert paired["answers"]["good"] == answer
    test = paired["criteria"]["good"]
    assert (test["mean_difference"], test["ci_low"], test["ci_high"]) == expected
    assert json.loads(text)["sentences"] == paired["sentences"]
    assert "adjusted_p_value" not in test.get("reasons", {})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"metrics": [{"check/contains": {"as": "good", "value": "yes "}}]}, "metrics[good]"),
        ({"scoring": {"threshold": 0.6}}, "scoring"),
        (
            {"of": 30},
            "10 of 40 subjects of the baseline have no score in this run, more than 5%: 10 not in it ('30', ",
        ),
        ({"of": 50}, "10 of 50 subjects of the run have no score in the baseline, more than 5%"),
        (
            {"rows": [{"id": str(n), "input": f"other {n}", "output": "no"} for n in range(40)]},
            "the input or the reference of 40 subjects, such as '0'",
        ),
        ({"ledger": {"ledger/sqlite": {"path": ".dicast/ledger.db", "content": "digest"}}}, "does not keep"),
    ],
)
def test_a_run_that_cannot_be_compared_is_undecided_with_the_reason(folder, options, reason):
    judge(36)
    run = judge(10, "new", gate={"undecided": "exit3"}, **options)
    assert (clause_of(run)["passed"], run.exit_code) == (None, 3)
    (words,) = run.gate["reasons"]
    assert "is not compared with main (run " in words
    assert reason in words


def judge_reworded(changed, *, gate=None, metrics=None):
    """Judge 40 rows: half of the rows got worse, and the first *changed* rows have another input."""
    rows = [
        {
            "id": str(number),
            "input": f"{'new' if number < changed else 'q'}{number}",
            "output": "no" if number < 20 else "yes",
        }
        for number in range(40)
    ]
    return judge(0, "new", rows=rows, gate=gate or {}, metrics=metrics)


def test_a_row_with_another_input_is_another_row_and_has_no_partner(folder):
    judge(36)
    run = judge_reworded(2)
    clause = clause_of(run)
    assert clause["passed"] is False
    assert clause["value"] == pytest.approx(-14 / 38)
    text = CliRunner().invoke(compare, ["main", "new", "--json"], catch_exceptions=False).output
    document = json.loads(text)
    assert document["comparable"]
    answer, passes = document["answers"]["good"], document["passes"]["good"]
    assert (answer["n"], answer["unpaired_a"], answer["unpaired_b"]) == (38, 2, 2)
    assert answer["mean_difference"] == clause["value"]
    assert (passes["known"], passes["unpaired_a"], passes["unpaired_b"]) == (38, 2, 2)
    assert not {"0", "1"} & {flip["subject_id"] for flip in document["flips"]}


def test_more_than_5_percent_of_rows_with_another_input_are_not_compared(folder):
    judge(36)
    run = judge_reworded(3)
    assert clause_of(run)["passed"] is None
    assert "the input or the reference of 3 subjects, such as '0'" in run.gate["reasons"][0]


def test_changed_rows_and_rows_of_one_run_count_together_under_5_percent(folder):
    judge(36)
    rows = [
        {"id": str(number), "input": f"{'new' if number < 2 else 'q'}{number}", "output": "yes new"}
        for number in range(42)
    ]
    run = judge(0, "new", rows=rows, gate={})
    assert clause_of(run)["passed"] is None
    (reason,) = run.gate["reasons"]
    assert "4 of 42 subjects of the run have no score in the baseline, more than 5%" in reason
    assert "2 with another input or reference in it ('0', '1')" in reason


@pytest.mark.parametrize(
    ("label", "passed"),
    [("good", False), ("other", None)],
)
def test_another_metric_that_is_no_proxy_leaves_the_answer_about_a_metric(folder, label, passed):
    metrics = [{"check/contains": {"as": name, "value": "yes"}} for name in ("good", "other")]
    judge(36, metrics=metrics)
    metrics[1]["check/contains"]["value"] = "Yes"
    run = judge(20, "new", metrics=metrics, gate={"on": label})
    assert clause_of(run)["passed"] is passed
    assert ("metrics[other]" in run.gate["reasons"][0]) is (passed is None)


@pytest.mark.parametrize(
    ("baseline", "name"),
    [
        ("kept", " of another pipeline, main): the runs differ in the input"),
        ("main", "): the runs differ in the input"),
    ],
)
def test_a_saved_baseline_of_another_pipeline_is_named_if_it_does_not_fit(folder, baseline, name):
    judge(36)
    subprocess.run([sys.executable, "-m", "dicast", "baseline", "save", "kept", "main"], check=True)
    run = judge_reworded(3, gate={"baseline": baseline})
    (reason,) = run.gate["reasons"]
    assert re.search(rf"is not compared with {baseline} \(run \w+{re.escape(name)}", reason)


def test_another_proxy_may_change_the_scores_of_a_metric(folder):
    metrics = [{"proxy/length": {"as": "long", "min": 1}}, {"check/contains": {"as": "good", "value": "yes"}}]
    judge(36, metrics=metrics)
    metrics[0]["proxy/length"]["min"] = 2
    run = judge(20, "new", metrics=metrics, gate={"on": "good"})
    assert clause_of(run)["passed"] is None
    assert "metrics[long]" in run.gate["reasons"][0]


def test_a_baseline_that_does_not_exist_is_refused_before_the_first_call(folder):
    judge(36)
    with pytest.raises(ConfigError) as caught:
        judge(36, "new", gate={"baseline": "mian"})
    (problem,) = caught.value.problems
    assert (problem.path, "'mian'" in problem.message) == ("gate.baseline", True)


def test_a_missing_file_is_refused_once_with_its_path_and_the_command_that_writes_it(folder):
    metrics = [{"check/contains": {"as": "a", "value": "yes"}}, {"check/contains": {"as": "b", "value": "no"}}]
    judge(36)
    gate = [{"on": label, "baseline": "kept/main.json", "max_drop": 0.02} for label in ("a", "b")]
    with pytest.raises(ConfigError) as caught:
        dicast.run({"source": {"rows/jsonl": {"path": "main.jsonl"}}, "metrics": metrics, "gate": gate})
    (problem,) = caught.value.problems
    assert problem.path == "gate[0].baseline"
    assert "there is no file kept/main.json; dicast baseline save NAME RUN --file kept/main.json" in problem.message
    assert "writes it on the main branch" in problem.message


def test_without_an_older_run_there_is_nothing_to_compare_with(folder):
    run = judge(36, gate={"baseline": "last"})
    assert (clause_of(run)["passed"], run.exit_code) == (None, 0)
    assert run.gate["reasons"] == ["good: there is no older run to compare with as 'last'"]
    assert clause_of(judge(20, gate={"baseline": "last"}))["passed"] is False


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"max_drop": 0.02}, "max_drop needs a baseline"),
        ({"undecided": "pass"}, "undecided needs a baseline"),
        ({"baseline": "main"}, "baseline needs max_drop"),
        ({**CLAUSE, "min_score": 0.5}, "is in the clause: write the clauses as a list"),
        ({"min_score": 0.5, "bound": "test"}, "bound: test needs a clause with baseline"),
        ({**CLAUSE, "on": "recorded/accuracy"}, "recorded/accuracy has the scores of another tool"),
        ({**CLAUSE, "bound": "anytime"}, "bound"),
        ({**CLAUSE, "max_drop": -0.1}, "max_drop"),
        ({**CLAUSE, "max_drop": 2}, "cannot drop by more than 2; write 0.02 for 2 points of 100"),
        ({**CLAUSE, "max_drop": 1}, "cannot drop by more than 1; write 0.01 for 1 point of 100"),
        ({**CLAUSE, "max_drop": 200}, "cannot drop by more than 200 "),
        ({**CLAUSE, "undecided": "ignore"}, "undecided"),
    ],
)
def test_a_wrong_clause_is_refused(folder, gate, message):
    judge(36)
    metrics = [{"check/contains": {"value": "yes"}}]
    with pytest.raises(ConfigError, match=message):
        dicast.run({"source": {"rows/jsonl": {"path": "main.jsonl"}}, "metrics": metrics, "gate": gate})


def test_an_experiment_is_compared_with_another_experiment_of_the_suite(folder):
    judge(36)
    judge(20, "new")
    run = dicast.run(
        {
            "name": "suite",
            "source": {"rows/jsonl": {"path": "main.jsonl"}},
            "metrics": [{"check/contains": {"as": "good", "value": "yes"}}],
            "gate": {"baseline": "plain", "max_drop": 0.02},
            "experiments": {"short": {"set": {"source.path": "new.jsonl"}}, "plain": {}},
        }
    )
    assert [*run.experiments] == ["plain", "short"]
    passed = {name: clause_of(experiment)["passed"] for name, experiment in run.experiments.items()}
    assert (passed, run.exit_code) == ({"plain": True, "short": False}, 1)


def invoke(*arguments):
    result = CliRunner().invoke(compare, arguments, catch_exceptions=False, standalone_mode=False)
    return result.return_value, result.output


@pytest.mark.parametrize(
    ("passing", "worse", "difference"), [(20, 1, 1), (40, 0, 1), (33, 0, 0)], ids=["worse", "better", "unknown"]
)
def test_compare_fails_on_the_answers_that_the_option_names(folder, passing, worse, difference):
    judge(30)
    judge(passing, "new")
    assert invoke("main", "new")[0] == 0
    assert invoke("main", "new", "--fail-on", "worse")[0] == worse
    assert invoke("main", "new", "--fail-on", "difference")[0] == difference


def test_the_answer_comes_first_and_details_are_left_to_full(folder):
    judge(36)
    judge(20, "new")
    _, text = invoke("main", "new")
    lines = text.splitlines()
    assert " ".join(text.split()).startswith(
        "good: worse: main is ahead, 36 to 20 of 40 pass; mean score -0.40, 95 % interval -0.56 to -0.24, over 40 pairs"
    )
    assert lines[2] == "good: 16 newly failing: 20, 21, 22, 23, 24 and 11 more"
    assert lines[-1].endswith(" --full")
    assert len(lines) < 10
    full = invoke("main", "new", "--full")[1]
    assert full.startswith("good: worse: main is ahead, -0.40, 95 % interval -0.56 to -0.24, over 40 pairs")
    assert "stats/paired" in full


def test_the_margin_decides_what_is_no_difference(folder):
    judge(36)
    judge(35, "new")
    answers = {margin: answer_by(margin) for margin in (0.02, 0.2)}
    assert answers == {0.02: "cannot tell", 0.2: "no difference found"}


def answer_by(margin):
    return json.loads(invoke("main", "new", "--margin", str(margin), "--json")[1])["answers"]["good"]["answer"]


def test_compare_names_the_reasons_for_which_a_gate_does_not_decide(folder):
    judge(36)
    judge(20, "new", of=30)
    text = " ".join(invoke("main", "new")[1].split())
    reason = "10 of 40 subjects of A have no score in B, more than 5%"
    assert "more than 5% are scored in one run only: good (causes: --full)" in text
    assert reason in " ".join(invoke("main", "new", "--full")[1].split())
    answer = json.loads(invoke("main", "new", "--json")[1])["answers"]["good"]
    (fault,) = answer["faults"]
    reason = reason.replace("of A", "of the baseline").replace("in B", "in this run")
    assert fault.startswith(f"{reason}: 10 not in it ('30', '31', '32', '33', '34' and 5 more; ")
    judge(20, "all")
    assert "scored in one run only" not in invoke("main", "all")[1]


def test_compare_names_an_early_stop_as_the_gate_does(folder):
    judge(36)
    judge(40, "new", early_stop=[{"stats/plateau": {"metric": "scores.good", "window": 38}}])
    stops = [line for line in invoke("main", "new")[1].splitlines() if "was stopped before its end" in line]
    assert len(stops) == 1
    assert stops[0].startswith("B was stopped before its end: ")


def test_the_summary_of_the_baseline_itself_has_words_in_place_of_a_difference(folder):
    judge(36)
    suite = {
        "name": "suite",
        "source": {"rows/jsonl": {"path": "main.jsonl"}},
        "metrics": [{"check/contains": {"as": "good", "value": "yes"}}],
        "gate": {"baseline": "plain", "max_drop": 0.02},
        "experiments": {"plain": {}},
    }
    (folder / "suite.yaml").write_text(json.dumps(suite))
    text = CliRunner().invoke(commands.run, ["suite.yaml"], catch_exceptions=False, standalone_mode=False).output
    assert "max_drop 0.02: this run is the baseline" in text


PROXY = [{"proxy/format": {}}, {"diff/match": {"as": "good"}}]


def judge_outputs(name, outputs, *, gate=None, metrics=PROXY):
    """Judge *outputs* against the reference ``yes``; blank outputs do not pass the proxy."""
    rows = [
        {"id": str(number), "input": f"q{number}", "output": output, "reference": "yes"}
        for number, output in enumerate(outputs)
    ]
    return judge(0, name, rows=rows, metrics=metrics, gate=None if gate is None else {"on": "good", **gate})


BEFORE = ["no"] * 4 + ["yes"] * 36


@pytest.mark.parametrize(
    ("outputs", "options", "passed", "answer"),
    [
        (["no"] * 4 + [""] * 2 + ["yes"] * 34, {}, None, "cannot tell"),
        (["no"] * 4 + [""] * 2 + ["yes"] * 34, {"max_drop": 0.05}, True, "cannot tell"),
        (["no"] * 4 + [""] * 12 + ["yes"] * 24, {}, None, "cannot tell"),
        (["no"] * 4 + [""] * 12 + ["yes"] * 24, {"bound": "point"}, None, "cannot tell"),
        (["no"] * 4 + [""] * 12 + ["yes"] * 24, {"bound": "interval", "max_drop": 0.6}, True, "cannot tell"),
        (["no"] * 20 + [""] * 2 + ["yes"] * 18, {}, False, "worse"),
        (["no"] * 20 + [""] * 2 + ["yes"] * 18, {"bound": "interval"}, False, "worse"),
    ],
)
def test_a_subject_that_the_proxies_held_back_counts_with_every_possible_score(
    folder, outputs, options, passed, answer
):
    judge_outputs("main", BEFORE)
    run = judge_outputs("new", outputs, gate={"undecided": "exit3", **options})
    clause, held = clause_of(run), outputs.count("")
    assert (clause["passed"], clause["value"]) == (passed, None)
    assert run.exit_code == {True: 0, False: 1, None: 3}[passed]
    text = CliRunner().invoke(compare, ["main", "new", "--json"], catch_exceptions=False).output
    change = json.loads(text)["answers"]["good"]
    lost = sum(before == "yes" and after == "no" for before, after in zip(BEFORE, outputs, strict=True))
    assert (change["answer"], change["n"], change["mean_difference"]) == (answer, 40, None)
    assert (change["unpaired_a"], change["unpaired_b"], change["held_back_a"], change["held_back_b"]) == (0, 0, 0, held)
    assert change["mean_difference_low"] == pytest.approx(-(lost + held) / 40)
    assert change["mean_difference_high"] == pytest.approx(-lost / 40)
    assert (clause["low"], clause["high"]) == (change["ci_low"], change["ci_high"])
    words = f"the proxies held back {held} subjects of the run"
    assert words in change["words"]
    assert "faults" not in change
    assert (change["needed"] == words) is (answer == "cannot tell")
    if passed is None:
        assert f"cannot tell: {words}; between -" in " ".join(run.gate["reasons"])


@pytest.mark.parametrize(
    ("before", "after", "passed", "counts"),
    [
        ([""] * 4 + ["yes"] * 36, [""] * 4 + ["yes"] * 36, True, None),  # equal outputs and judges
        ([""] * 4 + ["yes"] * 36, ["  "] * 4 + ["yes"] * 36, None, (4, 4)),
        ([""] * 4 + ["yes"] * 36, ["yes"] * 40, True, (4, 0)),
        ([""] * 4 + ["yes"] * 36, ["no"] * 4 + ["yes"] * 36, None, (4, 0)),
        (["yes"] * 40, [""] * 40, None, (0, 40)),
    ],
)
def test_a_subject_held_back_in_both_runs_is_open_unless_the_outputs_are_equal(folder, before, after, passed, counts):
    judge_outputs("main", before)
    clause = clause_of(judge_outputs("new", after, gate={}))
    text = CliRunner().invoke(compare, ["main", "new", "--json"], catch_exceptions=False).output
    change = json.loads(text)["answers"]["good"]
    assert (clause["passed"], change["n"]) == (passed, 40)
    assert (None if counts is None else (change["held_back_a"], change["held_back_b"])) == counts
    if counts is None:
        assert (change["identical"], change["mean_difference"], change["ci_low"]) == (40, 0.0, 0.0)
        assert "held_back_a" not in change


def test_a_baseline_file_keeps_the_subjects_that_were_held_back(folder):
    judge_outputs("main", [""] * 8 + ["yes"] * 32)
    (command,) = entry_points(group="console_scripts", name="dicast")
    assert command.load()(["baseline", "save", "main", "--file", "main.json"]) == 0
    expected = clause_of(judge_outputs("new", ["yes"] * 40, gate={}))
    clause = clause_of(judge_outputs("newer", ["yes"] * 40, gate={"baseline": "main.json"}))
    assert (clause["passed"], clause["low"], clause["high"]) == (True, expected["low"], expected["high"])
    content = json.loads((folder / "main.json").read_text(encoding="utf-8"))
    for row in content["rows"]:
        row.pop("held_back", None)
    del content["digest"]
    content["digest"] = hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    (folder / "older.json").write_text(json.dumps(content), encoding="utf-8")
    run = judge_outputs("newest", ["yes"] * 40, gate={"baseline": "older.json"})
    assert clause_of(run)["passed"] is None
    assert "8 of 40 subjects of the run have no score in the baseline" in " ".join(run.gate["reasons"])


def test_subjects_without_a_score_in_the_run_are_named_with_the_cause_and_the_next_step(folder):
    judge(40)
    rows = [{"id": str(n), "input": f"q{n}", "output": None if n < 8 else "yes"} for n in range(37)]
    run = judge(0, "new", rows=rows, gate={"undecided": "exit3"})
    (words,) = [reason for reason in run.gate["reasons"] if "not compared" in reason]
    failed = f"8 without a score there ('0', '1', '2', '3', '4' and 3 more; causes: dicast verdicts --run {run.run_id} --failed"
    assert "11 of 40 subjects of the baseline have no score in this run" in words
    assert failed in words
    assert "to judge them again" not in words  # no command runs a pipeline that is no file
    assert "3 not in it ('37', '38', '39'; judge the same subjects in both runs)" in words


def test_the_reason_names_the_options_that_differ_with_both_values_and_no_secret(folder, monkeypatch):
    judge(36)
    text = "source: {rows/jsonl: {path: main.jsonl}}\nmetrics: [check/contains: {as: good, value: '${WANTED}'}]\n"
    (folder / "new.yaml").write_text(text + "gate: {baseline: main, max_drop: 0.02}\n")
    monkeypatch.setenv("WANTED", "no, and it is secret")
    (reason,) = dicast.run(folder / "new.yaml").gate["reasons"]
    assert "the runs differ in metrics[good] (value: ${WANTED} (sha256 " in reason
    assert ', not "yes")' in reason
    assert "secret" not in reason


def test_a_clause_that_low_coverage_leaves_open_has_the_effect_of_its_option(folder):
    judge(36)
    rows = [
        {"id": str(number), "input": f"q{number}", "output": "yes" if number < 30 else None} for number in range(40)
    ]
    open_run = judge(0, "new", rows=rows, gate={"undecided": "exit3"})
    failed = judge(0, "new", rows=rows, gate={"undecided": "fail"})
    assert (open_run.gate["passed"], failed.gate["passed"]) == (None, False)
    assert open_run.gate["reasons"] != []
    assert clause_of(failed)["undecided"] == "fail"


def test_a_component_of_one_run_alone_is_named_as_such(folder):
    first, second = (
        [{"check/contains": {"as": name, "value": "yes"}} for name in names]
        for names in (("good", "other"), ("good", "third"))
    )
    judge(36, metrics=first)
    (reason,) = judge(36, "new", metrics=second, gate={"on": "metrics", "undecided": "exit3"}).gate["reasons"]
    assert "metrics[other], which only the baseline has" in reason


def test_a_rule_of_an_included_gate_next_to_a_baseline_is_named_with_its_place(folder):
    Path("base.yaml").write_text(
        "name: base\nsource: {rows/jsonl: {path: d.jsonl}}\nmetrics: [check/contains: {as: good, value: x}]\ngate: {on: good, min_pass_rate: 0.5}\n"
    )
    Path("d.jsonl").write_text('{"id": "1", "output": "x"}\n')
    Path("new.yaml").write_text("include: base.yaml\ngate: {on: good, baseline: main, max_drop: 0.1}\n")
    with pytest.raises(
        dicast.ConfigError, match=r"min_pass_rate \(.*base\.yaml:4\) is in the clause: write the clauses as a list"
    ):
        dicast.run("new.yaml")
