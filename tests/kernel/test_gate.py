"""The decision of a run's gate: passed, failed or undecided, and its pass rates."""

from __future__ import annotations

import json
import math
from collections import defaultdict

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast
from dicast import Cost, Failure, Judgment, Score, Subject
from dicast._kernel.plan.clauses import Clause, Gate
from dicast._kernel.report.fold import Report
from dicast._kernel.report.gate import answered, as_it_ended
from dicast._kernel.report.labels import Ending
from dicast._kernel.report.spool import BATCH, Passes
from dicast._kernel.report.statistics import pass_rate
from dicast._kernel.values.endpoint_errors import AccessRefused
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample


def rows(count, sessions=None, kind="row"):
    return [
        sample("x", id=str(n), kind=kind, session_id=None if sessions is None else f"s{n % sessions}")
        for n in range(count)
    ]


def judged(gate, values, *, sessions=None, **sections):
    """A run with one judge ``j`` that gives *values*; None is a failure."""
    replies = [Failure("refused", "no") if value is None else Judgment(value) for value in values]
    text = {"judges": [{"j": sections.pop("slot", {})}], **({} if gate is None else {"gate": gate}), **sections}
    return run_pipeline(json.dumps(text), subjects=rows(len(values), sessions), components={"j": FakeJudge(replies)})


def truths(gate, values, *, proxies=None, sessions=None, slot=None, **sections):
    """A run with a proxy ``p`` and a truth metric ``t``, which gives *values* where the proxy passes."""
    replies = [Failure("refused", "no") if value is None else Score(value) for value in values]
    metrics = {"proxy": ["p"], "truth": [{"t": slot or {}}]}
    reservation = FakeMetric([Score(value) for value in proxies] if proxies else Score(1.0))
    return run_pipeline(
        json.dumps({"metrics": metrics, **({} if gate is None else {"gate": gate}), **sections}),
        subjects=rows(len(proxies or values), sessions),
        components={"p": reservation, "t": FakeMetric(replies or Score(1.0))},
    )


def passed(done):
    gate, undecided = done.document["gate"], done.document["undecided"]
    assert done.exit_code == (3 if undecided else 0 if gate is None or gate["passed"] else 1)
    assert gate is None or (gate["passed"] is None) == bool(undecided)
    return None if undecided else gate is None or gate["passed"]


# What a clause is about


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (None, True),
        ({"min_score": 0.4}, True),  # the proxies are in the mean
        ({"on": "t", "min_score": 0.8}, False),
        ({"on": "t", "min_pass_rate": 0.8}, False),
        ({"min_pass_rate": 0.8, "on": "metrics"}, False),  # each metric has to pass
        ({"on": "p", "min_score": 1}, True),
        ([{"min_score": 0.4}, {"on": "t", "min_score": 0.1}], False),
        ([{"on": "p", "min_score": 0.4}, {"on": "t", "max_score": 0}], True),
    ],
)
def test_two_hundred_wrong_answers_fail_a_gate_that_is_about_them(gate, expected):
    done = truths(gate, [0.0] * 200)
    assert passed(done) is expected
    assert (done.document["score"]["label"], done.document["score"]["mean"]) == ("metrics", 0.5)
    assert done.document["metrics"]["t"]["pass_rate"] == 0.0
    assert done.document["metrics"]["t"]["passes"]["n"] == 200


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (0.6500001, "the pass rate of t is 0.65, below min_pass_rate 0.6500001"),
        (0.7, "the pass rate of t is 0.65, below min_pass_rate 0.7"),
        (0.6512345, "the pass rate of t is 0.65, below min_pass_rate 0.651235"),
    ],
)
def test_a_value_and_its_line_have_as_many_digits_as_make_them_differ(line, reason):
    done = truths({"on": "t", "min_pass_rate": line}, [1.0] * 13 + [0.0] * 7)
    assert done.document["gate"]["reasons"] == [reason]


def test_what_failed_is_said_before_what_is_undecided():
    done = truths([{"on": "t", "min_score": 0.5, "bound": "interval"}, {"on": "t", "min_score": 0.9}], [1.0, 0.0] * 4)
    assert passed(done) is False
    undecided = "the 95 % interval of the mean of t is"
    first, second = done.document["gate"]["reasons"]
    assert (first, second[: len(undecided)]) == ("the mean of t is 0.5, below min_score 0.9", undecided)


def test_a_clause_says_what_it_was_held_against():
    done = truths([{"on": "t", "min_score": 0.5, "min_coverage": 0.9}, {"min_pass_rate": 1}], [1.0, 0.5, 0.0, 0.0])
    coverage, mean, other, rate = done.document["gate"]["clauses"]
    low, high = mean.pop("low"), mean.pop("high")
    assert 0 <= low < 0.375 < high <= 1
    assert coverage == {
        "on": "t", "rule": "min_coverage", "line": 0.9, "value": 1.0, "low": None, "high": None, "passed": True,
    }  # fmt: skip
    assert mean == {"on": "t", "rule": "min_score", "line": 0.5, "value": 0.375, "passed": False}
    assert (other["on"], other["line"]) == ("metrics", 0.95)
    assert (rate["on"], rate["rule"], rate["value"], rate["passed"]) == ("metrics", "min_pass_rate", 0.5, False)
    assert done.document["gate"]["reasons"] == [
        "the mean of t is 0.375, below min_score 0.5",
        "the pass rate of metrics is 0.5, below min_pass_rate 1",
    ]


def test_a_judge_s_own_clause_stands_beside_the_one_that_counts():
    components = {"m": FakeMetric(Score(1.0)), "j": FakeJudge([Judgment(0.2), Failure("refused", "no")])}
    text = {"metrics": ["m"], "judges": ["j"]}

    def run(gate):
        return run_pipeline(json.dumps({**text, "gate": gate}), subjects=rows(2), components=components)

    done = run([{"on": "metrics", "min_score": 1}, {"on": "j", "min_score": 0.3}])
    assert passed(done) is None  # half of what the judge was to judge failed
    assert (done.document["coverage"], done.document["score"]["label"]) == (0.5, "metrics")
    assert done.document["gate"]["reasons"][0] == "j: coverage 0.5 is below min_coverage 0.95 (the default of clause 2)"


@pytest.mark.parametrize("value", [0.7, 0.1, 0.3, 0.95])
def test_equal_scores_are_on_their_own_line(value):
    gate = {"min_score": value, "max_score": value}
    for count in (3, 6, 7, 10):
        assert passed(judged(gate, [value] * count)) is True
    assert passed(judged({"min_score": value + 2e-9}, [value] * 3)) is False


def test_a_value_is_on_its_line_within_the_tolerance_when_it_comes_to_passing():
    at = 0.1 + 0.2  # .30000000000000004
    done = judged({"min_pass_rate": 1}, [0.3, 0.3 - 1e-10], slot={"pass_at": at})
    assert passed(done) is True
    assert passed(judged({"min_pass_rate": 1}, [0.3, 0.3 - 1e-8], slot={"pass_at": at})) is False


def test_pass_at_is_a_label_s_own_and_scoring_has_that_of_the_combined_verdict():
    document = truths(None, [0.6, 0.8], slot={"pass_at": 0.7}, scoring={"pass_at": 0.85}).document
    assert (document["metrics"]["t"]["pass_rate"], document["metrics"]["p"]["pass_rate"]) == (0.5, 1.0)
    assert (document["score"]["pass_rate"], document["score"]["passes"]["passed"]) == (0.5, 1)  # .8 and .9
    assert judged(None, [0.6, 0.8], slot={"pass_at": 0.7}).document["score"]["pass_rate"] == 0.5


def test_a_failed_judgment_is_open_and_in_no_pass_rate():
    document = truths({"min_coverage": 0.5}, [1.0, None]).document
    assert document["score"]["pass_rate"] == document["metrics"]["t"]["pass_rate"] == 1.0
    assert [document["metrics"][label]["passes"]["open"] for label in "pt"] == [1, 1]
    assert document["metrics"]["p"]["passes"]["n"] == 1


@pytest.mark.parametrize(
    ("gate", "expected", "value"),
    [
        ({"on": "t", "min_basis": "truth"}, True, "truth"),
        ({"on": "t", "min_basis": "human"}, False, "truth"),
        ({"on": "p", "min_basis": "proxy"}, True, "proxy"),
        ({"on": "p", "min_basis": "heuristic"}, False, "proxy"),
        ({"min_basis": "truth"}, False, "proxy"),  # of the subject that the proxy held back
    ],
)
def test_every_score_rests_on_the_least_basis(gate, expected, value):
    done = truths(gate, [1.0], proxies=[1.0, 0.0])
    assert passed(done) is expected
    assert done.document["gate"]["clauses"][-1]["value"] == value


def test_a_judge_s_basis_is_what_its_kind_says():
    judge = FakeJudge([Judgment(1.0, judge_kind="human"), Judgment(1.0, judge_kind="llm")])
    text = "judges: [j]\ngate: {min_basis: truth}\n"
    done = run_pipeline(text, subjects=rows(2), components={"j": judge})
    assert done.document["gate"]["reasons"] == ["a score of j has the basis model, weaker than min_basis truth"]


# What the proxies held back


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ({"min_score": 0.8}, True),  # .9 at least, whatever the two held back are worth
        ({"min_score": 0.92}, None),
        ({"max_score": 0.85}, False),
        ({"min_pass_rate": 0.9}, True),
        ({"min_pass_rate": 0.91}, False),  # a subject that was held back has not passed
    ],
)
def test_subjects_that_the_proxies_held_back_do_not_vanish_from_a_truth_metric_s_clause(gate, expected):
    done = truths({"on": "t", **gate}, [1.0] * 18, proxies=[1.0] * 18 + [0.0] * 2)
    assert passed(done) is expected
    coverage, other = done.document["gate"]["clauses"]
    assert (coverage["value"], done.document["metrics"]["t"]["scored"]) == (1.0, 18)
    assert done.document["metrics"]["t"]["passes"]["n"] == 20
    if "min_score" in gate:
        assert (other["value"], other["high"]) == (1.0, 1.0)
        assert other["low"] < 0.9
    if expected is None:
        assert done.document["gate"]["reasons"] == [
            "the mean of t is 0.9 to 1, with min_score 0.92 in between (the proxies held back 2 subjects)"
        ]


def test_a_mean_of_0_is_at_most_the_share_that_the_proxies_held_back():
    done = truths({"on": "t", "max_score": 0.2}, [0.0] * 18, proxies=[1.0] * 18 + [0.0] * 2)
    assert passed(done) is True
    assert done.document["gate"]["clauses"][1]["high"] < 0.3


def test_a_truth_metric_that_was_left_out_is_not_covered():
    done = truths({"on": "t", "min_score": 0.5}, [1.0, None], slot={"on_failure": "exclude"})
    assert passed(done) is None
    assert done.document["coverage"] == 1.0
    assert done.document["gate"]["reasons"] == ["t: coverage 0.5 is below min_coverage 0.95 (the default)"]


def test_a_truth_metric_that_never_ran_leaves_its_mean_open():
    done = truths({"on": "t", "min_score": 0.5}, [], proxies=[0.0] * 3)
    assert passed(done) is None
    assert (done.document["gate"]["clauses"][1]["value"], done.document["gate"]["clauses"][1]["low"]) == (None, 0.0)
    assert passed(truths({"on": "t", "min_pass_rate": 0.5}, [], proxies=[0.0] * 3)) is False


# Bounds


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ({"min_score": 0.6}, True),
        ({"min_score": 0.6, "bound": "interval"}, None),
        ({"min_score": 0.4, "bound": "interval"}, True),
        ({"min_score": 0.95, "bound": "interval"}, False),
        ({"max_score": 0.6, "bound": "interval"}, None),
        ({"max_score": 0.95, "bound": "interval"}, True),
        ({"max_score": 0.2, "bound": "interval"}, False),
        ({"min_pass_rate": 0.6}, True),
        ({"min_pass_rate": 0.6, "bound": "interval"}, None),
        ({"min_pass_rate": 0.4, "bound": "interval"}, True),
        ({"min_pass_rate": 0.9, "bound": "interval"}, False),
    ],
)
def test_a_bound_is_the_figure_or_its_whole_interval(gate, expected):
    assert passed(judged(gate, [1.0] * 14 + [0.0] * 6)) is expected  # .7; .494 to .906, Wilson .481 to .855


def test_without_an_interval_a_bound_leaves_the_gate_undecided():
    done = judged({"min_score": 0.1, "bound": "interval"}, [1.0, 0.9], sessions=1)
    assert passed(done) is None
    assert done.document["gate"]["reasons"] == [
        "the 95 % interval of the mean of j is unknown, because it needs two or more sessions: min_score is 0.1"
    ]
    assert passed(judged({"min_pass_rate": 0.1, "bound": "interval"}, [1.0, 0.9], sessions=1)) is None


def test_a_clause_that_failed_fails_the_gate_whatever_another_lacks():
    gate = [{"min_score": 0.8, "bound": "interval"}, {"min_score": 0.9}]
    assert passed(judged(gate, [1.0] * 14 + [0.0] * 6)) is False


# How the run ended


@attrs.frozen
class Closing:
    """A judge that is refused after some replies, which cost nothing."""

    replies: int
    accepts = ()

    def judge(self, subject, children):
        if int(subject.id) >= self.replies:
            raise AccessRefused("404 for m-1")
        return Judgment(1.0)


@pytest.mark.parametrize(("good", "subjects"), [(5, 681), (40, 60)])
@pytest.mark.parametrize("gate", ["", "gate: {min_score: 0.5}\n"])
def test_a_run_that_was_refused_after_good_replies_is_undecided(good, subjects, gate):
    text = f"judges: [j]\nexecutor: {{dicast/async: {{concurrency: 1}}}}\n{gate}"
    done = run_pipeline(text, subjects=rows(subjects), components={"j": Closing(good)})
    assert (done.exit_code, done.document["scored"], done.document["coverage"]) == (3, good, 1.0)
    assert done.document["undecided"] == ["the run was not completed: refused_by_provider"]
    if gate:
        assert done.document["gate"]["passed"] is None
        assert {clause["passed"] for clause in done.document["gate"]["clauses"]} == {None}


def test_a_run_that_was_refused_from_the_first_call_is_a_wrong_request():
    done = run_pipeline("judges: [j]", subjects=rows(60), components={"j": Closing(0)})
    assert (done.exit_code, done.document["gate"]) == (2, None)


FOUND = {"gate": {"passed": True, "reasons": [], "clauses": [{"on": "j", "passed": True}]}, "undecided": []}
NO_GATE = {"gate": None, "undecided": []}


@pytest.mark.parametrize("reason", ["interrupted", "refused_by_provider", "endpoint_unreachable", "ledger_failed"])
def test_a_run_that_did_not_end_in_order_is_undecided(reason):
    document = as_it_ended(FOUND, {"reason": reason})
    assert (document["gate"]["passed"], document["gate"]["clauses"]) == (None, [{"on": "j", "passed": None}])
    assert document["undecided"] == document["gate"]["reasons"] == [f"the run was not completed: {reason}"]
    assert as_it_ended(document, {"reason": reason}) == document
    assert as_it_ended(NO_GATE, {"reason": reason}) == {"gate": None, "undecided": document["undecided"]}


def test_an_early_stop_is_in_order_and_a_pause_where_there_is_no_gate():
    assert as_it_ended(FOUND, {"reason": "early_stop"}) == FOUND
    assert as_it_ended(NO_GATE, {"reason": "paused"}) == NO_GATE
    assert as_it_ended(FOUND, {"reason": "paused"})["gate"]["passed"] is None


def test_before_anything_is_judged_a_gate_on_any_label_is_undecided():
    document = answered(Gate((Clause("j", min_score=0.5),)), Report(), None, Ending(None, {}))
    assert (document["gate"]["passed"], document["undecided"]) == (None, ["nothing was scored"])


# Criteria


@attrs.frozen
class Rating:
    """An extractor that takes a rating from 1 to 5 out of the output, and says whether it is a good one."""

    flag: bool = True
    writes = ("scores.tone", "score_flags.tone")

    def extract(self, record):
        result = int(record["row"]["output"])
        score = None if result == 0 else result
        return {"scores": {"tone": score}, **({"score_flags": {"tone": result >= 3}} if self.flag else {})}


@pytest.mark.parametrize(
    ("gate", "ratings", "expected"),
    [
        ({"min_score": 3.5}, [2, 5, 5], True),
        ({"min_score": 4.5}, [2, 5, 5], False),
        ({"max_score": 4, "bound": "interval"}, [2, 5, 5, 4], None),
        ({"min_pass_rate": 0.6}, [2, 5, 5], True),
        ({"min_pass_rate": 0.7}, [2, 5, 5], False),
        ({"min_score": 3}, [5, 0], None),
        ({"min_score": 3, "min_coverage": 0.5}, [5, 0], True),
    ],
)
def test_a_criterion_of_the_records_may_be_gated(gate, ratings, expected):
    subjects = [Subject("row", str(n), output=str(rating)) for n, rating in enumerate(ratings)]
    text = json.dumps({"extractors": ["rating"], "gate": {"on": "tone", **gate}})
    assert passed(run_pipeline(text, subjects=subjects, components={"rating": Rating()})) is expected


def test_a_criterion_without_flags_has_no_pass_rate():
    text = json.dumps({"extractors": ["rating"], "gate": {"on": "tone", "min_pass_rate": 0.1}})
    done = run_pipeline(text, subjects=[Subject("row", "1", output="5")], components={"rating": Rating(flag=False)})
    assert passed(done) is None
    assert done.document["gate"]["reasons"] == ["no rule states which subjects pass tone"]


# Pass rates


def wilson(rate, n, z=1.959963984540054):
    """The two roots of ``(p - rate)^2 = z^2 p (1 - p) / n``, solved for p."""
    a, b, c = 1 + z * z / n, -(2 * rate + z * z / n), rate * rate
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def counted(pairs, line=0.5):
    passes = Passes()
    answers = [None if value is None else value >= line for _, value in pairs]
    passes.add([session for session, _ in pairs], answers)
    return pass_rate(passes)


@pytest.mark.parametrize(("passes", "n", "low", "high"), [(0, 200, 0, 0.018846), (14, 20, 0.481027, 0.854523), (1, 1, 0.206549, 1)])  # fmt: skip
def test_the_interval_of_subjects_on_their_own_is_wilson_s(passes, n, low, high):
    interval = counted([(None, 1.0)] * passes + [(None, 0.0)] * (n - passes))
    assert (interval["ci_low"], interval["ci_high"]) == pytest.approx((low, high), abs=1e-6)
    assert (interval["n"], interval["passed"], interval["ci_method"]) == (n, passes, "Wilson, 95 %")
    alone = counted([(f"s{k}", float(k < passes)) for k in range(n)])
    assert alone == interval  # a session of one is nothing else


def test_nothing_has_no_pass_rate_and_one_session_no_interval():
    assert counted([]) is None
    interval = counted([("a", 1.0), ("a", 0.0)])
    assert (interval["value"], interval["ci_low"], interval["ci_high"], interval["ci_method"]) == (
        0.5,
        None,
        None,
        None,
    )


def test_sessions_that_agree_count_for_one_each():
    """Four sessions of five, two of them passing whole: the rate varies as that of four subjects, with g/(g-1) for four."""
    interval = counted([(f"s{n % 4}", float(n % 4 < 2)) for n in range(20)])
    assert (interval["ci_low"], interval["ci_high"]) == pytest.approx(wilson(0.5, 3), abs=1e-12)
    interval = counted([(f"s{n % 4}", 1.0) for n in range(20)])
    assert (interval["ci_low"], interval["ci_high"]) == pytest.approx((wilson(1, 4)[0], 1))


PAIRS = st.lists(
    st.tuples(st.none() | st.sampled_from("abcd"), st.none() | st.sampled_from([0.0, 1.0])), min_size=1, max_size=40
)


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(PAIRS)
def test_the_interval_of_a_pass_rate_is_the_formula_s(pairs):
    interval = counted(pairs)
    assert interval["open"] == sum(value is None for _, value in pairs)
    pairs = [pair for pair in pairs if pair[1] is not None]
    if not pairs:
        assert (interval["n"], interval["value"], interval["ci_low"]) == (0, None, None)
        return
    n, hits = len(pairs), sum(value == 1 for _, value in pairs)
    sessions = defaultdict(list)
    for number, (session, value) in enumerate(pairs):
        sessions[number if session is None else session].append(value == 1)
    g, rate, squares = len(sessions), hits / n, sum(len(item) ** 2 for item in sessions.values())
    assert (interval["n"], interval["passed"], interval["value"]) == (n, hits, rate)
    if squares == n:
        effective = n
    elif g < 2:
        assert interval["ci_low"] is None
        return
    elif hits in (0, n):
        effective = n * n / squares
    else:
        residuals = sum((sum(item) - len(item) * rate) ** 2 for item in sessions.values())
        variance = g / (g - 1) * residuals / n**2
        effective = n / max(1, variance / (rate * (1 - rate) / n))
    assert (interval["ci_low"], interval["ci_high"]) == pytest.approx(wilson(rate, effective), abs=1e-9)
    assert 0 <= interval["ci_low"] <= rate <= interval["ci_high"] <= 1


def test_sessions_that_come_again_are_put_together_also_beyond_a_batch():
    pairs = [(f"s{n % (BATCH + 7)}", n % 2 == 1) for n in range(2 * (BATCH + 7))]
    passes = Passes()
    for pair in pairs:
        passes.add(*zip(pair))
    assert max(passes.clusters()) == (2, 1, 0, BATCH + 7)
    assert sum(size * times for size, _, _, times in passes.clusters()) == len(pairs)


def test_money_that_was_spent_makes_a_refused_run_no_wrong_request():
    judge = FakeJudge(
        [Failure("judge_output_invalid", "?", cost=Cost("0.01")), AccessRefused("403")], cost=Cost("0.01")
    )
    text = "judges: [j]\nexecutor: {dicast/async: {concurrency: 1}}\n"
    done = run_pipeline(text, subjects=rows(2), components={"j": judge})
    assert (done.exit_code, done.document["gate"], bool(done.document["undecided"])) == (3, None, True)


def test_a_reason_about_coverage_names_the_clause_and_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a", "reference": "a"}\n{"id": "2", "output": "b"}\n')
    (tmp_path / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match]\n"
        "gate:\n  - {min_coverage: 0.9, min_score: 0}\n  - min_score: 0\n"
    )
    assert dicast.run("p.yaml").gate["reasons"] == [
        "diff/match: coverage 0.5 is below min_coverage 0.9 (clause 1, p.yaml:4)",
        "diff/match: coverage 0.5 is below min_coverage 0.95 (the default of clause 2, p.yaml:5)",
    ]
