"""Summary of a run's document, for documents that are written out here."""

from __future__ import annotations

import re

import pytest

from dicast._kernel.cli.past_runs import runs_table
from dicast._kernel.cli.summary import run_parts
from dicast._kernel.resume.open_runs import RunCommand
from dicast.toolkit.terminal import Drawing

RUN = "01KDZ3W5Z0000000000000TEST"
DONE = {
    "name": "shop",
    "run_id": RUN,
    "subjects": 1200,
    "scored": 1100,
    "failed": 0,
    "skipped": 0,
    "unaffordable": 0,
    "coverage": 1.0,
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
    "cost": {"usd": "0", "msat": "0"},
    "spend_lost": {},
    "overruns": 0,
    "throttled": {},
    "sinks": {},
    "gate": None,
    "undecided": [],
    "ledger": None,
}
HEAD = [f"shop  run {RUN}", "1,200 subjects: 1,100 scored of 1,100 (coverage 100.0%), 100 judged without a score"]
TAIL = ["spent: nothing", "gate: none"]


def shown(done, command=None):
    """Return the summary in lines that are not wrapped."""
    return [
        re.sub(r"\n +", " ", line)
        for part in run_parts(done, command)
        for line in (part.lines if isinstance(part, Drawing) else [getattr(part, "text", part)])
    ]


def test_the_data_of_a_stop_are_json_and_its_texts_are_plain():
    stopped = {
        "reason": "early_stop",
        "plugin": "enough",
        "row_index": 2,
        "rows": ["2", "3"],
        "low": None,
        "all": False,
    }
    line = 'stopped: enough ended the run early (row_index: 2, rows: ["2","3"], low: null, all: false)'
    assert line in shown(DONE | {"stopped": stopped})


def test_a_run_without_a_score_has_its_counts_and_its_cost():
    assert shown(DONE) == [*HEAD, *TAIL]


@pytest.mark.parametrize(
    ("counts", "headline"),
    [
        (
            {"subjects": 1, "scored": 0, "coverage": None, "skipped": 1},
            "1 subject: none scored, 1 that no metric or judge accepts",
        ),
        (
            {"subjects": 2, "scored": 0, "coverage": None, "skipped": 2, "stopped": {"reason": "early_stop"}},
            "2 subjects: none scored, 2 not judged (the run stopped, or no metric or judge accepts them)",
        ),
        (
            {"subjects": 9, "scored": 4, "failed": 3, "skipped": 1, "unaffordable": 1, "coverage": 0.5},
            "9 subjects: 4 scored of 8 (coverage 50.0%), 3 failed, 1 judged without a score, 1 not judged",
        ),
    ],
)
def test_the_headline_counts_every_subject(counts, headline):
    assert shown(DONE | counts)[1] == headline


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"disabled": True}, "shop: disabled; nothing was read and nothing judged"),
        ({"run_id": None, "stopped": {"reason": "budget"}}, "shop: budget before anything was judged"),
    ],
)
def test_a_run_that_judged_nothing_has_one_line(changes, line):
    assert shown(DONE | changes) == [line]


SCORE = {
    "label": "polite",
    "mean": 0.61239,
    "aggregation": "mean",
    "aggregate": 0.61239,
    "ci_low": 0.5,
    "ci_high": 0.71239,
    "ci_method": "normal",
    "by_basis": {"model": 1000, "heuristic": 100},
    "calibrated": 250,
}
TALLY = {"mean": 0.61239, "scored": 1100, "total": 1150}


@pytest.mark.parametrize(
    ("score", "metrics", "lines"),
    [
        (
            SCORE,
            {"polite": TALLY},
            [
                "score: mean 0.6124, over 1,100 of 1,150 subjects",
                "  95 % interval of the mean 0.5000 to 0.7124 (normal)",
                "  scores by basis: calibrated model: 250, uncalibrated model: 750, heuristic: 100",
            ],
        ),
        (
            SCORE
            | {
                "aggregation": {"trimmed_mean": 10},
                "aggregate": 0.7,
                "ci_low": None,
                "scale": "raw",
                "by_basis": {"model": 100},
                "effective_n": 1234.56,
            },
            {"polite": TALLY},
            [
                (
                    "score: mean 0.6124 (raw scale), mean without 10 % at each end 0.7000, over 1,100 of 1,150 subjects"
                    " (weighted: effective n 1,234.6)"
                ),
                "  scores by basis: calibrated model: 100",
            ],
        ),
        (
            SCORE | {"aggregation": "median", "ci_low": None, "by_basis": None, "by_tier": {"truth": 3, "model": 0}},
            {},
            ["score: mean 0.6124, median 0.6124, over 1,100 of 1,100 subjects", "  scores by basis: truth: 3"],
        ),
        (
            SCORE | {"aggregation": "median", "aggregate": None, "ci_low": None, "by_basis": {}, "by_tier": {}},
            {},
            ["score: mean 0.6124, over 1,100 of 1,100 subjects"],
        ),
    ],
)
def test_the_score_has_its_interval_its_coverage_and_its_basis(score, metrics, lines):
    text = shown(DONE | {"score": score, "metrics": metrics})
    assert [line for line in text[2:-2] if not line.startswith(("metrics", "  polite"))] == lines


CORRECTED = {
    "mean": 0.55,
    "ci_low": 0.5,
    "ci_high": 0.6,
    "n_audited": 1500,
    "held_back": 2500,
    "plain_bias": 0.0512,
    "plain_bias_low": 0.01,
    "plain_bias_high": 0.09,
    "notes": ["few audits"],
}


@pytest.mark.parametrize(
    ("score", "cost", "lines"),
    [
        (
            {"corrected": CORRECTED},
            {"usd": "1.5", "msat": "0", "if_all_judged": "4", "ratio_at_equal_width": 1.25},
            [
                (
                    "  corrected: mean 0.5500 (95 % interval 0.5000 to 0.6000) if all had their truth metrics; 1,500 audits of 2,500"
                    " subjects held back; the plain mean is too high by 0.0512"
                ),
                "    note: few audits",
                "  judging everything would have cost about 4 usd",
                (
                    "  the gate with this audit costs 1.25 times as much as judging everything for an interval of the same"
                    " width: it does not pay"
                ),
            ],
        ),
        (
            {
                "corrected": CORRECTED
                | {"plain_bias": -0.05, "plain_bias_low": -0.09, "plain_bias_high": -0.01, "notes": []}
            },
            {"usd": "0", "msat": "7", "if_all_judged": "4000", "ratio_at_equal_width": 1},
            [
                (
                    "  corrected: mean 0.5500 (95 % interval 0.5000 to 0.6000) if all had their truth metrics; 1,500 audits of 2,500"
                    " subjects held back; the plain mean is too low by 0.0500"
                ),
                "  judging everything would have cost about 4000 msat",
                "  the gate with this audit costs 100% of judging everything for an interval of the same width",
            ],
        ),
        (
            {"corrected": CORRECTED | {"plain_bias_low": 0, "notes": []}},
            {"usd": "0", "msat": "0", "if_all_judged": "0", "ratio_at_equal_width": 0.25},
            [
                (
                    "  corrected: mean 0.5500 (95 % interval 0.5000 to 0.6000) if all had their truth metrics; 1,500 audits of 2,500"
                    " subjects held back"
                ),
                "  the gate with this audit costs 25% of judging everything for an interval of the same width",
            ],
        ),
        ({"corrected": CORRECTED | {"plain_bias_high": 0, "held_back": 0}}, {"usd": "0", "msat": "0"}, []),
        (
            {"corrected": None, "reasons": {"corrected": {"message": "no audit"}}},
            {"usd": "0", "msat": "0"},
            ["  corrected: mean unknown: no audit"],
        ),
    ],
)
def test_a_corrected_mean_has_its_audits_and_what_the_gate_costs(score, cost, lines):
    text = shown(DONE | {"score": SCORE | {"ci_low": None, "by_basis": None, "by_tier": {}} | score, "cost": cost})
    assert text[3:-2] == lines


LABELS = {
    "polite": SCORE | TALLY | {"passes": {"passed": 1000, "n": 1100}, "skipped": 50},
    "short": {"mean": None, "scored": 0, "total": 0, "ci_low": None, "categories": {"late": 2}},
}


def test_several_labels_have_a_table_with_what_judges_add():
    judges = {"polite": {"mean_confidence": 0.876, "escalated": 1200, "fallbacks": {"explicit_feedback": 3, "late": 4}}}
    assert shown(DONE | {"labels": LABELS, "judges": judges})[2:-2] == [
        "score: none, as there are 2 labels; choose one with gate: {on: LABEL}",
        "labels: mean (95 % interval), pass, scored",
        (
            "  polite  0.6124 (0.5000 to 0.7124): 1,100 of 1,150 scored, 1,000 of 1,100 pass, confidence 0.88, 50 skipped,"
            " 1,200 escalated, 3 kept by explicit feedback, 4 fell back (late)"
        ),
        "  short        -: 0 of 0 scored, 2 late",
    ]
    (table,) = [part.table for part in run_parts(DONE | {"labels": LABELS}) if isinstance(part, Drawing)]
    assert table.columns == ("labels:", "mean", "95 % interval", "pass", "scored", "")
    assert table.right == ("mean",)


def test_the_score_of_several_labels_is_named():
    done = DONE | {"labels": LABELS, "score": SCORE}
    assert shown(done)[2] == "score: mean 0.6124 of polite, over 1,100 of 1,150 subjects"


def test_metrics_and_judges_of_one_label_have_tallies():
    raw = {"mean": 12.5, "scored": 3, "total": 4, "by_basis": {}, "scale": "raw"}
    judge = TALLY | {"mean_confidence": 0.9, "skipped": 1}
    done = DONE | {"metrics": {"length": raw}, "judges": {"a judge": judge}, "recorded": {"other": TALLY}}
    assert shown(done)[2:-2] == [
        "metrics: mean (scored of judged)",
        "  length  12.5000  (3 of 4, raw scale)",
        "judges: mean (scored of judged)",
        "  a judge  0.6124  (1,100 of 1,150, 1 skipped), confidence 0.90",
        "recorded by other tools: mean (scored of judged)",
        "  other  0.6124  (1,100 of 1,150)",
    ]
    tables = [part.table for part in run_parts(done) if isinstance(part, Drawing)]
    assert [[*table.columns] for table in tables] == [
        ["metrics:", "mean", "scored", ""],
        ["judges:", "mean", "scored", "confidence", ""],
        ["recorded by other tools:", "mean", "scored"],
    ]
    assert tables[1].rows == [["  a judge", "0.6124", "1,100 of 1,150", "0.90", "1 skipped"]]
    assert [*tables[0].right] == ["mean", "scored", "confidence"]


def test_the_lowest_scores_are_listed_unless_they_are_1():
    worst = [
        {"score": 0.99994, "subject_kind": "row", "subject_id": "7"},
        {"score": 1.0, "subject_kind": "row", "subject_id": "8"},
    ]
    assert shown(DONE | {"worst": worst})[2:-2] == ["lowest scores: (see dicast show ID)", "  0.9999  row 7"]
    assert shown(DONE | {"worst": worst[1:]}) == [*HEAD, *TAIL]


def failure(id, message="'7' is late", **changes):
    return {
        "subject_kind": "row",
        "subject_id": id,
        "judge": "polite",
        "failure_mode": "timeout",
        "error_message": message,
    } | changes


def test_failures_with_one_message_share_a_line():
    listed = [
        *(failure(str(number), f"{str(number)!r} is late") for number in range(5)),
        failure("7", "refused"),
        failure("8", "no task", origin="task"),
        failure("8", "no task", origin="task", judge="short"),
        failure("9", "no task", origin="task"),
    ]
    done = DONE | {"failures": {"timeout": 1500, "crashed": 1}, "failed_subjects": listed}
    assert shown(done)[2:-2] == [
        "failed: 1,500 timeout (no answer in time), 1 crashed (a component raised an error)",
        "  5 subjects (row 0, row 1, row 2, …)  polite: timeout: it is late",
        "  row 7  polite: timeout: refused",
        "  2 subjects (row 8, row 9)  task: timeout: no task",
        f"  … (all: dicast verdicts --run {RUN} --failed)",
    ]
    few = shown(DONE | {"failures": {"timeout": 1}, "failed_subjects": [failure("7")]})
    assert few[2:-2] == ["failed: 1 timeout (no answer in time)", "  row 7  polite: timeout: '7' is late"]
    three = [failure(str(number), "late") for number in range(3)]
    assert shown(DONE | {"failed_subjects": three})[2:-2] == [
        "failed: none counted",
        "  3 subjects (row 0, row 1, row 2)  polite: timeout: late",
    ]


def test_aggregates_are_shown_as_trees_without_the_failures_of_rows():
    row = {"subject_kind": "row", "subject_id": "7", "failure_mode": "timeout"}
    aggregates = {
        "one": {"words": "fine", "n": 3, "share": 0.123456, "failures": [row], "deep": {"list": [1, "a", None, 0.5]}},
        "two": {"failures": [row | {"more": 1}]},
        "three": {},
        "four": None,
        "five": {"words": "alone"},
        "six": {"only": {"x": 1}},
    }
    assert shown(DONE | {"aggregates": aggregates})[2:-2] == [
        "one: fine",
        "  n 3, share 0.1235",
        "  deep: list [1, 'a', -, 0.5]",
        "two: failures [{'subject_kind': 'row', 'subject_id': '7', 'failure_mode': 'timeout', 'more': 1}]",
        "three: ",
        "four: -",
        "five: alone",
        "six",
        "  only: x 1",
    ]


@pytest.mark.parametrize(("length", "is_cut"), [(300, False), (301, True)])
def test_a_long_figure_is_cut(length, is_cut):
    text = "x" * (length - len("one: a "))
    (line,) = shown(DONE | {"aggregates": {"one": {"a": text}}})[2:-2]
    assert line == (f"one: a {text[:293]}… (301 characters)" if is_cut else f"one: a {text}")


BASELINE = {"run_id": "01BASE", "name": "shop", "differs": [], "run": "last"}


@pytest.mark.parametrize(
    ("baseline", "comparison", "lines"),
    [
        (BASELINE | {"run_id": None}, None, ["not compared: shop has no earlier completed run (baseline: last)"]),
        (BASELINE, None, []),
        (
            BASELINE | {"differs": ["task"], "passes": {"polite": {"words": "3 more pass"}}},
            {
                "paired": {"words": "better", "n": 3},
                "other": {"words": "better"},
                "third": {"sentences": ["a"], "words": "b"},
            },
            [
                "compared with run 01BASE (shop), A; differences are B (this run) minus A",
                "better",
                "a",
                "3 more pass",
                "paired: better",
                "  n 3",
                "other: better",
                "third: b",
                "  sentences ['a']",
            ],
        ),
        (
            BASELINE | {"differs": ["fingerprints"]},
            {},
            [
                "compared with run 01BASE (shop), A; differences are B (this run) minus A",
                "  unknown whether the runs are comparable: a file of records does not state how it was made",
            ],
        ),
        (
            BASELINE | {"differs": ["task", "source", "judges"]},
            {"failed": None},
            [
                "compared with run 01BASE (shop), A; differences are B (this run) minus A",
                "  NOT COMPARABLE: the runs differ in source, judges",
                "failed: -",
            ],
        ),
    ],
)
def test_a_baseline_has_its_differences_and_each_sentence_once(baseline, comparison, lines):
    assert shown(DONE | {"baseline": baseline, "comparison": comparison})[2:-2] == lines


def test_money_that_was_lost_reserved_or_spared_has_lines():
    batch = {"batch_id": "b-1", "model": "m", "calls": 1200, "until": "noon"}
    done = DONE | {
        "cost": {"usd": "1.5", "msat": "7"},
        "spend_lost": {"usd": "0.25"},
        "reserved": {"usd": "0.125"},
        "cancelled_batches": [batch],
        "batches": [batch, batch | {"batch_id": None, "calls": 3}],
        "metrics": {
            "a": TALLY | {"spared": 1, "saved": {"usd": "0"}},
            "b": TALLY | {"spared": 1200, "saved": {"usd": "3"}},
            "c": TALLY | {"spared": 0},
        },
        "overruns": 1100,
        "throttled": {"daily cap": 2000},
        "adapted": {"judge": ["seed", "top_p"]},
        "assumed": ["a price"],
        "broken": {"sink": "sink x broke"},
        "sinks": {"x": {"lost": 1500, "error": "full"}, "y": {"lost": 0}},
    }
    text = shown(done)
    assert [line for line in text[2:] if not line.startswith(("metrics", "  a", "  b ", "  c "))] == [
        "BROKEN: sink x broke",
        "adapted: [seed, top_p] (refused by the endpoint of judge: left out, or sent in another form)",
        "assumed: a price",
        "spent: 1.5 usd, 7 msat",
        "  lost, reserved for calls without a reply: 0.25 usd",
        "  reserved for calls in batches: 0.125 usd",
        "  canceled: batch b-1 of calls to m",
        "  waiting: a batch of 3 calls to m (not confirmed by the endpoint) ends by noon",
        "  the gate spared 1 run of a: free",
        "  the gate spared 1,200 runs of b: 3 usd",
        ("  calls that cost more than projected: 1,100"),
        "  calls not made because of the daily cap: 2,000",
        "sink x LOST 1,500 events: full",
        "gate: none (exit code 4: a sink or the ledger lost data)",
    ]


PLANNED = {"low": "1", "mid": "2", "high": "3", "spent": "3"}


@pytest.mark.parametrize(
    ("cost", "line"),
    [
        (PLANNED, "plan: 2 usd (1 to 3); spent 3: as planned"),
        (PLANNED | {"spent": "1"}, "plan: 2 usd (1 to 3); spent 1: as planned"),
        (PLANNED | {"spent": "3.1"}, "plan: 2 usd (1 to 3); spent 3.1: NOT as planned"),
        (PLANNED | {"spent": "0.9"}, "plan: 2 usd (1 to 3); spent 0.9: NOT as planned"),
        (PLANNED | {"mid": None}, "plan: 1 to 3 usd; spent 3: as planned"),
        (PLANNED | {"high": None}, None),
        (PLANNED | {"low": "0", "high": "0", "spent": "0"}, None),
        (PLANNED | {"low": "0", "high": "0"}, "plan: 2 usd (0 to 0); spent 3: NOT as planned"),
    ],
)
def test_a_plan_is_compared_with_the_cost(cost, line):
    plan = {"cost": {"usd": cost}, "width": {"planned": None, "reached": None}}
    assert shown(DONE | {"plan": plan})[3:-1] == ([] if line is None else [line])


@pytest.mark.parametrize(("planned", "reached"), [(0.05, 0.12345), (0.05, None), (None, 0.1)])
def test_a_planned_width_is_compared_with_the_width(planned, reached):
    plan = {"cost": {}, "width": {"planned": planned, "reached": reached}}
    is_known = None not in (planned, reached)
    lines = ["plan: interval width 0.0500; reached 0.1235"] if is_known else []
    assert shown(DONE | {"plan": plan})[3:-1] == lines


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"stopped": {"reason": "early_stop", "rows": 3}}, ["stopped: early_stop (rows: 3)"]),
        (
            {"stopped": {"reason": "budget"}},
            [
                "stopped: budget",
                "  verdicts are recorded; to judge the remaining subjects:",
                f"    dicast run p.yaml --resume {RUN}",
            ],
        ),
        (
            {"stopped": {"reason": "endpoint", "message": "down"}, "scored": 0, "batches": [{"batch_id": "b"}]},
            [
                "stopped: endpoint: down",
                "  to judge the remaining subjects, once the endpoint answers and the file is unchanged:",
                f"    dicast run p.yaml --resume {RUN}",
                "  after a correction of the address or the model in the file, a new run:",
                "    dicast run p.yaml",
                "  The batches continue and are billed. To cancel them:",
                f"    dicast run p.yaml --resume {RUN} --cancel-batches",
            ],
        ),
        (
            {"stopped": {"reason": "refused_by_provider", "message": "m at http://x: HTTP 401: no"}, "scored": 0},
            [
                "stopped: refused_by_provider: m at http://x: HTTP 401: no",
                "  to judge the remaining subjects, correct the key in the environment, then with the file unchanged:",
                f"    dicast run p.yaml --resume {RUN}",
            ],
        ),
        (
            {"stopped": {"reason": "refused_by_provider", "message": "m at http://x: HTTP 404: no"}, "scored": 0},
            [
                "stopped: refused_by_provider: m at http://x: HTTP 404: no",
                "  to judge the remaining subjects, once the endpoint has the model and the file is unchanged:",
                f"    dicast run p.yaml --resume {RUN}",
                "  after a correction of the address or the model in the file, a new run:",
                "    dicast run p.yaml",
            ],
        ),
        (
            {
                "stopped": {"reason": "interrupted"},
                "failures": {"throttled_no_heuristic": 1},
                "failed": 1,
                "caps": {"daily_cap": {"limit": "2", "projected": "1", "unit": "usd", "scope": "day:2026-01-01"}},
            },
            [
                "stopped: interrupted",
                "  verdicts are recorded; to judge the remaining subjects, raise the cap: budget.day is 2 usd, or wait for the next day (UTC):",
                f"    dicast run p.yaml --resume {RUN} --retry-failed",
            ],
        ),
        (
            {"stopped": {"reason": "signal", "live": True}},
            ["stopped: signal", "  verdicts are recorded; the same command continues the run"],
        ),
    ],
)
def test_a_stopped_run_says_how_it_goes_on(changes, lines):
    batches = [batch | {"calls": 1, "model": "m", "until": "noon"} for batch in changes.get("batches", ())]
    command = RunCommand("p.yaml", ["budget.day=2 usd"] if "caps" in changes else [])
    text = shown(DONE | changes | {"batches": batches}, command)
    assert text[text.index(lines[0]) : -1] == lines
    cancelled = DONE | changes | {"batches": batches, "cancelled_batches": batches}
    assert not any("billed" in line for line in shown(cancelled, RunCommand("p.yaml")))


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("spore-2 at http://x: HTTP 404: no", ["a/chat.model=spore-2"]),
        ("spore-2 at http://y: HTTP 404: no", ["a/chat.model=spore-2", "a/chat.base_url='http://y'"]),
        ("other at http://x: HTTP 404: no", []),
    ],
)
def test_the_command_after_a_correction_lacks_the_refused_model_and_address(message, refused):
    settings = ["a/chat.model=spore-2", "a/chat.base_url='http://y'", "b/chat.model=big", "name=x"]
    stopped = {"reason": "refused_by_provider", "message": message}
    text = shown(DONE | {"stopped": stopped, "scored": 0}, RunCommand("p.yaml", settings))
    paths = " and ".join(setting.partition("=")[0] for setting in refused)
    place = f"in the file, or of {paths} in --set (left out here)" if refused else "in the file"
    kept = [setting for setting in settings if setting not in refused]
    start = text.index(f"  after a correction of the address or the model {place}, a new run:")
    assert text[start + 1].strip() == RunCommand("p.yaml", kept).starting()
    assert RunCommand("p.yaml", settings).resuming(RUN) in text[start - 1], "the resumed run is of the same model"


def test_the_end_has_warnings_the_gate_and_the_head_of_the_ledger():
    warnings = [{"kind": "dropped_records", "message": "dropped"}, {"kind": "other", "message": "careful"}]
    clauses = [
        {"rule": "min_coverage", "on": None, "value": 1.0, "line": 0.9, "low": None, "high": None, "passed": True},
        {"rule": "min_mean", "on": "polite", "value": 0.61239, "line": 0.7, "low": 0.5, "high": 0.7, "passed": False},
        {"rule": "max_fails", "on": "polite", "value": None, "line": 3, "low": None, "high": None, "passed": None},
    ]
    gate = {"passed": False, "reasons": ["too low", "too few"], "clauses": clauses}
    ledger = {"path": "l.db", "head": {"seq": 1234, "digest": "abc"}}
    done = DONE | {"warnings": warnings, "gate": gate, "ledger": ledger}
    assert shown(done)[2:] == [
        "spent: nothing",
        "warning: careful",
        "gate: failed: too low; too few",
        "          min_coverage 0.9: 1",
        "  polite  min_mean 0.7: 0.6124 (0.5000 to 0.7000), failed",
        "  polite  max_fails 3: -, undecided",
        "ledger: l.db, row 1,234, abc",
    ]
    quiet = DONE | {"gate": {"passed": True, "reasons": [], "clauses": clauses[:1]}, "ledger": ledger | {"head": None}}
    assert shown(quiet)[2:] == ["spent: nothing", "gate: passed"]
    assert shown(DONE | {"undecided": ["a", "b"]})[-1] == "gate: none; undecided: a; b"


READ = {"records": 1, "marked": {}, "dropped": {}, "failed": 0}
SEVEN = {f"kind {number}": number for number in range(1, 8)}


@pytest.mark.parametrize(
    ("read", "lines"),
    [
        (READ, []),
        (READ | {"failed": 1200}, ["read: 1 record; failed: 1,200 (source_error)"]),
        (READ | {"records": None, "dropped": {"late": 2}}, ["read: dropped: 2 late"]),
        (
            READ | {"records": 2000, "marked": SEVEN, "notes": ["kind 1 marked x", "a note"]},
            [
                (
                    "read: 2,000 records; marked: 7 kind 7, 6 kind 6, 5 kind 5, 4 kind 4, 3 kind 3, 2 more kinds; a note; kind 1"
                    " marked x"
                )
            ],
        ),
        (READ | {"records": None, "notes": ["only"]}, ["read: only"]),
        (
            READ | {"notes": ["x" * 75] * 5},
            ["read: 1 record" + f"; {'x' * 75}" * 3, "  + 2 more notes (--json)"],
        ),
        (
            READ | {"notes": ["x" * 75] * 4},
            ["read: 1 record" + f"; {'x' * 75}" * 3, "  + 1 more note (--json)"],
        ),
    ],
)
def test_the_input_has_its_counts_and_as_many_notes_as_4_lines_hold(read, lines):
    assert shown(DONE | {"read": read})[2:-2] == lines


LISTED = {
    "run_id": RUN,
    "name": "shop",
    "kind": "pipeline",
    "started_at": "2026-11-27T05:48:00.000Z",
    "state": "completed",
    "subjects": 9_999,
    "scored": 10_000,
    "score": 0.61239,
    "basis": "model",
    "labels": {"polite": {"mean": 0.5, "scored": 1, "total": 2}},
    "gate": "passed",
    "cost": {"usd": "0.5", "msat": "0"},
}


def test_a_list_of_runs_has_a_row_for_each_and_for_labels_of_several():
    other = {"short": {"mean": None, "scored": 999_999, "total": 1_000_000}}
    older = LISTED | {
        "started_at": "2025-12-31T23:59:00.000Z",
        "state": "stopped",
        "subjects": None,
        "score": None,
        "basis": None,
        "labels": LISTED["labels"] | other,
        "cost": {"usd": "0", "msat": "1500"},
    }
    table = runs_table([LISTED, older, LISTED | {"cost": None, "subjects": 12_345_678}])
    assert table.columns == ["start (UTC)", "run", "name", "result", "scored", "score", "basis", "usd"]
    assert [tuple(row) for row in table.rows] == [
        ("11-27 05:48", "00TEST", "shop", "passed", "10k/9999", "0.612", "model", "0.5"),
        ("2025-12-31", "00TEST", "shop", "stopped", None, None, None, "0 + 1500 msat"),
        ("", "", "  polite", "", "1/2", "0.500", "", ""),
        ("", "", "  short", "", "999k/1.0M", None, "", ""),
        ("11-27 05:48", "00TEST", "shop", "passed", "10k/12.3M", "0.612", "model", None),
    ]
    assert table.uncut == {"start (UTC)", "run", "kind", "result", "scored", "score", "basis", "usd"}
    assert (table.right, table.least) == (("scored", "score", "usd"), 10)
    assert "kind" in runs_table([LISTED, LISTED | {"kind": "preview"}]).columns


def test_a_single_lost_event_is_counted_in_the_singular():
    lines = shown(DONE | {"sinks": {"x": {"lost": 1, "error": "full"}}})
    assert "sink x LOST 1 event: full" in lines
