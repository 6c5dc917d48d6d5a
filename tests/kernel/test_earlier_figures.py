"""Figures that a run takes from earlier events of its ledger: its rate of audits, and its plan."""

from __future__ import annotations

import asyncio

import pytest

from dicast import ConfigError, Event, Score
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.records.audit_rate import with_audit_rate
from dicast._kernel.records.plans import plan_and_result
from dicast.testing import FakeMetric, MemoryLedger

TEXT = "metrics: {proxy: [p], truth: [t]}\nscoring: {audit: {rate: auto}}"


def using(events, work):
    """Return the result of *work* on a ledger with *events*: their run, type and payload."""

    async def main():
        async with MemoryLedger().open() as ledger:
            ledger.append(
                [
                    Event(f"E{number}", type_, f"2026-03-01T00:00:0{number}.000Z", run_id, payload)
                    for number, (run_id, type_, payload) in enumerate(events)
                ]
            )
            return work(ledger)

    return asyncio.run(main())


def pipeline():
    ready = {"p": FakeMetric(Score(0.5)), "t": FakeMetric(Score(1.0))}
    return load_pipeline(TEXT, needs_source=False, ready=ready)


def run(run_id, rate, fingerprints):
    done = {"labels": {"metrics": {"audit": {"best_rate": rate}}}, "score": None}
    return [(run_id, "run.started", {"fingerprints": fingerprints}), (run_id, "run.completed", done)]


def rate_after(*runs):
    events = [event for listed in runs for event in listed]
    return using(events, lambda ledger: with_audit_rate(pipeline(), ledger, None, 100)).scoring.audit.rate


def test_the_rate_is_that_of_the_newest_audited_run_of_the_same_metrics():
    same = dict(pipeline().fingerprints)
    metric = next(key for key in same if key.startswith("metrics["))
    other = same | {metric: "another version"}
    scoring = {key: value for key, value in same.items() if key.startswith("metrics[")}  # its scoring was another
    older, newer = run("R1", 0.25, same), run("R2", 0.5, scoring)
    assert rate_after(older, newer) == 0.5
    assert rate_after(newer, older) == 0.25
    assert rate_after(older, run("R3", 0.75, other), run("R4", None, same)) == 0.25
    for runs in ([], [run("R3", 0.75, other)], [run("R4", None, same)]):
        with pytest.raises(ConfigError, match="no audited run of these metrics"):
            rate_after(*runs)


DONE = {"score": {"ci_low": 0.25, "ci_high": 0.5}, "cost": {"usd": "0.03", "msat": "0"}, "subjects": 9}


def planned(file, setup, subjects):
    plan = {"subjects": subjects, "cost": {"usd": {"expected": "0.02"}}, "width": {"width": 0.1}}
    return (None, "plan.made", {"file": file, "setup": setup, "plan": plan})


def plan_of(*plans, done=DONE):
    started = {"file": "a.yaml", "setup": {"metrics[p]": "1"}}
    return using(plans, lambda ledger: plan_and_result(ledger, started, done)).get("plan")


def test_a_run_has_the_newest_plan_of_its_file_and_setup():
    setup = {"metrics[p]": "1"}
    plans = [planned("a.yaml", setup, 1), planned("a.yaml", setup, 2)]
    others = [planned("b.yaml", setup, 3), planned("a.yaml", {"metrics[p]": "2"}, 4)]
    plan = plan_of(*plans, *others)
    assert plan["subjects"] == {"planned": 2, "judged": 9}
    assert plan["cost"] == {"usd": {"expected": "0.02", "spent": "0.03"}}
    assert plan["width"] == {"planned": 0.1, "reached": 0.25}
    assert plan_of(*plans, done={**DONE, "score": {"ci_low": None}})["width"] == {"planned": 0.1, "reached": None}
    assert plan_of(*others) is None
