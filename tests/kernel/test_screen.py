"""Summary of a run on one screen of 80 columns and 24 rows."""

from __future__ import annotations

import random

import pytest

from dicast._kernel.cli.screen import ROWS, screen_parts
from dicast._kernel.cli.summary import run_parts
from dicast._kernel.resume.open_runs import RunCommand
from dicast.toolkit.printable import column_count
from dicast.toolkit.terminal import drawn, plain_lines

RUN = "01KDZ3W5Z0000000000000TEST"
DONE = {
    "name": "shop",
    "run_id": RUN,
    "subjects": 12,
    "scored": 10,
    "failed": 2,
    "skipped": 0,
    "unaffordable": 0,
    "coverage": 10 / 12,
    "stopped": None,
    "score": None,
    "labels": {},
    "metrics": {},
    "judges": {},
    "worst": [],
    "failures": {},
    "failed_subjects": [],
    "aggregates": {},
    "baseline": None,
    "comparison": None,
    "broken": {},
    "cost": {"usd": "0.25", "msat": "0"},
    "spend_lost": {},
    "overruns": 0,
    "throttled": {},
    "sinks": {},
    "gate": None,
    "undecided": [],
    "ledger": {"path": ".dicast/ledger.db", "head": {"seq": 9, "digest": "abc"}},
}


def shown(done, command=None, **options):
    return plain_lines(screen_parts(done, command, **options)).splitlines()


def label(mean, rate=None, *, scored=10, total=12, basis="model", **figures):
    passes = None if rate is None else {"passed": 1, "n": scored, "open": 0, "ci_low": 0.1, "ci_high": 0.9}
    counts = {"scored": scored, "failed": total - scored, "total": total}
    return {
        "mean": mean,
        "ci_low": 0.25,
        "ci_high": 0.75,
        "basis": basis,
        "pass_rate": rate,
        "passes": passes,
        **counts,
        **figures,
    }


def clause(on, rule, *, passed=True):
    return {"on": on, "rule": rule, "value": 0.5, "line": 0.4, "low": 0.1, "high": 0.9, "passed": passed}


def gate(*clauses, passed=True, reasons=()):
    return {"passed": passed, "reasons": [*reasons], "clauses": [*clauses]}


def failure(mode, id_="r1"):
    return {
        "subject_kind": "row",
        "subject_id": id_,
        "judge": "polite",
        "failure_mode": mode,
        "error_message": "no answer within 30 s",
    }


def test_the_gate_is_the_first_line_and_the_command_for_all_figures_the_last():
    lines = shown(DONE | {"gate": gate(clause("polite", "min_coverage"), clause("polite", "min_score"))})
    assert lines[:2] == ["gate: passed", "  polite  min_score 0.4: 0.5 (0.1000 to 0.9000)"]
    assert lines[-1] == "details: dicast show 00TEST --full"


def test_a_run_without_a_gate_says_so_with_its_reasons():
    assert shown(DONE)[0] == "gate: none"
    assert shown(DONE | {"shard": {"number": 1, "of": 2}})[0] == "gate: at the merge"
    assert shown(DONE | {"undecided": ["a", "b"]})[:2] == ["gate: none; undecided: a", "  b"]


@pytest.mark.parametrize("passed", [True, False])
def test_the_means_that_the_gate_compares_are_shown_where_the_table_has_pass_rates(passed):
    figures = label(0.75, 0.5, basis="truth")
    reasons = [] if passed else ["polite dropped"]
    clauses = gate(clause("polite", "max_drop"), passed=passed, reasons=reasons)
    lines = shown(DONE | {"labels": {"polite": figures}, "gate": clauses})
    assert "  the gate compares the mean score with the baseline's: polite 0.7500" in lines
    assert not any("compares the mean" in line for line in shown(DONE | {"gate": gate(clause("polite", "min_score"))}))
    equal = DONE | {"labels": {"polite": label(0.5, 0.5, basis="truth")}, "gate": clauses}
    assert not any("compares the mean" in line for line in shown(equal)), "the table has the same number"


def test_a_failed_gate_has_its_reasons_and_no_clauses():
    lines = shown(DONE | {"gate": gate(clause("polite", "min_score"), passed=False, reasons=["too low", "too few"])})
    assert lines[:3] == ["gate: failed: too low", "  too few", f"shop  run {RUN}"]


def test_a_passed_gate_names_its_undecided_clauses_next_to_the_others():
    undecided = clause("polite", "max_drop") | {"passed": None, "undecided": "pass"}
    reason = "polite against main (run 01X): cannot tell"
    lines = shown(DONE | {"gate": gate(undecided, clause("short", "min_score"), reasons=[reason])})
    first = "gate: passed, without an answer on polite"
    assert lines[:3] == [first, f"  undecided: {reason}", "  short  min_score 0.4: 0.5 (0.1000 to 0.9000)"]


def test_a_single_metric_of_the_gate_has_one_row():
    figures = label(0.5, 0.6, basis="truth")
    document = {"labels": {"metrics": figures}, "metrics": {"correct": figures}}
    rows = shown(DONE | document | {"gate": gate(clause("metrics", "min_pass_rate"))})
    assert [line.split()[0] for line in rows if " 10 of 12 " in line] == ["correct"]


def test_warnings_of_one_kind_are_one_line():
    warnings = [{"kind": "heuristic_basis", "message": f"weak basis of {name}"} for name in "abc"]
    lines = shown(DONE | {"warnings": [*warnings, {"kind": "equal_scores", "message": "equal scores"}]})
    assert [line for line in lines if line.startswith("warning: ")] == [
        "warning: weak basis of a (+ 2 more of this kind)",
        "warning: equal scores",
    ]


def test_an_early_stop_is_named_with_its_figures():
    stopped = {"reason": "early_stop", "plugin": "enough", "row_index": 3}
    assert "stopped: enough ended the run early (row_index: 3)" in shown(DONE | {"stopped": stopped})


@pytest.mark.parametrize("rows", range(4, 12))
def test_no_line_about_one_omitted_line_takes_its_row(rows):
    document = DONE | {"gate": gate(clause("polite", "min_score")), "throttled": {"rate limit": 3}}
    assert not any("+ 1 more" in line for line in shown(document, rows=rows))


def test_each_label_has_a_row_with_the_figure_of_its_gate():
    labels = {"polite": label(0.5, 0.6), "short": label(0.4, 0.3, total=10), "free": label(0.7)}
    lines = shown(DONE | {"labels": labels, "gate": gate(clause("polite", "min_score"))})
    at = next(number for number, line in enumerate(lines) if line.startswith("label "))
    assert [" ".join(line.split()) for line in lines[at : at + 4]] == [
        "label figure value 95 % interval n basis",
        "polite mean 0.5000 0.2500 to 0.7500 10 of 12 model",
        "short pass rate 0.3000 0.1000 to 0.9000 10 model",
        "free mean 0.7000 0.2500 to 0.7500 10 of 12 model",
    ]


def test_six_labels_are_shown_those_of_the_gate_first_then_the_lowest():
    labels = {f"l{number}": label(0.5, number / 10) for number in range(9, 0, -1)}
    lines = shown(DONE | {"labels": labels, "gate": gate(clause("l9", "min_pass_rate"))})
    at = next(number for number, line in enumerate(lines) if line.startswith("label "))
    assert [line.split()[0] for line in lines[at + 1 : at + 7]] == ["l9", "l1", "l2", "l3", "l4", "l5"]
    assert lines[at + 7] == "  + 3 more labels"


def test_a_single_metric_has_one_row_under_its_own_name():
    metric = {"mean": 0.5, "pass_rate": None, "passes": None, "basis": "truth", "scored": 10, "total": 12}
    lines = shown(DONE | {"labels": {"metrics": label(0.5)}, "metrics": {"correct": metric}})
    (row,) = [line for line in lines if line.startswith("  ")]
    assert row.split() == ["correct", "mean", "0.5000", "0.2500", "to", "0.7500", "10", "of", "12", "truth"]


def test_a_label_without_a_value_comes_before_the_lowest():
    labels = {"high": label(0.9), "none": label(None, ci_low=None), "raw": label(-7.0, scale="raw")}
    rows = [line.split()[0] for line in shown(DONE | {"labels": labels}) if line.startswith("  ")]
    assert rows == ["none", "high", "raw"]


def test_each_kind_of_failure_has_one_example():
    listed = [failure("timeout", "r1"), failure("timeout", "r2"), failure("crashed", "r3")]
    lines = shown(DONE | {"failures": {"crashed": 1, "timeout": 5}, "failed_subjects": listed})
    at = lines.index("failed: 1 crashed (a component raised an error), 5 timeout (no answer in time)")
    assert lines[at + 1 : at + 3] == [
        "  crashed: row r3, polite: no answer within 30 s",
        "  timeout: row r1, polite: no answer within 30 s",
    ]
    assert "next: dicast verdicts --run 00TEST --failed" in lines


SCORE = {"label": "polite", "mean": 0.5}


def worst(*scores):
    return [{"subject_kind": "row", "subject_id": f"r {n}", "score": score} for n, score in enumerate(scores)]


def test_the_comparison_comes_before_the_failures_and_stays_on_a_full_screen():
    kinds = ("refused", "timeout", "crashed", "judge_call_failed", "judge_output_invalid")
    answers = [f"{name}: better: B is ahead, +0.25, 95 % 0.13 to 0.37" for name in ("polite", "short")]
    done = DONE | {
        "failures": dict.fromkeys(kinds, 1),
        "failed_subjects": [failure(kind) | {"error_message": "the endpoint did not answer " * 9} for kind in kinds],
        "warnings": [{"kind": f"kind {number}", "message": "a figure is in doubt " * 6} for number in range(4)],
        "baseline": {"run": "last", "run_id": "01KDZ3W5Z0000000000000BASE", "name": "shop", "differs": [], "faults": []}
        | {"passes": {name: {"words": f"{name}: 3 pass in B alone"} for name in ("polite", "short")}},
        "comparison": {"stats/paired": {"words": "; ".join(answers), "sentences": answers}},
    }
    lines = shown(done)
    first = next(number for number, line in enumerate(lines) if line.startswith("compared with run 00BASE"))
    assert lines[first + 1 : first + 3] == [f"  {answer}" for answer in answers]
    assert first < next(number for number, line in enumerate(lines) if line.startswith("failed: "))
    assert len(lines) <= ROWS


def test_the_reasons_of_the_gate_are_whole_on_a_full_screen():
    cause = "3 without a score there ('r1', 'r2', 'r3'; causes: dicast verdicts --run 01KDZ3W5Z0 --failed; to judge them again: dicast run"
    reasons = [
        "polite: coverage 0.5 is below min_coverage 0.9",
        f"short is not compared with main: {cause} r.yaml END)",
    ]
    kinds = ("refused", "timeout", "crashed", "judge_call_failed")
    done = DONE | {
        "gate": gate(clause("polite", "min_coverage", passed=False), passed=None, reasons=reasons),
        "labels": {name: label(0.5, 0.5) for name in ("polite", "short")},
        "failures": dict.fromkeys(kinds, 1),
        "failed_subjects": [failure(kind) | {"error_message": "the endpoint did not answer " * 9} for kind in kinds],
    }
    text = " ".join(" ".join(shown(done)).split())
    assert f"gate: undecided: {reasons[0]} {reasons[1]} shop" in text


def test_a_gate_that_passed_without_a_comparison_says_so_in_its_first_line():
    undecided = clause("polite", "max_drop") | {"value": None, "passed": None, "undecided": "pass"}
    reason = "polite is not compared with main (run 01X): the judges differ"
    lines = shown(DONE | {"gate": gate(undecided, clause("short", "min_score"), reasons=[reason])})
    assert lines[:2] == [
        "gate: passed, without an answer on polite",
        f"  undecided: {reason}",
    ]
    assert lines[2] == "  short  min_score 0.4: 0.5 (0.1000 to 0.9000)"


def test_labels_that_are_not_compared_for_one_cause_share_a_line():
    labels = ("a", "b")
    undecided = [clause(label, "max_drop") | {"value": None, "passed": None} for label in labels]
    reasons = [f"{label} is not compared with main (run 01X): the judges differ" for label in labels]
    lines = shown(DONE | {"gate": gate(*undecided, reasons=reasons)})
    together = "a, b are not compared with main (run 01X): the judges differ"
    assert lines[:2] == ["gate: passed, without an answer on a, b", f"  undecided: {together}"]
    lines = shown(DONE | {"gate": gate(*undecided, passed=None, reasons=reasons)})
    assert lines[:2] == [f"gate: undecided: {together}", f"shop  run {RUN}"]


def test_the_only_cause_of_the_failures_is_shown_on_a_full_screen():
    reasons = [f"label {number}: the pass rate {'is below the line ' * 6}" for number in range(9)]
    done = DONE | {
        "gate": gate(*(clause(f"l{n}", "min_score", passed=False) for n in range(9)), passed=False, reasons=reasons),
        "labels": {f"l{n}": label(0.5, 0.5) for n in range(9)},
        "failures": {"timeout": 12},
        "failed_subjects": [failure("timeout")],
    }
    lines = shown(done)
    assert "  timeout: row r1, polite: no answer within 30 s" in lines
    assert len(lines) <= ROWS


def test_the_interval_of_a_clause_names_the_open_subjects_that_it_counts_both_ways():
    lines = shown(DONE | {"gate": gate(clause("polite", "min_pass_rate") | {"open": 4})})
    text = " ".join(" ".join(lines).split())
    assert "polite min_pass_rate 0.4: 0.5 (0.1000 to 0.9000 with 4 open subjects counted both ways)" in text


def test_the_lowest_scores_are_one_line_and_the_lowest_is_the_next_command():
    lines = shown(DONE | {"score": SCORE, "worst": worst(0.1, 0.2, 0.3, 0.4)})
    assert "lowest scores: 0.1000 row r 0, 0.2000 row r 1, 0.3000 row r 2" in lines
    assert "next: dicast show 'r 0' --run 00TEST" in lines


def test_equal_scores_have_no_lowest():
    for parts in (screen_parts, run_parts):
        assert "lowest" not in plain_lines(
            parts(
                DONE
                | {
                    "score": SCORE
                    | {"by_basis": {}, "aggregation": "mean", "aggregate": 0.5, "ci_low": None, "by_tier": {}},
                    "worst": worst(0.5, 0.5, 0.5),
                }
            )
        )


def test_an_id_that_a_terminal_escapes_is_in_no_command():
    listed = [{"subject_kind": "row", "subject_id": "a\x1b[31m", "score": 0.1}]
    assert not any(line.startswith("next: ") for line in shown(DONE | {"score": SCORE, "worst": listed}))


def test_another_ledger_is_named_in_the_commands():
    lines = shown(DONE | {"ledger": {"path": "my books/l.db", "head": None}})
    assert lines[-1] == "details: dicast show 00TEST --full --ledger 'my books/l.db'"


def test_a_stopped_run_has_its_reason_and_the_command_that_continues_it():
    lines = shown(DONE | {"stopped": {"reason": "budget"}}, RunCommand("p.yaml"))
    assert "stopped: budget" in lines
    assert f"    dicast run p.yaml --resume {RUN}" in lines


def test_losses_are_shown_next_to_the_counts():
    lines = shown(DONE | {"sinks": {"csv": {"lost": 1500, "error": "full"}}})
    assert lines[3] == "sink csv LOST 1,500 events: full"


CROWDED = DONE | {
    "gate": gate(
        *[clause(f"l{n}", "min_score") for n in range(8)],
        passed=None,
        reasons=[f"{'reason ' * 30}{n}" for n in range(8)],
    ),
    "labels": {f"a-label-with-quite-a-long-name-{n}": label(n / 20, n / 20) for n in range(12)},
    "failures": {f"kind_{n}": 1000 for n in range(12)},
    "failed_subjects": [failure(f"kind_{n}") | {"error_message": "words " * 100} for n in range(12)],
    "score": SCORE,
    "worst": worst(0.1, 0.2, 0.3, 0.4, 0.45),
    "warnings": [{"kind": "other", "message": f"{'careful ' * 40}{n}"} for n in range(12)],
    "aggregates": {f"a{n}": {"words": "fine " * 50} for n in range(5)},
    "broken": {"x": "it broke"},
    "throttled": {"daily cap": 7},
    "assumed": ["a price"] * 5,
}


def test_the_screen_is_never_longer_than_24_rows_and_counts_the_omitted_lines():
    lines = shown(CROWDED)
    assert len(lines) <= ROWS
    assert max(map(len, lines)) <= 80
    assert {"  + 12 examples", "  + 7 notes"} < {*lines}, "none is shown, so the number is not of more"
    for word in ("reasons", "labels", "findings"):
        assert any(line.startswith("  + ") and line.endswith(f"more {word}") for line in lines), word
    assert any("BROKEN: it broke" in line for line in lines)


@pytest.mark.parametrize("seed", range(20))
def test_any_mix_of_lines_fits_on_a_terminal_of_80_columns(seed):
    draw = random.Random(seed)
    done = dict(DONE)
    for key in (
        "gate",
        "labels",
        "failures",
        "failed_subjects",
        "score",
        "worst",
        "warnings",
        "aggregates",
        "broken",
        "throttled",
        "assumed",
    ):
        if draw.random() < 0.6:
            done[key] = CROWDED[key]
    screen = drawn(screen_parts(done), 80)
    assert screen.count("\n") <= ROWS


def test_wide_characters_count_as_two_columns():
    names = [f"{'評価' * 20}{number}" for number in range(9)]
    reasons = [f"the mean of {name} is 0.5, below min_score 0.9" for name in names]
    done = DONE | {
        "name": "名前" * 40,
        "labels": {name: label(0.5) for name in names},
        "gate": gate(*(clause(name, "min_score", passed=False) for name in names), passed=False, reasons=reasons),
        "score": SCORE,
        "worst": [{**item, "subject_id": "行" * 90} for item in worst(0.1, 0.2, 0.3)],
        "failures": {"timeout": 3},
        "failed_subjects": [failure("timeout", "行" * 90)],
    }
    lines = shown(done)
    assert len(lines) <= ROWS
    assert max(map(column_count, lines)) <= 80
    assert drawn(screen_parts(done), 80).count("\n") <= ROWS


def test_a_long_name_of_a_pipeline_is_cut_in_the_middle():
    lines = shown(DONE | {"name": f"first-{'x' * 90}-last"})
    assert lines[1].startswith("first-xxx")
    assert lines[1].endswith("xxx-last")
    assert "…" in lines[1]
    assert lines[2].strip() == f"run {RUN}"
    assert max(map(len, lines)) <= 80


def test_a_clause_with_a_baseline_shows_the_sign_of_the_difference():
    drop = clause("polite", "max_drop") | {"value": 0.25, "low": -0.05, "high": 0.55}
    assert shown(DONE | {"gate": gate(drop)})[1] == "  polite  max_drop 0.4: +0.25 (-0.0500 to +0.5500)"


def test_a_short_summary_omits_nothing():
    lines = shown(DONE | {"warnings": [{"kind": "other", "message": "careful"}], "assumed": ["a price"]})
    assert "warning: careful" in lines
    assert not any(line.startswith("  + ") for line in lines)


def test_in_a_suite_the_figures_of_its_table_are_left_out():
    done = DONE | {"labels": {"polite": label(0.5)}, "score": SCORE, "worst": worst(0.1)}
    lines = shown(done, is_in_suite=True)
    assert lines[0] == "gate: none"
    assert not any(line.startswith(("label ", "spent", "next", "details")) for line in lines)


def test_the_only_metric_has_its_own_name_in_the_gate_the_table_and_the_lowest_scores():
    figures = label(0.5, 0.6, basis="truth")
    labels = {"metrics": figures, "polite": label(0.9, 0.9)}
    worst = [{"subject_kind": "row", "subject_id": "r1", "score": 0.1}]
    gated = gate(clause("metrics", "min_pass_rate"))
    document = DONE | {"labels": labels, "metrics": {"correct": figures}, "gate": gated, "worst": worst}
    text = "\n".join(shown(document))
    assert "  correct  min_pass_rate 0.4" in text
    assert "lowest scores of correct: 0.1000 row r1" in text
    assert "metrics" not in text


def test_the_coverage_of_the_gate_is_named_where_it_differs_from_the_coverage_of_all_labels():
    least = clause("polite", "min_coverage") | {"value": 0.95}
    document = DONE | {"labels": {"polite": label(0.5, 0.5), "short": label(0.5, 0.5)}, "gate": gate(least)}
    text = "(coverage 83.3% by all labels; the gate reads 95.0% by polite)"
    assert text in " ".join(" ".join(shown(document)).split())
    assert "(coverage 83.3%)" in " ".join(shown(document | {"gate": gate(least | {"value": 10 / 12})}))


def test_a_warning_that_was_printed_before_the_summary_is_left_out():
    warning = {"kind": "blank_column", "message": "3 rows are blank"}
    assert any("3 rows are blank" in line for line in shown(DONE | {"warnings": [warning]}))
    assert not any("blank" in line for line in shown(DONE | {"warnings": [warning]}, reported={"3 rows are blank"}))
