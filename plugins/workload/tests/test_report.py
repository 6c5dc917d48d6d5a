"""``dicast workloads``: the results of a suite's runs."""

from __future__ import annotations

import json
import statistics
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Subject
from dicast_workload.command import workloads
from dicast_workload.figures import Provenance, Row, Sum, rows, signals
from dicast_workload.judged import Judged, Reading
from dicast_workload.report import Report


def judged(
    score=1.0, confidence=0.8, *, workload="mend", model="small", cost="1", baseline="3", kind="heuristic", **context
):
    prices = [None if amount is None else Decimal(amount) for amount in (cost, baseline)]
    return Judged("id", workload, model, score, None if score is None else confidence, kind, *prices, context)


def report(*runs: Judged) -> Report:
    return Report.of(Reading((("R", "nightly"),), "turn", runs))


def only_row(*runs: Judged) -> dict:
    (row,) = report(*runs).document()["data"]
    return row


def test_quality_is_score_at_confidence():
    row = only_row(judged(0.9, 0.8), judged(0.94, 0.8))
    assert (row["quality"], row["runs"], row["failed"]) == ("0.92@0.80", 2, 0)
    assert row["mean"] == pytest.approx(0.92)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_mean_and_sample_deviation(scores):
    row = only_row(*map(judged, scores))
    assert row["mean"] == pytest.approx(statistics.fmean(scores), abs=1e-12)
    expected = None if len(scores) == 1 else pytest.approx(statistics.stdev(scores), abs=1e-12)
    assert row["std"] == expected
    assert row["noisy"] is (row["std"] is not None and row["std"] > 0.15)


@pytest.mark.parametrize(("scores", "noisy"), [((0.5,), False), ((0.3, 0.6), True), ((0.35, 0.5, 0.65), False)])
def test_more_than_the_limit_is_noisy_and_the_limit_is_not(scores, noisy):
    row = only_row(*map(judged, scores))
    assert row["noisy"] is noisy
    text = "\n".join(report(*map(judged, scores)).lines())
    assert ("NOISY" in text) is noisy


def by_two_models(cheap: list[float], costly: list[float], cheap_cost="1", costly_price="5", **options):
    runs = [judged(score, model="small", cost=cheap_cost, **options) for score in cheap]
    return runs + [judged(score, model="large", cost=costly_price, **options) for score in costly]


@pytest.mark.parametrize(
    ("runs", "strength", "gap"),
    [
        (by_two_models([0.5] * 4, [0.9] * 4), "high", 0.4),
        (by_two_models([0.55] * 4, [0.95] * 4), "high", 0.4),
        (by_two_models([0.51] * 4, [0.9] * 4), "marginal", 0.39),
        (by_two_models([0.9] * 4, [0.5] * 4), "marginal", -0.4),
        (by_two_models([0.1] * 3, [0.9] * 4), "marginal", None),
        (by_two_models([0.1] * 4, [0.9] * 3), "marginal", None),
        (by_two_models([0.1] * 4, [0.9] * 4, costly_price="1"), "marginal", None),
        (by_two_models([0.1] * 4, [0.9] * 4, costly_price=None), "marginal", None),
        ([judged(0.1)] * 8, "marginal", None),
    ],
)
def test_signal_is_high_where_the_dear_model_is_measured_to_be_better(runs, strength, gap):
    (signal,) = report(*runs).document()["workloads"]
    assert signal["signal_strength"] == strength
    assert signal["gap"] == (None if gap is None else pytest.approx(gap))
    assert (signal["cheapest"], signal["dearest"]) == ((None, None) if gap is None else ("small", "large"))


def test_the_gap_is_between_the_cheapest_and_the_dearest_of_several_models():
    runs = by_two_models([0.2] * 4, [0.8] * 4) + [judged(1.0, model="middle", cost="3") for _ in range(4)]
    assert signals(rows(runs))["mend"].gap == pytest.approx(0.6)


def test_declared_strength_stands_beside_the_measured():
    (signal,) = report(judged(signal_strength="high")).document()["workloads"]
    assert (signal["declared"], signal["signal_strength"]) == ("high", "marginal")


def test_savings_on_successful_work():
    runs = [
        judged(0.5, 0.5, cost="0.10", baseline="0.40"),
        judged(0.49, 0.9, cost="0.10", baseline="0.15"),
        judged(0.9, 0.49, cost="0.10", baseline="0.12"),
        judged(None, cost="0.2", baseline="0.1"),
    ]
    report_ = report(*runs)
    assert report_.document()["savings"] == {"successful_usd": "0.30", "total_usd": "0.27", "successful_runs": 1}
    assert list(report_.lines())[-1] == "savings on successful work: $0.30 of $0.27 total"


def test_an_unknown_price_is_unknown_and_never_zero():
    runs = [judged(cost="0.10", baseline="0.40"), judged(cost=None), judged(0.1, baseline=None)]
    report_ = report(*runs)
    assert report_.document()["savings"] == {
        "successful_usd": None,
        "total_usd": None,
        "successful_runs": 2,
        "known_successful_usd": "0.30",
        "known_total_usd": "0.30",
        "unpriced": 2,
    }
    row = report_.document()["data"][0]
    assert (row["cost_usd"], row["baseline_cost_usd"], row["savings_usd"]) == (None, None, None)
    assert list(report_.lines())[-1] == (
        "savings on successful work: $0.30 of $0.30 total, besides 2 runs whose price is not known"
    )


def test_where_no_price_is_known_the_headline_says_so():
    report_ = report(judged(cost=None), judged(baseline=None))
    assert list(report_.lines())[-1].startswith("savings on successful work: unknown")
    assert "?" in "\n".join(report_.lines())


@given(st.lists(st.none() | st.decimals(0, 1000, places=6), max_size=20))
def test_sums_of_money_are_exact(amounts):
    total = Sum.of(amounts)
    assert total.known == sum((amount for amount in amounts if amount is not None), Decimal(0))
    assert (total.total is None) == (None in amounts)


def test_a_saving_may_be_a_loss():
    report_ = report(judged(cost="0.30", baseline="0.175"))
    assert report_.document()["savings"]["total_usd"] == "-0.125"
    assert list(report_.lines())[-1] == "savings on successful work: -$0.125 of -$0.125 total"


def test_every_workload_and_model_weighs_the_same_in_the_suite():
    runs = [judged(1.0), judged(1.0), judged(1.0), judged(0.0, workload="other"), judged(0.5, model="large")]
    suite = report(*runs, judged(None)).document()["suite"]
    assert suite["mean"] == pytest.approx(0.5)
    assert suite["models"] == {"large": 0.5, "small": 0.5}
    assert (suite["workloads"], suite["runs"], suite["failed"]) == (2, 6, 1)
    assert suite["cost_usd"] == "6"


def test_runs_that_were_not_judged_are_counted_and_give_no_score():
    row = only_row(judged(None), judged(None))
    assert (row["runs"], row["failed"], row["mean"], row["quality"], row["std"]) == (2, 2, None, None, None)
    text = "\n".join(report(judged(None), judged(0.5)).lines())
    assert "1 (+1 not judged)" in text
    assert "1 of 2 runs judged" in text
    assert "suite mean: none" in "\n".join(report(judged(None)).lines())


PINS = {
    "suite_version": 1,
    "commit": "abc",
    "branch": "main",
    "dirty": False,
    "pricing_version": "p1",
    "temperature": 0,
}


def test_provenance_is_pinned():
    first = judged(provenance={**PINS, "seed": 1, "start": "2026-01-01T10:00Z", "end": "2026-01-01T10:01Z"})
    second = judged(model="large", provenance={**PINS, "seed": 2, "start": "2026-01-01T09:00Z", "end": "2026-01-01T09:01Z", "models": ["judge-1"]})  # fmt: skip
    pinned = report(first, second).document()["provenance"]
    assert pinned == {
        **PINS,
        "seed_passes": None,
        "models": ["judge-1", "large", "small"],
        "seeds": [1, 2],
        "start": "2026-01-01T09:00Z",
        "end": "2026-01-01T10:01Z",
        "mixed": {},
    }
    assert "commit abc" in list(report(first, second).lines())[1]


def test_start_and_end_are_instants_whatever_their_offsets():
    times = [
        "2026-01-01T09:30:00+02:00",
        "2026-01-01T08:00:00Z",
        "2026-01-01T08:30",
        "2026-01-01T01:00-08:00",
        "soon",
        7,
    ]
    provenance_ = Provenance.of([judged(provenance={"start": time, "end": time}) for time in times])
    assert (provenance_.start, provenance_.end) == ("2026-01-01T09:30:00+02:00", "2026-01-01T01:00-08:00")


@pytest.mark.parametrize(
    ("other", "mixed"),
    [
        ({**PINS, "commit": "def"}, {"commit": ["abc", "def"]}),
        ({**PINS, "dirty": True}, {"dirty": [False, True]}),
        ({**PINS, "temperature": 0.7}, {"temperature": [0, 0.7]}),
        ({**PINS, "temperature": 0.0}, {}),
        ({key: PINS[key] for key in PINS if key != "pricing_version"}, {"pricing_version": ["p1", None]}),
    ],
)
def test_provenance_that_differs_is_flagged(other, mixed):
    report_ = report(judged(provenance=PINS), judged(provenance=other))
    document_ = report_.document()["provenance"]
    assert document_["mixed"] == mixed
    assert all(document_[key] is None for key in mixed)
    assert [line.split()[1].rstrip(":") for line in report_.lines() if "MIXED" in line] == list(mixed)


def test_runs_of_another_source_have_no_provenance():
    assert Provenance.of([judged(provenance="x"), judged()]).mixed == {}


def test_assertions_are_counted_and_the_failed_ones_named():
    runs = [
        judged(assertions_checked=4, assertion_failures=["too slow"]),
        judged(assertions_checked=["a"], assertion_failures=2, assertions_unchecked=["b", "c"]),
    ]
    assert only_row(*runs)["assertions"] == {
        "checked": 5,
        "failed": 3,
        "unchecked": 2,
        "failures": [{"run": "id", "assertion": "too slow"}],
    }
    text = "\n".join(report(*runs).lines())
    assert "failed assertions: 1\n  id: too slow" in text
    assert "do not bring their figures: 2" in text


def test_only_the_first_failed_assertions_are_shown():
    text = "\n".join(report(judged(assertion_failures=[f"no {number}" for number in range(12)])).lines())
    assert "failed assertions: 12" in text
    assert "no 9" in text
    assert "no 10" not in text


def test_a_block_that_asks_for_a_model_and_got_none_is_told():
    context_ = {"evaluate": {"rubric": "hybrid"}}
    assert only_row(judged(**context_))["rubric_requested"] == ["hybrid"]
    assert "rubric: hybrid" in "\n".join(report(judged(**context_)).lines())
    assert "rubric_requested" not in only_row(judged(kind="hybrid", **context_))


def test_a_row_is_of_one_workload_and_model():
    table = rows([judged(model=None), judged(workload="a", model="x"), judged(), judged(workload="a")])
    assert [(row.workload, row.model) for row in table] == [
        ("a", "small"),
        ("a", "x"),
        ("mend", None),
        ("mend", "small"),
    ]
    assert Row("w", None, (), 0).quality is None


# From a ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def run(ledger: Path, *subjects: Subject, judges="[heuristic/workload]", content="store") -> str:
    text = f"judges: {judges}\nledger: {{ledger/sqlite: {{path: {ledger}, content: {content}}}}}"
    return dicast.run(text, subjects=subjects).run_id


def subject(id_: str, score: float, **context) -> Subject:
    fields = {"workload": "mend", "model": "small", "cost_usd": "0.1", "per_turn_scores": [score], **context}
    return Subject("workload", id_, output="done", context=fields)


def called(ledger: Path, *arguments: str) -> dict:
    done = CliRunner().invoke(workloads, ["--ledger", str(ledger), "--json", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)


def refused(ledger: Path, *arguments: str) -> str:
    done = CliRunner().invoke(workloads, ["--ledger", str(ledger), *arguments])
    assert isinstance(done.exception, ConfigError), done.output
    return str(done.exception)


def test_the_newest_run_that_judged_workloads_is_read_and_any_others_that_are_named(ledger):
    first = run(ledger, subject("a", 0.5))
    second = run(ledger, subject("b", 1.0))
    dicast.run(
        f"metrics: [proxy/format]\nledger: {{ledger/sqlite: {{path: {ledger}}}}}",
        subjects=[Subject("row", "r", output="x")],
    )
    assert called(ledger)["runs"] == [{"run_id": second, "name": "pipeline"}]
    assert called(ledger)["data"][0]["mean"] == 1.0
    assert called(ledger, "--run", first)["data"][0]["mean"] == 0.5
    both = called(ledger, "--run", first, "--run", "last", "--run", second)
    assert [run_["run_id"] for run_ in both["runs"]] == [first, second]
    assert both["data"][0]["mean"] == 0.75
    done = CliRunner().invoke(workloads, ["--ledger", str(ledger)], catch_exceptions=False)
    assert done.stdout.startswith(f"workloads judged by heuristic/workload, run {second} (pipeline)\n")


def test_of_a_run_that_was_judged_twice_the_newest_verdict_counts(ledger):
    first = run(ledger, subject("a", 0.5), subject("b", 0.5))
    second = run(ledger, subject("a", 1.0))
    result = called(ledger, "--run", second, "--run", first)
    assert result["data"][0]["mean"] == 0.75
    assert result["data"][0]["runs"] == 2


def test_a_failure_does_not_take_a_verdicts_place(ledger):
    first = run(ledger, subject("a", 0.5))
    second = run(ledger, subject("a", 7), subject("b", 7))
    result = called(ledger, "--run", first, "--run", second)["data"][0]
    assert (result["runs"], result["failed"], result["mean"]) == (2, 1, 0.5)


def test_with_several_judges_one_is_named(ledger):
    run(
        ledger,
        subject("a", 0.5),
        judges="[heuristic/workload, {heuristic/workload: {as: strict, grounding_tokens: [x]}}]",
    )
    assert "--judge (heuristic/workload, strict)" in refused(ledger)
    assert called(ledger, "--judge", "strict")["data"][0]["mean"] == 0.25
    assert "no judge 'strikt' has judged these workloads, did you mean 'strict'?" in refused(
        ledger, "--judge", "strikt"
    )


def test_only_the_workloads_that_are_named(ledger):
    run(ledger, subject("a", 0.5), subject("b", 1.0, workload="write"))
    assert [row["workload"] for row in called(ledger, "--workload", "write")["data"]] == ["write"]
    assert "no workload 'wrote' was judged, did you mean 'write'? (there is: mend, write)" in refused(
        ledger, "--workload", "wrote"
    )


def test_what_is_not_there_is_said(ledger):
    dicast.run(
        f"metrics: [proxy/format]\nledger: {{ledger/sqlite: {{path: {ledger}}}}}",
        subjects=[Subject("row", "r", output="x")],
    )
    assert "the ledger has no judged workloads" in refused(ledger)
    assert "the ledger has no run 'x'" in refused(ledger, "--run", "x")
    other = run(ledger, subject("a", 0.5))
    assert called(ledger)["runs"][0]["run_id"] == other
    rows_only = dicast.run(
        f"metrics: [proxy/format]\nledger: {{ledger/sqlite: {{path: {ledger}}}}}",
        subjects=[Subject("row", "s", output="x")],
    )
    assert "judged no workloads" in refused(ledger, "--run", rows_only.run_id)


def test_a_ledger_of_digests_has_no_figures(ledger):
    run(ledger, subject("a", 0.5), content="digest")
    assert "content: store" in refused(ledger)


def test_amounts_of_another_source_may_be_numbers_or_nothing(ledger):
    run(
        ledger,
        subject("a", 1.0, cost_usd=0.25, baseline_cost_usd=0.5),
        subject("b", 1.0, cost_usd="free", model=None, workload=None),
    )
    data = called(ledger)["data"]
    assert [(row["workload"], row["model"], row["cost_usd"], row["savings_usd"]) for row in data] == [
        ("b", None, None, None),
        ("mend", "small", "0.25", "0.25"),
    ]
