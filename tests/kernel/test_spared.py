"""Runs of truth metrics prevented by the gate: their number for each metric, and their estimated cost."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Cost, Failure, Score
from dicast.testing import FakeMetric, run_pipeline, sample


@attrs.frozen
class Priced:
    """A truth metric whose estimate is about its subject: its *costs* by the subject's id."""

    tier = "truth"
    costs: dict = attrs.field(eq=False)

    def estimate(self, subject):
        return self.costs[subject.id]

    def score(self, subject):
        return Score(1.0)


@attrs.frozen
class Scripted:
    """A proxy that gives a subject's answers one after the other."""

    tier = "proxy"
    answers: dict = attrs.field(eq=False)

    def score(self, subject):
        return self.answers[subject.id].pop(0)


@attrs.frozen
class Unpriced:
    """A truth metric whose estimate is of no use."""

    tier = "truth"

    def estimate(self, subject):
        raise LookupError("no price list")

    def score(self, subject):
        return Score(1.0)


def run(answers, truths, *, options=None, **scoring):
    """Judge a subject for each list of *answers*, the proxy's values of the rollouts, with *truths* behind the gate."""
    proxy = Scripted(
        {str(n): [Score(a) if isinstance(a, float) else a for a in answer] for n, answer in enumerate(answers)}
    )
    metrics = {"proxy": [{"p": {"as": "p"}}], "truth": [{name: {"as": name, **(options or {})}} for name in truths]}
    return run_pipeline(
        json.dumps({"metrics": metrics, "scoring": scoring, "budget": {"session": "1 usd", "day": "9 usd"}}),
        subjects=[sample("x", id=str(n)) for n in range(len(answers))],
        components={"p": proxy, **truths},
    )


def told(done, label="t"):
    document = done.document["metrics"][label]
    return document["spared"], document["saved"]


def test_what_a_spared_run_would_have_cost_is_saved():
    costs = {"0": Cost("0.01"), "1": Cost("0.02"), "2": Cost("0.04")}
    done = run([[0.2], [0.9], [0.0]], {"t": Priced(costs)})
    assert told(done) == (2, {"usd": "0.05", "msat": "0"})
    assert [verdict.spared for verdict in done.verdicts] == [
        ({"metric": "t", "runs": 1, "amount": "0.01", "unit": "usd"},),
        (),
        ({"metric": "t", "runs": 1, "amount": "0.04", "unit": "usd"},),
    ]


def test_units_are_not_added_to_each_other():
    done = run([[0.0], [0.0]], {"t": Priced({"0": Cost("0.01"), "1": Cost(500, "msat")})})
    assert told(done) == (2, {"usd": "0.01", "msat": "500"})


def test_an_unknown_price_is_saved_as_unknown():
    done = run([[0.0], [0.0]], {"t": Priced({"0": Cost("0.01"), "1": Cost.unknown()}), "u": Unpriced()})
    assert told(done, "t") == told(done, "u") == (2, {"usd": None, "msat": "0"})


def test_a_free_metric_is_spared_for_nothing():
    assert told(run([[0.0], [0.9]], {"t": FakeMetric(Score(1.0))})) == (1, {"usd": "0", "msat": "0"})


def test_each_rollout_below_the_gate_is_a_run_spared():
    done = run([[0.0, 0.9, 0.0], [0.9, 0.9, 0.9]], {"t": Priced({"0": Cost("0.01"), "1": Cost("0.01")})}, rollouts=3)
    assert (done.verdicts[0].tier, done.verdicts[0].truth_reason) == ("proxy", "gate")
    assert told(done) == (2, {"usd": "0.02", "msat": "0"})


def test_what_is_audited_is_not_spared():
    done = run([[0.0], [0.0]], {"t": Priced({"0": Cost("0.01"), "1": Cost("0.01")})}, audit={"rate": 1})
    assert (done.document["score"]["by_tier"]["proxy"], told(done)[0]) == (2, 0)


def test_what_the_budget_left_no_room_for_is_not_spared_by_the_gate():
    done = run([[0.9]], {"t": Priced({"0": Cost(99)})})
    assert (done.document["metrics"]["t"]["skipped"], told(done)[0]) == (1, 0)


def test_a_metric_that_failed_and_was_excluded_is_not_spared():
    truth = FakeMetric(Failure("refused", "no"))
    done = run([[0.9]], {"t": truth}, options={"on_failure": "exclude"})
    assert (done.document["metrics"]["t"]["skipped"], told(done)[0]) == (1, 0)


def test_a_subject_that_failed_has_not_been_spared_anything():
    done = run([[Failure("refused", "no")]], {"t": Priced({"0": Cost("0.01")})})
    assert (done.document["failed"], told(done)[0]) == (1, 0)


def test_a_metric_of_another_kind_of_subject_is_not_spared():
    assert told(run([[0.0]], {"t": Priced({"0": Cost("0.01")})}, options={"on": ["turn"]}))[0] == 0


@pytest.mark.slow
@settings(max_examples=3 * settings.default.max_examples // 5)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from([0.0, 0.4, 0.5, 1.0]), min_size=2, max_size=2), st.integers(0, 30)), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.5, 1.0]),
)  # fmt: skip
def test_asked_and_spared_are_all_runs(rows, rate):
    costs = {str(n): Cost(Decimal(amount) / 1000) for n, (_, amount) in enumerate(rows)}
    done = run([answers for answers, _ in rows], {"t": Priced(costs)}, rollouts=2, audit={"rate": rate})
    requests = Counter(
        verdict.subject_id for verdict in done.verdicts for one in verdict.scores if one["metric"] == "t"
    )
    spared = {str(n): 2 - requests[str(n)] for n in range(len(rows))}
    count, saved = told(done)
    assert count == sum(spared.values())
    assert Decimal(saved["usd"]) == sum(costs[subject].amount * runs for subject, runs in spared.items())
