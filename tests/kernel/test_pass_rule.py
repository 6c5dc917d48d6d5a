"""When a subject passes: one rule for the document, the gate and the outcomes that reports and JUnit show."""

from __future__ import annotations

import json
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Failure, Judgment, Score, Subject
from dicast.reporting import OutcomeReader, PassRule
from dicast.testing import FakeJudge, FakeMetric, run_pipeline

LINE, THRESHOLD = 0.6, 0.5


def rows(count, sessions=None):
    return [
        Subject("row", str(n), output="x", session_id=None if sessions is None else f"s{n % sessions}")
        for n in range(count)
    ]


def judged(proxies, truths, *, options=None, **sections):
    """A run with one proxy ``p`` and one truth metric ``t`` that give these values; None is a failure."""

    def replies(values):
        return [Failure("refused", "no") if value is None else Score(value) for value in values]

    options = {"p": {}, "t": {}} | (options or {})
    metrics = {tier: [{name: options[name]}] for tier, name in (("proxy", "p"), ("truth", "t"))}
    reached = [truth for proxy, truth in zip(proxies, truths, strict=True) if proxy is not None and proxy >= THRESHOLD]
    components = {"p": FakeMetric(replies(proxies)), "t": FakeMetric(replies(reached) or Score(1.0))}
    text = json.dumps({"metrics": metrics, **sections})
    return run_pipeline(text, subjects=rows(len(proxies)), components=components)


def answers(done):
    """Return for each subject if it passes all metrics together, as in reports and JUnit."""
    reader = OutcomeReader()
    return {subject.id: subject.outcomes["metrics"].passed for subject in (*reader.take(done.events), *reader.end())}


def passes(done, label="metrics"):
    """How many pass, how many have a verdict, and how many are open."""
    document = (done.document["labels"].get(label) or done.document["metrics"][label])["passes"]
    return document["passed"], document["n"], document["open"]


def test_one_broken_check_of_two_fails_every_row():
    done = judged([1.0] * 4, [0.0] * 4, gate={"min_pass_rate": 0.5})
    assert done.document["score"]["mean"] == 0.5
    assert (passes(done), done.exit_code) == ((0, 4, 0), 1)
    assert answers(done) == dict.fromkeys("0123", False)


def test_a_number_compares_the_combined_score():
    done = judged([1.0] * 4, [0.0] * 4, scoring={"pass_at": 0.5})
    assert (passes(done), answers(done)) == ((4, 4, 0), dict.fromkeys("0123", True))


def test_each_metric_has_its_own_line():
    options = {"p": {"pass_at": 0.9}, "t": {"pass_at": 0.2}}
    assert passes(judged([0.95, 0.85], [0.3, 0.3], options=options)) == (1, 2, 0)


def test_a_metric_without_a_weight_decides_nothing():
    assert passes(judged([1.0, 1.0], [0.0, 0.0], options={"t": {"weight": 0}})) == (2, 2, 0)


def test_held_back_subjects_have_not_passed():
    done = judged([0.4, 1.0], [1.0, 1.0], options={"p": {"pass_at": 0.1}})
    assert (passes(done), passes(done, "t")) == ((1, 2, 0), (1, 2, 0))
    assert answers(done) == {"0": False, "1": True}


def test_an_excluded_metric_leaves_the_subject_open():
    done = judged([1.0, 1.0], [None, 1.0], options={"t": {"on_failure": "exclude"}})
    assert (passes(done), passes(done, "t"), passes(done, "p")) == ((1, 1, 1), (1, 1, 1), (2, 2, 0))
    assert answers(done) == {"0": None, "1": True}


def test_a_failing_metric_decides_over_an_excluded_one():
    options = {"p": {"pass_at": 0.9}, "t": {"on_failure": "exclude"}}
    gate = {"min_pass_rate": 0.9, "on": "metrics"}
    done = judged([0.6] * 3 + [1.0] * 7, [None] * 3 + [1.0] * 7, options=options, gate=gate)
    assert (passes(done), passes(done, "t"), done.exit_code) == ((7, 10, 0), (7, 7, 3), 1)
    assert answers(done) == {str(n): n >= 3 for n in range(10)}


@pytest.mark.parametrize(("failing", "code"), [(1, 3), (2, 1)])
def test_the_gate_fails_as_soon_as_the_failing_subjects_alone_exceed_its_rate(failing, code):
    proxies, truths = [0.6] * failing + [1.0] * (10 - failing), [None] * 10
    options = {"p": {"pass_at": 0.9}, "t": {"on_failure": "exclude"}}
    done = judged(proxies, truths, options=options, gate={"min_pass_rate": 0.85, "bound": "point"})
    assert (passes(done), done.exit_code) == ((0, failing, 10 - failing), code)


def test_under_combine_truth_a_failing_truth_metric_decides_over_an_excluded_one():
    text = {"metrics": {"truth": ["a", {"b": {"on_failure": "exclude"}}]}, "scoring": {"combine": "truth"}}
    components = {"a": FakeMetric([Score(0.2), Score(0.8)]), "b": FakeMetric(Failure("refused", "no"))}
    done = run_pipeline(json.dumps(text), subjects=rows(2), components=components)
    assert (passes(done), answers(done)) == ((0, 1, 1), {"0": False, "1": None})


def test_a_held_back_subject_is_not_open_though_its_audit_failed():
    options = {"t": {"on_failure": "exclude"}}
    text = {"metrics": {"proxy": ["p"], "truth": [{"t": options["t"]}]}, "scoring": {"audit": {"rate": 1}}}
    components = {"p": FakeMetric(Score(0.4)), "t": FakeMetric(Failure("refused", "no"))}
    done = run_pipeline(json.dumps(text), subjects=rows(2), components=components)
    assert passes(done) == (0, 2, 0)


def test_under_combine_truth_the_proxies_part_is_the_gate():
    options = {"p": {"pass_at": 0.99}}
    done = judged([0.6, 0.6, 0.4], [1.0, 0.2, 1.0], options=options, scoring={"combine": "truth"})
    assert (passes(done), answers(done)) == ((1, 3, 0), {"0": True, "1": False, "2": False})


def test_values_are_aggregated_over_rollouts_before_they_are_compared():
    truth = FakeMetric([Score(value) for value in (0.0, 0.9, 0.9)])
    text = "metrics: {truth: [t]}\nscoring: {rollouts: 3, aggregation: median}\n"
    assert passes(run_pipeline(text, subjects=rows(1), components={"t": truth})) == (1, 1, 0)


def test_a_raw_metric_has_no_rule_without_its_line():
    assert PassRule({"m": None, "metrics": None}).states("metrics") is False
    assert PassRule({"m": None, "metrics": None}, every=True).states("metrics") is True


VALUES = st.sampled_from([0.0, 0.3, 0.5, 0.59, 0.6, 0.8, 1.0])
ROLLOUTS = st.lists(st.tuples(VALUES, VALUES), min_size=3, max_size=3)


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.lists(ROLLOUTS, min_size=1, max_size=4), st.sampled_from(["all", "truth"]))
def test_document_and_outcomes_agree_with_the_rule_in_words(subjects, combine):
    requests = [roll for rolls in subjects for roll in rolls]
    components = {
        "p": FakeMetric([Score(proxy) for proxy, _ in requests]),
        "t": FakeMetric([Score(truth) for proxy, truth in requests if proxy >= THRESHOLD] or Score(1.0)),
    }
    text = {
        "metrics": {"proxy": [{"p": {"pass_at": LINE}}], "truth": [{"t": {"pass_at": LINE}}]},
        "scoring": {"rollouts": 3, "aggregation": "median", "combine": combine},
        "executor": {"dicast/async": {"concurrency": 1}},
    }
    done = run_pipeline(json.dumps(text), subjects=rows(len(subjects)), components=components)
    expected = {}
    for number, rolls in enumerate(subjects):
        proxy, truths = median(p for p, _ in rolls), [t for p, t in rolls if p >= THRESHOLD]
        least = THRESHOLD if combine == "truth" else LINE
        expected[str(number)] = bool(truths) and proxy >= least and median(truths) >= LINE
    assert answers(done) == expected
    assert passes(done) == (sum(expected.values()), len(subjects), 0)


# Failures in the gate


@pytest.mark.parametrize(
    ("line", "values", "answer"),
    [
        (0.9, [1.0] * 24 + [None], True),  # 24 of 25, should the failure not have passed
        (0.97, [1.0] * 24 + [None], None),
        (1.0, [1.0] * 24 + [None], None),
        (1.0, [1.0] * 23 + [0.0, None], False),  # 24 of 25 at best
        (0.96, [1.0] * 23 + [0.0, None], None),
        (0.5, [0.0] * 20 + [None], False),
    ],
)
def test_a_pass_rate_holds_or_fails_whatever_the_failures_would_have_been(line, values, answer):
    replies = [Failure("refused", "no") if value is None else Judgment(value) for value in values]
    text = f"judges: [j]\ngate: {{min_pass_rate: {line}}}\n"
    done = run_pipeline(text, subjects=rows(len(values)), components={"j": FakeJudge(replies)})
    assert done.document["gate"]["passed"] is answer
    assert done.exit_code == {True: 0, False: 1, None: 3}[answer]
    assert done.document["score"]["passes"]["open"] == 1
    known_values = [value for value in values if value is not None]
    assert done.document["score"]["pass_rate"] == sum(known_values) / len(known_values)
    if answer is not True:
        assert "(1 of " in done.document["gate"]["reasons"][0]


def test_the_interval_of_a_pass_rate_spans_what_failures_may_have_been():
    values = [1.0] * 95 + [None] * 5
    replies = [Failure("refused", "no") if value is None else Judgment(value) for value in values]
    text = "judges: [j]\ngate: {min_pass_rate: 0.85, bound: interval}\n"
    done = run_pipeline(text, subjects=rows(100), components={"j": FakeJudge(replies)})
    (_, rate) = done.document["gate"]["clauses"]
    none = run_pipeline(text, subjects=rows(100), components={"j": FakeJudge([Judgment(v or 0.0) for v in values])})
    every = run_pipeline(text, subjects=rows(100), components={"j": FakeJudge(Judgment(1.0))})
    assert rate["low"] == none.document["score"]["passes"]["ci_low"]
    assert rate["high"] == every.document["score"]["passes"]["ci_high"] == 1.0
    assert rate["passed"] is True


# Two runs


def test_an_older_run_s_verdicts_are_counted_by_the_newer_s_rule():
    components = {"good": FakeMetric(Score(1.0)), "bad": FakeMetric(Score(0.0))}

    def recorded(**scoring):
        text = json.dumps({"metrics": ["good", "bad"], "scoring": scoring})
        done = run_pipeline(text, subjects=rows(1), components=components)
        started, verdict = done.of("run.started"), done.of("eval.completed")
        return PassRule.of(started[0].payload), verdict[0].payload

    (older, verdict), (newer, _) = recorded(pass_at=0.5), recorded()
    assert (older.every, newer.every) == (False, True)
    assert (older.verdict("metrics", verdict), newer.over(older).verdict("metrics", verdict)) == (True, False)


def test_a_run_without_a_rule_compares_the_combined_score():
    rule = PassRule.of({"metrics": ["m"], "pass_at": {"m": 0.9, "metrics": 0.5}})
    verdict = {"subject_kind": "row", "score": 0.6, "signals": {"metrics": {"m": 0.6}}, "skipped": []}
    assert (rule.verdict("metrics", verdict), rule.metric("m", verdict)) == (True, False)


@given(st.sampled_from(["all", 0.5]), st.sampled_from(["all", "truth"]))
def test_a_rule_is_read_back_from_what_it_states(pass_at, combine):
    done = judged([1.0], [1.0], scoring={"pass_at": pass_at, "combine": combine})
    rule = PassRule.of(done.of("run.started")[0].payload)
    assert PassRule.of(json.loads(json.dumps(rule.stated()))) == rule
