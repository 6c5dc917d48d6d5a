"""``on_budget: skip_subject``: a subject is judged only where all its metrics fit into the budget together."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Score, metric
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample

SKIP = {"on_budget": "skip_subject"}


def costly(amount, unit="msat", *, spent=None, value=0.5):
    @metric(tier="truth", cost=f"{amount} {unit}", name="costly")
    async def cost(subject):
        return Score(value, cost=Cost(str(amount if spent is None else spent), unit))

    return cost()


def judge(truths, budget, *, proxies=(1,), subjects=1, scoring=SKIP, **sections):
    components = {f"p{n}": FakeMetric(Score(value)) for n, value in enumerate(proxies)}
    components |= {f"t{n}": item for n, item in enumerate(truths)}
    metrics = {tier: [{n: {"as": n}} for n in components if n[0] == tier[0]] for tier in ("proxy", "truth")}
    text = json.dumps({"metrics": metrics, "scoring": scoring, "budget": budget, **sections})
    return run_pipeline(text, subjects=[sample("x", id=str(n)) for n in range(subjects)], components=components)


def counts(done):
    return {name: done.document[name] for name in ("subjects", "scored", "failed", "skipped", "unaffordable")}


def test_a_subject_whose_metrics_do_not_fit_is_skipped():
    """003: budget 100, truth estimate 600: tasks_skipped 1."""
    done = judge([costly(600)], {"run": "100 msat"})
    assert counts(done) == {"subjects": 1, "scored": 0, "failed": 0, "skipped": 1, "unaffordable": 1}
    assert (done.document["coverage"], done.document["score"]["mean"], done.exit_code) == (0.0, None, 5)
    assert (done.document["throttled"], done.document["failures"]) == ({"run_cap": 1}, {})
    assert done.document["cost"]["msat"] == "0"


def test_by_default_its_proxies_stand():
    done = judge([costly(600)], {"run": "100 msat"}, scoring={})
    assert counts(done) == {"subjects": 1, "scored": 1, "failed": 0, "skipped": 0, "unaffordable": 0}
    assert done.verdicts[0].tier == "proxy"


def test_a_skipped_subject_is_not_asked_about_at_all():
    proxy = FakeMetric(Score(1.0))
    text = json.dumps({"metrics": {"proxy": ["p"], "truth": ["t"]}, "scoring": SKIP, "budget": {"run": "1 msat"}})
    done = run_pipeline(text, subjects=[sample("x")], components={"p": proxy, "t": costly(2)})
    assert proxy.asked == []
    (failed,) = done.of("eval.failed")
    assert (failed.payload["failure_mode"], failed.payload["skipped"]) == ("throttled_no_heuristic", "run_cap")
    assert "its metrics may cost up to 2 msat" in failed.payload["error_message"]
    assert done.document["failed_subjects"] == []


def test_the_sum_of_all_estimates_has_to_fit():
    assert counts(judge([costly(60), costly(50)], {"run": "100 msat"}))["skipped"] == 1
    assert counts(judge([costly(60), costly(40)], {"run": "100 msat"}))["scored"] == 1


def test_skipping_goes_on_until_there_is_room_for_what_is_left():
    done = judge([costly(600)], {"run": "1500 msat"}, subjects=5)
    assert counts(done) == {"subjects": 5, "scored": 2, "failed": 0, "skipped": 3, "unaffordable": 3}
    assert (done.document["cost"]["msat"], done.document["score"]["mean"], done.exit_code) == ("1200", 0.75, 3)
    assert [verdict.subject_id for verdict in done.verdicts] == ["0", "1"]


def test_what_was_not_spent_is_there_for_the_next():
    done = judge([costly(600, spent=100)], {"run": "700 msat"}, subjects=5)
    assert counts(done) == {"subjects": 5, "scored": 2, "failed": 0, "skipped": 3, "unaffordable": 3}
    assert done.document["cost"]["msat"] == "200"


def test_a_subject_that_its_proxies_reject_gives_its_room_back():
    done = judge([costly(600)], {"run": "600 msat"}, proxies=(0.1,), subjects=20)
    assert counts(done)["scored"] == 20
    assert done.document["cost"]["msat"] == "0"
    types = Counter(event.type for event in done.events)
    assert types["spend.reserved"] == types["spend.released"] == 20


def test_two_units_have_to_fit_each():
    truths = [costly(5, "msat"), costly("0.5", "usd")]
    assert counts(judge(truths, {"run": ["5 msat", "0.5 usd"], "day": "9 usd"}))["scored"] == 1
    assert counts(judge(truths, {"run": ["5 msat", "0.4 usd"], "day": "9 usd"}))["skipped"] == 1
    done = judge(truths, {"run": ["4 msat", "0.5 usd"], "day": "9 usd"})
    assert (counts(done)["skipped"], done.document["cost"]) == (1, {"usd": "0", "msat": "0"})


def test_free_metrics_need_no_room():
    done = judge([FakeMetric(Score(0.5))], {"run": ["0 msat", "0 usd"]}, subjects=3)
    assert (counts(done)["scored"], done.exit_code) == (3, 0)


def test_later_rollouts_leave_out_the_metric_that_does_not_fit():
    done = judge([costly(600)], {"run": "600 msat"}, scoring={**SKIP, "rollouts": 2})
    (verdict,) = done.verdicts
    assert (verdict.tier, verdict.truth_reason, verdict.skipped) == (
        "proxy",
        "gate",
        ({"metric": "t0", "reason": "run_cap"},),
    )
    assert verdict.signals["rollouts"] == [0.75, 1.0]


def test_a_failed_call_is_paid_for_and_gives_back_the_rest():
    @metric(tier="truth", cost="50 msat")
    async def failing(subject):
        return Failure("refused", "no", cost=Cost("5", "msat"))

    done = judge([failing(), costly(50)], {"run": "100 msat"})
    assert (done.document["failed"], done.document["cost"]["msat"]) == (1, "55")


def test_other_judges_make_their_verdicts_all_the_same():
    text = json.dumps(
        {"metrics": {"truth": [{"t": {"as": "t"}}]}, "judges": ["j"], "scoring": SKIP, "budget": {"run": "1 msat"}}
    )
    done = run_pipeline(text, subjects=[sample("x")], components={"t": costly(2), "j": FakeJudge(Judgment(0.4))})
    assert [verdict.judge for verdict in done.verdicts] == ["j"]
    assert counts(done)["unaffordable"] == 1


def test_a_cap_of_the_session_skips_that_sessions_subjects_alone():
    text = json.dumps({"metrics": {"truth": [{"t": {"as": "t"}}]}, "scoring": SKIP, "budget": {"session": "5 msat"}})
    subjects = [sample("x", id=str(n), session_id=f"s{n % 2}") for n in range(4)]
    done = run_pipeline(text, subjects=subjects, components={"t": costly(5)})
    assert [verdict.subject_id for verdict in done.verdicts] == ["0", "1"]
    assert done.document["throttled"] == {"session_cap": 2}


def test_another_word_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'skip_subject'"):
        judge([costly(1)], {}, scoring={"on_budget": "skip_subjects"})


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=3),
    st.integers(0, 3000),
    st.integers(1, 12),
    st.sampled_from([1, 3, 32]),
)
def test_as_many_are_judged_as_fit_whatever_the_concurrency(costs, cap, subjects, concurrency):
    """A subject is judged completely or not at all, and never over the cap."""
    executor = {"dicast/async": {"concurrency": concurrency}}
    done = judge([costly(cost) for cost in costs], {"run": f"{cap} msat"}, subjects=subjects, executor=executor)
    full = min(subjects, cap // sum(costs))
    assert (counts(done)["scored"], counts(done)["unaffordable"]) == (full, subjects - full)
    assert done.document["cost"]["msat"] == str(full * sum(costs))
    assert all(verdict.tier == "truth" and not verdict.skipped for verdict in done.verdicts)
    reservation = Counter(event.payload["reservation_id"] for event in done.of("spend.reserved"))
    closed = Counter(e.payload["reservation_id"] for kind in ("spend.settled", "spend.released") for e in done.of(kind))
    assert reservation == closed


def test_worker_processes_change_nothing():
    executor = {"dicast/processes": {"workers": 2}}
    text = json.dumps(
        {
            "metrics": ["proxy/format", {"t": {"as": "t"}}],
            "scoring": SKIP,
            "budget": {"run": "25 msat"},
            "executor": executor,
        }
    )
    done = run_pipeline(text, subjects=[sample("x", id=str(n)) for n in range(6)], components={"t": costly(10)})
    assert counts(done) == {"subjects": 6, "scored": 2, "failed": 0, "skipped": 4, "unaffordable": 4}
