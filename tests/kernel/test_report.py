"""Figures of a run, compared with its events."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from statistics import fmean, median

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Cost, Event, Failure, Judgment, Score
from dicast._kernel.plan.clauses import Gate
from dicast._kernel.report.document import document, exit_code
from dicast._kernel.report.fold import Report
from dicast._kernel.report.spool import ScoreFile
from dicast._kernel.report.statistics import aggregate_all, confidence_interval, without_variance
from dicast._kernel.report.tally import Tally
from dicast._kernel.values.aggregation import TrimmedMean, aggregate
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample


def clustered(pairs):
    """The 95 % interval, from the formula: g/(g-1) times the squared cluster sums of the residuals, over n squared."""
    n, mean = len(pairs), math.fsum(score for _, score in pairs) / len(pairs)
    clusters = defaultdict(list)
    for number, (session, score) in enumerate(pairs):
        clusters[("row", number) if session is None else ("session", session)].append(score - mean)
    g = len(clusters)
    if g < 2:
        return None
    variance = g / (g - 1) * sum(math.fsum(residuals) ** 2 for residuals in clusters.values()) / n**2
    half = 1.959963984540054 * math.sqrt(variance)
    if half < 1e-9:
        share = 1 - 0.05 ** (1 / g)
        return mean - mean * share, mean + (1 - mean) * share
    return max(0.0, mean - half), min(1.0, mean + half)


def spooled(pairs):
    spool = ScoreFile()
    spool.add(pairs)
    return spool


def measured(pairs):
    return confidence_interval(spooled(pairs), float(sum(Fraction(score) for _, score in pairs) / len(pairs)))


def interval(pairs):
    estimate = measured(pairs)
    return None if estimate is None else (estimate.low, estimate.high)


def test_the_interval_of_an_example_worked_by_hand():
    """Mean .5; residuals -.1 and .1 of session a cancel out, b's is -.2, the lone row's .2: variance 3/2 * .08 / 16."""
    estimate = interval([("a", 0.4), ("a", 0.6), ("b", 0.3), (None, 0.7)])
    assert estimate == pytest.approx((0.5 - 1.959964 * 0.0866025, 0.5 + 1.959964 * 0.0866025), abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_a_running_mean_is_the_mean_of_all_scores_to_the_last_bit(scores):
    tally, spool = Tally(), ScoreFile()
    for some in (scores[:3], scores[3:]):
        tally.add_scores(some)
        spool.add([(None, score) for score in some])
    assert tally.mean() == aggregate_all(spool, "mean") == float(sum(map(Fraction, scores)) / len(scores))
    assert min(scores) <= tally.mean() <= max(scores)


@pytest.mark.parametrize("pairs", [[("a", 0.5)], [(None, 0.5)], [("a", 0.1), ("a", 0.9)], [("", 0.1), ("", 0.9)]])
def test_one_cluster_has_no_interval(pairs):
    assert interval(pairs) is None


def test_a_row_without_a_session_is_a_cluster_of_its_own():
    assert interval([(None, 0.4), (None, 0.6)]) == pytest.approx(clustered([("a", 0.4), ("b", 0.6)]))


def test_the_interval_stays_in_the_unit_interval():
    assert interval([("a", 1.0), ("b", 0.9), ("c", 1.0)])[1] == 1.0
    assert interval([("a", 0.0), ("b", 0.1), ("c", 0.0)])[0] == 0.0


SESSIONS = st.none() | st.sampled_from("abcd")
SCORED = st.lists(st.tuples(SESSIONS, st.floats(0, 1)), min_size=1, max_size=40)


@given(SCORED)
def test_the_interval_is_the_formula_s(pairs):
    estimate, expected = interval(pairs), clustered(pairs)
    assert estimate == (None if expected is None else pytest.approx(expected, abs=1e-9))
    if estimate is not None:
        mean = fmean(score for _, score in pairs)
        assert 0 <= estimate[0] <= mean + 1e-12
        assert mean - 1e-12 <= estimate[1] <= 1


EQUAL = st.tuples(st.floats(0, 1), st.lists(SESSIONS, min_size=2, max_size=40))


@given(EQUAL)
def test_the_interval_of_equal_scores_is_the_bound_of_the_rule_of_three(given_):
    score, sessions = given_
    estimate = measured([(session, score) for session in sessions])
    clusters = sessions.count(None) + len({*sessions} - {None})
    if clusters < 2:
        assert estimate is None
        return
    share = 1 - 0.05 ** (1 / clusters)
    assert (estimate.low, estimate.high) == pytest.approx((score * (1 - share), score + (1 - score) * share))
    assert 0 <= estimate.low <= score <= estimate.high <= 1
    assert estimate.low < estimate.high
    assert "no variance seen" in estimate.method


@given(st.integers(2, 10**6))
def test_a_share_at_the_bound_shows_no_deviation_once_in_twenty_samples(clusters):
    """The bound in other words: were the share as large as it, so many clusters would all agree with probability .05."""
    estimate = without_variance(1.0, clusters)
    assert estimate.low**clusters == pytest.approx(0.05)
    assert without_variance(1.0, clusters + 1).low > estimate.low  # more subjects, a narrower interval


def test_sessions_that_differ_inside_and_not_among_one_another_are_no_point():
    estimate = measured([("a", 0.0), ("a", 1.0), ("b", 0.0), ("b", 1.0)])
    assert (estimate.low, estimate.high) == pytest.approx((0.5 * 0.05**0.5, 1 - 0.5 * 0.05**0.5))


def test_equal_scores_on_a_scale_without_bounds_have_no_interval():
    assert confidence_interval(spooled([(None, 3.0)] * 5), 3.0, bounded=False) is None


@pytest.mark.parametrize(("line", "answer"), [(0.2, True), (0.9, None)])
def test_a_clause_goes_by_the_interval_of_equal_scores(line, answer):
    done = gated({"min_score": line, "bound": "interval"}, [1.0] * 3)
    assert done.document["score"]["ci_low"] == pytest.approx(0.05 ** (1 / 3))
    assert "no variance seen" in done.document["score"]["ci_method"]
    assert done.document["gate"]["passed"] is answer


METHODS = st.sampled_from(["median", "mean", "min", "max"]) | st.sampled_from([0.0]) | st.floats(1, 50)
METHODS = METHODS.map(lambda method: TrimmedMean(method) if isinstance(method, float) else method)


@given(SCORED, METHODS)
def test_all_scores_are_aggregated_as_a_few_are(pairs, method):
    spool = ScoreFile()
    spool.add(pairs)
    assert aggregate_all(spool, method) == pytest.approx(aggregate([score for _, score in pairs], method), abs=1e-12)


@pytest.mark.parametrize(
    ("percent", "values", "expected"),
    [(50, [0.1, 0.2, 0.4, 0.9], 0.3), (40, [0, 0, 0, 0, 0.1, 0.2, 0.6, 1, 1, 1, 1], 0.3), (34, [0.9, 0.1, 0.2], 0.2)],
)
def test_a_trimmed_mean_that_leaves_nothing_is_the_median(percent, values, expected):
    spool = ScoreFile()
    spool.add([(None, value) for value in values])
    assert aggregate_all(spool, TrimmedMean(percent)) == pytest.approx(expected)


def test_nothing_has_no_aggregate():
    assert aggregate_all(ScoreFile(), "median") is None


# The document against the events

ROW = st.tuples(
    st.none() | st.sampled_from(["s1", "s2", "s3"]),
    st.floats(0, 1) | st.sampled_from(["refused", "timeout"]),
    st.floats(0, 1),
    st.floats(0, 1) | st.just("judge_output_invalid"),
    st.sampled_from([None, "0.001", "7 msat"]),
)


@attrs.frozen
class Scripted:
    tier = "proxy"
    answers: dict = attrs.field(eq=False)

    def score(self, subject):
        return self.answers[subject.id]


@attrs.frozen
class ScriptedJudge:
    accepts = ()
    answers: dict = attrs.field(eq=False)

    async def judge(self, subject, children):
        return self.answers[subject.id]


def answer(make, value, cost):
    money = Cost.zero() if cost is None else Cost.parse(cost if " " in cost else f"{cost} usd")
    return Failure(value, "no", cost=money) if isinstance(value, str) else make(value, cost=money)


def run(rows, *, on=None, aggregation="mean"):
    subjects = [sample("x", id=str(n), session_id=row[0]) for n, row in enumerate(rows)]
    components = {
        "a": Scripted({str(n): answer(Score, row[1], row[4]) for n, row in enumerate(rows)}),
        "b": Scripted({str(n): Score(row[2], 0.5) for n, row in enumerate(rows)}),
        "j": ScriptedJudge({str(n): answer(Judgment, row[3], None) for n, row in enumerate(rows)}),
    }
    text = {"metrics": ["a", {"b": {"weight": 3}}], "judges": ["j"], "scoring": {"aggregation": aggregation}}
    return run_pipeline(
        json.dumps(text | ({"gate": {"on": on}} if on else {})), subjects=subjects, components=components
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(ROW, min_size=1, max_size=12),
    st.sampled_from(["metrics", "j"]),
    st.sampled_from(["median", "min", "mean"]),
)
def test_the_document_says_what_the_events_say(rows, on, aggregation):
    done = run(rows, on=on, aggregation=aggregation)
    completed = [event for event in done.of("eval.completed") if event.payload["judge"] == on]
    failed = [event for event in done.of("eval.failed") if event.payload["judge"] == on]
    scores = [event.payload["score"] for event in completed]
    document, score, label = done.document, done.document["score"], done.document["labels"][on]
    assert (document["subjects"], document["skipped"]) == (len(rows), 0)
    assert (label["scored"], label["failed"], label["total"]) == (len(completed), len(failed), len(rows))
    assert score["mean"] == label["mean"] == (pytest.approx(fmean(scores)) if scores else None)
    assert score["aggregate"] == (pytest.approx(aggregate(scores, aggregation)) if scores else None)
    tiers = Counter(event.payload["tier"] for event in completed)
    assert score["by_tier"] == {"truth": tiers["truth"], "proxy": tiers["proxy"]}
    expected = clustered([(event.session_id, event.payload["score"]) for event in completed]) if scores else None
    assert (score["ci_low"], score["ci_high"]) == (
        (None, None) if expected is None else pytest.approx(expected, abs=1e-9)
    )
    assert (score["ci_method"] is None) == (expected is None)
    for unit in ("usd", "msat"):
        amounts = [Decimal(e.payload["amount"]) for e in done.of("spend.settled") if e.payload["unit"] == unit]
        assert Decimal(document["cost"][unit]) == sum(amounts, Decimal(0))
    check_labels(done)


def check_labels(done):
    combined = [event.payload for event in done.of("eval.completed") if event.payload["judge"] == "metrics"]
    total = sum(event.payload["judge"] == "metrics" for event in done.of("eval.started"))
    for label, figures in done.document["metrics"].items():
        values = [item["value"] for verdict in combined for item in verdict["scores"] if item["metric"] == label]
        passes = figures.pop("passes")
        assert passes["n"] + passes["open"] == total
        del figures["pass_rate"]
        assert figures == {
            "mean": pytest.approx(fmean(values)) if values else None,
            "basis": "proxy" if values else None,
            "scored": len(values),
            "total": total,
            "skipped": 0,
            "spared": 0,
            "saved": {"usd": "0", "msat": "0"},
        }
    own = [event.payload for event in done.of("eval.completed") if event.payload["judge"] == "j"]
    assert done.document["judges"]["j"] == {
        "mean": pytest.approx(fmean(one["score"] for one in own)) if own else None,
        "mean_confidence": 1.0 if own else None,
        "scored": len(own),
        "total": total,
        "escalated": 0,
        "fallbacks": {},
    }


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_worst_are_the_lowest_the_first_of_equals_first(values):
    done = run_pipeline(
        "metrics: [m]",
        subjects=[sample("x", id=str(n)) for n in range(len(values))],
        components={"m": FakeMetric([Score(value) for value in values])},
    )
    ranked = sorted(range(len(values)), key=lambda n: (values[n], n))[:5]
    assert [(failure["subject_id"], failure["score"]) for failure in done.document["worst"]] == [
        (str(n), values[n]) for n in ranked
    ]


def test_at_most_ten_failed_subjects_are_shown_and_all_are_counted():
    done = run([(None, "refused", 0, 1.0, None)] * 12)
    assert (done.document["failed"], len(done.document["failed_subjects"])) == (12, 10)
    assert done.document["failed_subjects"][0] == {
        "subject_kind": "row",
        "subject_id": "0",
        "judge": "metrics",
        "failure_mode": "refused",
        "error_message": "a: no",
    }


def test_escalations_are_counted():
    judge = FakeJudge([Judgment(1.0, signals={"escalated": True}), Judgment(1.0, signals={"escalated": "no"})])
    done = run_pipeline("judges: [j]", subjects=[sample("x", id=n) for n in "ab"], components={"j": judge})
    assert done.document["judges"]["j"]["escalated"] == 1


def test_verdicts_that_fell_back_are_counted_by_why():
    why = ["timeout", "budget_exhausted", "timeout"]
    judge = FakeJudge([Judgment(1.0, signals={"escalation_skipped": reason}) for reason in why])
    done = run_pipeline("judges: [j]", subjects=[sample("x", id=n) for n in "abc"], components={"j": judge})
    assert done.document["judges"]["j"]["fallbacks"] == {"budget_exhausted": 1, "timeout": 2}


# Which label counts


def test_several_judges_without_a_gate_have_no_score_and_count_together():
    judges = {
        "a": FakeJudge([Judgment(0.1), Failure("refused", "no")]),
        "b": FakeJudge([Judgment(0.9), Failure("timeout", "late")]),
    }
    done = run_pipeline("judges: [a, b]", subjects=[sample("x", id=n) for n in "xy"], components=judges)
    assert (done.document["score"], done.document["scored"], done.document["failed"]) == (None, 1, 1)
    assert done.document["failures"] == {"refused": 1}


def test_a_subject_that_no_counted_judge_accepts_is_not_in_the_coverage():
    done = run_pipeline(
        "judges: [{j: {on: turn}}]",
        subjects=[sample("x", id="a", kind="turn"), sample("x", id="b")],
        components={"j": FakeJudge()},
    )
    document = done.document
    assert (document["subjects"], document["scored"], document["skipped"], document["coverage"]) == (2, 1, 1, 1.0)


def test_the_label_of_the_gate_counts():
    done = run([(None, "refused", 0, 0.75, None)], on="j")
    assert (done.document["scored"], done.document["coverage"]) == (0, 0.0)  # the metrics have not scored it
    assert (done.document["labels"]["j"]["scored"], done.document["labels"]["metrics"]["failed"]) == (1, 1)
    assert (done.document["score"]["mean"], done.exit_code) == (0.75, 0)
    assert done.document["score"]["by_tier"] == {"truth": 1, "proxy": 0}


# Gate and exit code


def gated(gate, values, **sections):
    replies = [Failure("refused", "no") if value is None else Score(value) for value in values]
    return run_pipeline(
        json.dumps({"metrics": ["m"], "gate": gate, **sections}),
        subjects=[sample("x", id=str(n)) for n in range(len(values))],
        components={"m": FakeMetric(replies)},
    )


UNSCORED = "nothing was scored; failed: 1 refused (a model's policy refused the content)"


@pytest.mark.parametrize(
    ("gate", "values", "code", "reasons"),
    [
        ({}, [0.5], 0, []),
        ({"min_score": 0.5}, [0.25, 0.75], 0, []),
        ({"min_score": 0.51}, [0.25, 0.75], 1, ["the mean of m is 0.5, below min_score 0.51"]),
        ({"max_score": 0.49}, [0.25, 0.75], 1, ["the mean of m is 0.5, above max_score 0.49"]),
        ({"min_pass_rate": 0.6}, [0.25, 0.75], 1, ["the pass rate of m is 0.5, below min_pass_rate 0.6"]),
        ({}, [1, None], 3, ["m: coverage 0.5 is below min_coverage 0.95 (the default)"]),
        ({"min_coverage": 0.5}, [1, None], 0, []),
        ({"min_coverage": 0}, [None], 3, [UNSCORED]),
        ({"min_score": 0}, [None], 3, [UNSCORED]),
        (
            {"min_score": 0.9},
            [0.5, None],
            3,
            [
                "m: coverage 0.5 is below min_coverage 0.95 (the default)",
                "the mean of m is 0.5, below min_score 0.9",
            ],
        ),
    ],
)
def test_the_gate_says_every_reason_and_the_exit_code_the_first(gate, values, code, reasons):
    done = gated(gate, values)
    assert done.document["gate"]["passed"] is {0: True, 1: False, 3: None}[code]
    assert done.document["gate"]["reasons"] == reasons
    assert done.exit_code == code


BASE = {"disabled": False, "stopped": None, "scored": 1, "failed": 0, "unaffordable": 0, "failures": {}, "sinks": {},
        "coverage": 1.0, "gate": {"passed": True}, "undecided": [], "metrics": {}, "judges": {}, "cost": {}, "spend_lost": {}}  # fmt: skip


def test_a_gate_on_a_label_without_a_score_names_the_label_if_others_have_scores():
    judge = FakeJudge([Failure("refused", "no")])
    done = run_pipeline(
        json.dumps({"metrics": ["m"], "judges": ["j"], "gate": {"on": "j", "min_coverage": 0}}),
        subjects=[sample("x")],
        components={"m": FakeMetric([Score(0.9)]), "j": judge},
    )
    assert (done.document["gate"]["reasons"], done.exit_code) == (
        ["j has no score; failed: 1 refused (a model's policy refused the content)"],
        3,
    )


UNDECIDED = {"gate": {"passed": None}, "undecided": ["coverage"]}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"gate": {"passed": False}}, 1),
        ({"coverage": 0.94, **UNDECIDED}, 3),
        ({"gate": None}, 0),
        ({"gate": None, "coverage": 0.94, "undecided": ["coverage"]}, 3),
        ({"sinks": {"s": {"lost": 1}}, "coverage": 0.1}, 4),
        ({"stopped": {"reason": "ledger_failed"}, "scored": 0, "coverage": None}, 4),
        ({"scored": 0, "failed": 2, "failures": {"throttled_no_heuristic": 2}, "sinks": {"s": {"lost": 1}}}, 5),
        ({"scored": 0, "unaffordable": 2, "coverage": 0.0}, 5),
        ({"scored": 0, "unaffordable": 1, "failed": 1, "failures": {"timeout": 1}, **UNDECIDED}, 3),
        ({"scored": 1, "unaffordable": 1, **UNDECIDED}, 3),
        ({"scored": 1, "failed": 1, "failures": {"throttled_no_heuristic": 1}, **UNDECIDED}, 3),
        ({"scored": 0, "failed": 2, "failures": {"throttled_no_heuristic": 1, "timeout": 1}, **UNDECIDED}, 3),
        ({"stopped": {"reason": "refused_by_provider"}, "scored": 0, **UNDECIDED}, 2),
        ({"stopped": {"reason": "refused_by_provider"}, "scored": 0, "cost": {"usd": "0.1"}, **UNDECIDED}, 3),
        ({"stopped": {"reason": "refused_by_provider"}, "scored": 0, "metrics": {"a": {"scored": 1}}, **UNDECIDED}, 3),
        ({"stopped": {"reason": "refused_by_provider"}, "scored": 40, **UNDECIDED}, 3),
        ({"stopped": {"reason": "interrupted"}, "sinks": {"s": {"lost": 1}}, "scored": 0}, 130),
        ({"disabled": True, "scored": 0}, 0),
    ],
)
def test_the_exit_code_is_the_first_that_applies(changes, code):
    assert exit_code(BASE | changes) == code


# Events one by one


def event(type_, payload, id_="1", session=None):
    return Event("E", type_, "2026-01-01T00:00:00.000Z", "R", payload, session, None, "row", id_)


def started(**options):
    return event("run.started", {"name": "n", "metrics": [], "judges": ["j"], "counted": ["j"], **options})


def observed(*events):
    report = Report()
    for event in events:
        report.observe(event)
    return document(report, "median", Gate(), stopped=None)


def test_an_unknown_amount_makes_its_unit_s_cost_unknown_and_the_other_s_not():
    document = observed(
        started(),
        event("spend.settled", {"amount": "0.5", "unit": "usd"}),
        event("spend.settled", {"amount": None, "unit": "usd"}),
        event("spend.settled", {"amount": "7", "unit": "msat"}),
        event("spend.lost", {"amount": "0.25", "unit": "usd"}),
    )
    assert document["cost"] == {"usd": None, "msat": "7"}
    assert document["spend_lost"] == {"usd": "0.25", "msat": "0"}


def test_money_is_summed_exactly_and_written_without_exponents():
    document = observed(started(), *[event("spend.settled", {"amount": "0.0000001", "unit": "usd"})] * 3)
    assert document["cost"]["usd"] == "0.0000003"


def test_events_of_other_types_change_nothing():
    assert observed(started(), event("route.decided", {}), event("run.stopped", {})) == observed(started())


def test_nothing_judged_is_no_coverage_and_no_pass():
    document = observed(started(), event("subject.read", {}))
    assert (document["coverage"], document["subjects"], document["skipped"]) == (None, 1, 1)
    assert (document["gate"], document["undecided"]) == (None, ["nothing was scored"])


def test_a_throttled_call_is_counted_by_its_reason():
    amounts = {"unit": "usd", "scope": "s"}
    events = [
        event("budget.throttled", {"reason": reason, "limit": limit, **amounts, "projected": projected, "spent": spent})
        for reason, limit, projected, spent in (
            ("run_cap", "1", "0.2", "9E-1"),
            ("daily_cap", "2", "0.2", "0"),
            ("run_cap", "1", "0.3", "0.95"),
            ("run_cap", "1", "0.1", "0.95"),
        )
    ]
    document = observed(started(), *events)
    assert document["throttled"] == {"daily_cap": 1, "run_cap": 3}
    caps = {
        "daily_cap": {"limit": "2", "projected": "0.2", "spent": "0"},
        "run_cap": {"limit": "1", "projected": "0.3", "spent": "0.95"},
    }
    assert document["caps"] == {name: {**amounts, **cap} for name, cap in caps.items()}
    assert "caps" not in observed(started())


def test_the_median_of_the_medians_is_the_aggregate():
    document = gated({}, [0.1, 0.2, 0.9, 0.3])
    assert document.document["score"]["aggregate"] == pytest.approx(median([0.1, 0.2, 0.9, 0.3]))


def test_subjects_of_one_id_and_two_kinds_are_two():
    done = run_pipeline(
        "metrics: [m]",
        subjects=[sample("x", id="a"), sample("x", id="a", kind="turn"), sample("x", id="b")],
        components={"m": FakeMetric([Score(0.0), Score(0.5), Score(1.0)])},
    )
    assert (done.document["scored"], done.document["skipped"]) == (3, 0)
