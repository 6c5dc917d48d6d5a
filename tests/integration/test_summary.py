"""Output for a reader without --json."""

from __future__ import annotations

import pytest

from dicast._kernel.cli.summary import run_parts
from dicast.toolkit.terminal import plain_lines

WORDS = """
source: {rows/jsonl: {path: data.jsonl}}
metrics: [proxy/format, proxy/keywords: {as: tidy, forbidden: [TODO]}]
"""


def test_a_perfect_subject_is_not_among_the_worst(shop):
    shop.rows("good", "", "fine")
    shop.pipeline(WORDS)
    worst = shop.dicast("run", "p.yaml", "--full").out.partition("lowest scores:")[2].splitlines()
    assert worst[1].split() == ["0.5000", "row", "r1"]
    assert worst[2].startswith("spent:")


def test_nothing_is_said_of_the_worst_when_all_are_perfect(shop):
    shop.rows("good", "fine")
    shop.pipeline(WORDS)
    assert "lowest scores" not in shop.dicast("run", "p.yaml").out


def test_a_free_run_says_that_nothing_was_spent(shop):
    shop.rows("good")
    shop.pipeline(WORDS)
    assert "\nspent: nothing\n" in shop.dicast("run", "p.yaml").out


def test_calls_not_made_are_told_also_when_nothing_was_spent(shop):
    shop.rows(1, 1)
    shop.pipeline("judges: [fake/paid_judge]\nbudget: {run: 0 usd}\n")
    printed = shop.dicast("run", "p.yaml", "--full").out
    line = "calls not made because of the run_cap: 2; budget.run is 0 usd, this run spent nothing, and the most"
    assert line in " ".join(printed.split())
    assert "subjects left out because of the budget: 2 of 2" in printed
    assert "subjects left out because of the budget: 2 of 2" in shop.dicast("show", "last").out
    shop.dicast("run", "p.yaml", "--out", "p.md")
    assert f"- {line}" in (shop.folder / "p.md").read_text("utf-8")


def test_subjects_that_nothing_accepts_are_told_as_such(shop):
    shop.rows("good", "fine")
    shop.pipeline("judges: [heuristic/turn]\n")
    assert "2 subjects: none scored, 2 that no metric or judge accepts" in shop.dicast("run", "p.yaml").out


def test_several_judges_and_no_gate_have_no_score_for_the_run(shop):
    shop.rows(1)
    shop.pipeline("judges: [fake/opinion, fake/opinion: {as: second}]\n")
    assert "score: none, as there are 2 labels" in shop.dicast("run", "p.yaml", "--full").out


@pytest.mark.parametrize(
    ("aggregation", "values"),
    [
        ("median", "score: mean 0.4000, median 0.2000, over 3 of 3 subjects"),
        ("max", "score: mean 0.4000, max 1.0000, over 3 of 3 subjects"),
        ("{trimmed_mean: 40}", "score: mean 0.4000, mean without 40 % at each end 0.2000, over 3 of 3 subjects"),
        ("mean", "score: mean 0.4000, over 3 of 3 subjects"),
    ],
)
def test_the_score_is_told_by_the_name_of_its_aggregation(shop, aggregation, values):
    shop.rows(0, 0.2, 1)
    shop.pipeline(f"metrics: [fake/act]\nscoring: {{aggregation: {aggregation}}}\n")
    assert values in shop.dicast("run", "p.yaml", "--full").out.splitlines()
    assert values in shop.dicast("show", "last", "--full").out.splitlines()


def test_the_document_names_the_label_that_counts_and_the_aggregation(shop):
    shop.rows(0.5)
    judges = "judges: [fake/opinion: {as: a}, fake/opinion: {as: b}]\ngate: {on: b}\n"
    score = shop.run(judges + "scoring: {aggregation: {trimmed_mean: 10}}\n").json["score"]
    assert (score["label"], score["aggregation"]) == ("b", {"trimmed_mean": 10})


def test_show_says_what_a_verdict_rests_on(shop):
    shop.rows("do it TODO")
    shop.run(WORDS)
    lines = shop.dicast("show", "r0").out.splitlines()
    assert "proxy/format: 1.0000, passed, basis proxy" in lines
    at = lines.index("tidy: 0.0000, did not pass, basis proxy")
    assert "TODO" in lines[at + 1]


def test_show_cuts_no_text(shop):
    shop.rows("x" * 1000)
    shop.run(WORDS)
    assert f"output:\n  {'x' * 1000}\n" in shop.dicast("show", "r0").out


def test_a_wrong_command_names_the_help_that_is_right(shop):
    assert shop.dicast("run").err.endswith("(dicast run --help)\n")
    assert shop.dicast("rnu").err == "no such command 'rnu', did you mean 'run'? (dicast --help)\n"
    assert "for all others: " in (err := shop.dicast("judge-prompts").err)
    assert "dicast[all]" in err


def test_show_names_the_judge_and_every_signal_in_full(shop):
    shop.rows("x")
    shop.run("judges: [{fake/signalling: {as: j}}]\n")
    out = shop.dicast("show", "r0").out
    assert "\n  by hybrid m-1, " in out
    assert "\n  its reasons were not recorded (capture_rationale: false" in out
    assert "\n  escalated: true\n" in out
    assert '\n  flags: ["' in out
    assert "…" not in out


GATED = "metrics: [fake/act, fake/paid: {as: costly}, fake/truth: {as: cheap}]\nbudget: {session: 1 usd}\n"


def test_what_the_gate_spared_is_told_with_what_that_saved(shop):
    shop.rows(0.1, 0.2, 0.3, 0.9)
    shop.pipeline(GATED)
    lines = shop.dicast("run", "p.yaml").out.splitlines()
    told = ["  the gate spared 3 runs of costly: 0.03 usd", "  the gate spared 3 runs of cheap: free"]
    assert [line for line in lines if "spared" in line] == told
    assert [line for line in shop.dicast("show", "last").out.splitlines() if "spared" in line] == told
    assert "costly: not run because of the gate" in shop.dicast("show", "r0").out.splitlines()
    assert "spared" not in shop.dicast("show", "r3").out


def test_nothing_is_said_of_a_gate_that_spared_nothing(shop):
    shop.rows(0.9)
    shop.pipeline(GATED)
    assert "spared" not in shop.dicast("run", "p.yaml").out


def test_a_verdict_says_what_it_was_spared(shop):
    shop.rows(0.1)
    assert shop.run(GATED).json["metrics"]["costly"]["saved"] == {"usd": "0.01", "msat": "0"}
    (verdict,) = shop.dicast("verdicts", "--json").json["verdicts"]
    assert verdict["spared"] == [
        {"metric": "costly", "runs": 1, "amount": "0.01", "unit": "usd"},
        {"metric": "cheap", "runs": 1, "amount": "0", "unit": "usd"},
    ]


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ("", ["gate: none"]),
        (
            "gate: {on: tidy, min_pass_rate: 0.2}",
            ["gate: passed", "  tidy  min_coverage 0.95: 1", "  tidy  min_pass_rate 0.2: 0.25 (0.0456 to 0.6994)"],
        ),
        (
            "gate: [{on: tidy, min_score: 0.8}, {on: proxy/format, max_score: 1}]",
            [
                "gate: failed: the mean of tidy is 0.25, below min_score 0.8",
                "  tidy          min_coverage 0.95: 1",
                "  tidy          min_score 0.8: 0.25 (0.0000 to 0.7400), failed",
                "  proxy/format  min_coverage 0.95: 1",
                "  proxy/format  max_score 1: 1 (0.4729 to 1.0000)",
            ],
        ),
        (
            "gate: {on: tidy, min_score: 0.5, min_pass_rate: 0.5, bound: interval}",
            [
                "gate: undecided: the 95 % interval of the mean of tidy is 0 to 0.74, with",
                "  min_score 0.5 in between; the 95 % interval of the pass rate of tidy is",
                "  0.04559 to 0.6994, with min_pass_rate 0.5 in between",
                "  tidy  min_coverage 0.95: 1",
                "  tidy  min_score 0.5: 0.25 (0.0000 to 0.7400), undecided",
                "  tidy  min_pass_rate 0.5: 0.25 (0.0456 to 0.6994), undecided",
            ],
        ),
    ],
)
def test_the_gate_is_told_with_its_clauses_in_80_columns(shop, gate, told):
    shop.rows("good", "a TODO", "TODO", "TODO it")
    shop.pipeline(f"{WORDS}{gate}\n")
    for command in (("run", "p.yaml"), ("show", "last")):
        lines = shop.dicast(*command, "--full").out.splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("gate: "))
        end = next(number for number, line in enumerate(lines) if line.startswith("ledger: "))
        assert lines[start:end] == told
        assert max(map(len, lines[start:end])) <= 80


def test_the_interval_the_end_and_the_ledger_stand_in_80_columns(shop):
    shop.rows("good", "a TODO", "TODO", "fine")
    shop.pipeline(WORDS)
    lines = shop.dicast("run", "p.yaml", "--full").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("  95 % interval"))
    assert lines[start].endswith(" (normal, 95 %, standard errors")
    assert lines[start + 1] == "    clustered by session_id (g/(g-1)), clipped to [0, 1])"
    assert lines[-2].startswith("ledger: ")
    assert len(lines[-1].strip()) == 64  # the digest, whole
    assert max(map(len, lines)) <= 80


def test_several_judges_say_in_80_columns_how_one_of_them_counts(shop):
    shop.rows(1)
    shop.pipeline("judges: [fake/opinion, fake/opinion: {as: second}]\n")
    output = next(
        line for line in shop.dicast("run", "p.yaml", "--full").out.splitlines() if line.startswith("score: ")
    )
    assert "gate: {on: LABEL}" in output
    assert len(output) <= 80


def test_explicit_feedback_is_no_fallback_and_an_aggregates_own_failures_are_shown(shop):
    shop.rows(1, 1)
    done = shop.run("judges: [fake/opinion]").json
    row = {"subject_kind": "row", "subject_id": "r0", "failure_mode": "crashed"}
    done["judges"]["fake/opinion"]["fallbacks"] = {"explicit_feedback": 2, "budget_exhausted": 1}
    done["aggregates"] = {
        "mine": {"n": 2, "failures": [{"why": "odd"}]},
        "own": {"failures": 3},
        "plain": {"failures": [row]},
    }
    lines = plain_lines(run_parts(done)).splitlines()
    assert "2 kept by explicit feedback, 1 fell back (budget_exhausted)" in " ".join(map(str.strip, lines))
    assert [line for line in lines if line.startswith(("mine", "own", "plain"))] == [
        "mine: n 2, failures [{'why': 'odd'}]",
        "own: failures 3",
        "plain:",
    ]


def test_failures_and_what_fell_back_stand_in_80_columns(shop):
    shop.rows(1, 1)
    stages = "stages: [fake/opinion, fake/paid_judge], escalation_threshold: 1"
    shop.pipeline(
        f"judges: [fake/paid_judge, hybrid/cascade: {{as: a-label-of-some-length, {stages}}}]\nbudget: {{run: 0 usd}}\n"
    )
    lines = shop.dicast("run", "p.yaml", "--full").out.splitlines()
    start = lines.index("failed: 2 throttled_no_heuristic (the remaining budget is too small)")
    assert " ".join(" ".join(lines[start + 1 : start + 4]).split()).startswith(
        "2 subjects (row r0, row r1) fake/paid_judge: throttled_no_heuristic: "
    )
    assert [line.startswith("    ") for line in lines[start + 1 : start + 3]] == [False, True]
    assert any("fell back (budget_exhausted)" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_subject_is_shown_without_the_record_of_another_kind_that_has_its_id(shop):
    shop.rows("of the row")
    shop.run("extractors: [extract/regex: {pattern: '(row)', into: found}]\n")
    shop.write(
        "trace.jsonl",
        [{"type": "turn.completed", "session_id": "s", "turn_id": "r0", "payload": {"stop_reason": "end_turn"}}],
    )
    shop.run("source: {traces/events: {path: trace.jsonl}}\njudges: [heuristic/turn]\n")
    output = shop.dicast("show", "r0", "--json").json["subject"]
    assert output["kind"] == "turn"
    assert "record" not in output


def test_one_subject_is_told_in_the_singular(shop):
    shop.rows("good")
    shop.pipeline(WORDS)
    assert "\n1 subject: 1 scored of 1 " in shop.dicast("run", "p.yaml").out


def test_details_of_several_lines_stand_below_their_metric(shop):
    shop.rows("wordy")
    shop.pipeline("metrics: [fake/act]\n")
    shop.dicast("run", "p.yaml")
    assert "\n  failed\n  Traceback\n    here\n" in shop.dicast("show", "r0").out
