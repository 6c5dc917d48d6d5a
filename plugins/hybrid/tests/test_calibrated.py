"""A cascade with a calibration that is written by hand: decisions, audits, and the end of the calibration."""

from __future__ import annotations

import math
from hashlib import sha256

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Subject, TraceEvent
from dicast.testing import FakeJudge, MemoryLedger, run_pipeline
from dicast_hybrid.audit import Audit, Watch, ln_above

TEXT = "judges: [{hybrid/cascade: {as: both, stages: [cheap, costly], calibration: calibration.json%s}}]\n"
SURE, UNSURE = Judgment(1.0, 0.9, "llm", "m-1", Cost("0.001")), Judgment(1.0, 0.5, "llm", "m-1")
RIGHT, WRONG = Judgment(1.0, 1.0, "llm", "m-2", Cost("0.01")), Judgment(0.0, 1.0, "llm", "m-2")


def rows(count, **parts):
    return [Subject("row", f"r{number}", "?", "!", **parts) for number in range(count)]


def fingerprint_of(judge):
    """Return the kernel's description of the first stage, which is recorded when a run starts."""
    run_ = run_pipeline(
        "judges: [{hybrid/cascade: {as: both, stages: [cheap, costly]}}]",
        components={"cheap": judge, "costly": FakeJudge(RIGHT)},
        subjects=rows(1),
    )
    return run_.of("run.started")[0].payload["inside"]["both.stages[0]"]


def answered(config, model):
    return sha256(f"{config}\n{model}".encode()).hexdigest()


@pytest.fixture
def calibration(tmp_path, monkeypatch):
    """Writes the calibration of a cheap judge."""
    monkeypatch.chdir(tmp_path)

    def write(cheap, *, threshold=0.8, **stage):
        config = fingerprint_of(cheap)
        of = {"component": "cheap", "version": "0", "options": {}, "fingerprint": config, "model": "m-1"}
        plain = {"label": "both.stages[0]", "fingerprint": answered(config, "m-1"), "of": of, "signal": "confidence"}
        plain |= {"model": None, "threshold": threshold, "audit_risk": 0.1, **stage}
        calibration_ = {
            "version": 1,
            "target": 0.9,
            "alpha": 0.1,
            "agree": "pass",
            "window": None,
            "pass_at": 0.5,
            "stages": [plain],
        }
        calibration_["digest"] = sha256(orjson.dumps(calibration_, option=orjson.OPT_SORT_KEYS)).hexdigest()
        (tmp_path / "calibration.json").write_bytes(orjson.dumps(calibration_))

    return write


def run(cheap, costly, subjects, *, audit=""):
    return run_pipeline(TEXT % audit, components={"cheap": cheap, "costly": costly}, subjects=subjects)


def test_kept_verdict_is_calibrated_and_nobody_else_is_asked(calibration):
    calibration(FakeJudge(SURE))
    costly = FakeJudge(RIGHT)
    (verdict,) = run(FakeJudge(SURE), costly, rows(1)).verdicts
    assert (verdict.calibrated, verdict.judge_kind, verdict.score, len(costly.asked)) == (True, "llm", 1.0, 0)


def test_verdict_below_the_threshold_escalates_and_is_not_calibrated(calibration):
    calibration(FakeJudge(UNSURE))
    (verdict,) = run(FakeJudge(UNSURE), FakeJudge(WRONG), rows(1)).verdicts
    assert (verdict.calibrated, verdict.judge_kind, verdict.score) == (False, "hybrid", 0.0)


def test_model_of_another_name_ends_the_calibration_from_there_on(calibration):
    renamed = attrs.evolve(SURE, judge_model="m-1-turbo")
    replies = [SURE, renamed, SURE]
    calibration(FakeJudge(replies))
    run_ = run(FakeJudge(replies), FakeJudge(RIGHT), rows(3))
    assert [verdict.calibrated for verdict in run_.verdicts] == [True, False, False]
    assert run_.verdicts[2].signals["calibration"]["reasons"] == ["fingerprint"]


def test_other_judge_is_refused_before_anybody_is_asked(calibration):
    calibration(FakeJudge(SURE))
    other = FakeJudge(UNSURE)
    with pytest.raises(ConfigError, match=r"both.stages\[0\] is not the calibrated judge"):
        run(other, FakeJudge(RIGHT), rows(1))
    assert len(other.asked) == 0


def test_audit_without_a_known_risk_is_refused(calibration):
    calibration(FakeJudge(SURE), audit_risk=None)
    with pytest.raises(ConfigError, match="audit_risk"):
        run(FakeJudge(SURE), FakeJudge(RIGHT), rows(1), audit=", audit: {rate: 1}")


def test_audits_are_paid_for_and_do_not_change_the_verdict(calibration):
    calibration(FakeJudge(SURE))
    (verdict,) = run(FakeJudge(SURE), FakeJudge(WRONG), rows(1), audit=", audit: {rate: 1}").verdicts
    assert (verdict.score, verdict.calibrated) == (1.0, True)
    assert verdict.signals["audit"] == {
        "stage": 1,
        "propensity": 1.0,
        "score": 0.0,
        "confidence": 1.0,
        "judge_model": "m-2",
        "loss": True,
    }


def test_audit_that_fails_counts_for_nothing(calibration):
    calibration(FakeJudge(SURE))
    run_ = run(FakeJudge(SURE), FakeJudge(Failure("timeout", "late")), rows(3), audit=", audit: {rate: 1}")
    assert {verdict.signals["audit"]["failure"] for verdict in run_.verdicts} == {"timeout"}
    assert run_.of("calibration.audited") == []


def test_one_audit_a_session_enters(calibration):
    calibration(FakeJudge(SURE))
    run_ = run(FakeJudge(SURE), FakeJudge(RIGHT), rows(5, session_id="s"), audit=", audit: {rate: 1}")
    assert len(run_.of("calibration.audited")) == 1


def test_disagreement_revokes_and_everything_escalates_then(calibration, caplog):
    calibration(FakeJudge(SURE))
    run_ = run(FakeJudge(SURE), FakeJudge(WRONG), rows(20), audit=", audit: {rate: 1}")
    (revoked,) = run_.of("calibration.revoked")
    n = revoked.payload["n"]
    assert revoked.payload["losses"] == n < 10
    assert [verdict.calibrated for verdict in run_.verdicts] == [True] * n + [False] * (20 - n)
    assert run_.verdicts[-1].signals["calibration"]["reasons"] == ["revoked"]
    assert caplog.text.count("has ended (audits disagreed too often): every subject goes to the next stage") == 1


def test_losses_of_earlier_runs_count_for_their_calibration_alone(calibration):
    shared = MemoryLedger()

    def judged(subjects, ledger=shared):
        components = {"cheap": FakeJudge(SURE), "costly": FakeJudge(WRONG), "events": ledger}
        return run_pipeline(TEXT % ", audit: {rate: 1}" + "ledger: events\n", components=components, subjects=subjects)

    calibration(FakeJudge(SURE))
    (revoked,) = judged(rows(20), MemoryLedger()).of("calibration.revoked")
    n = revoked.payload["n"]
    assert judged(rows(n - 1)).of("calibration.revoked") == []
    (later,) = judged(rows(n)[-1:]).of("calibration.revoked")
    assert (later.payload["n"], later.payload["losses"], later.payload["e_value"]) == (n, n, revoked.payload["e_value"])
    assert [verdict.calibrated for verdict in judged(rows(2)).verdicts] == [False, False]
    calibration(FakeJudge(SURE), threshold=0.85)
    other = judged([Subject("row", f"other {number}", "?", "!") for number in range(n - 1)])
    assert {verdict.calibrated for verdict in other.verdicts} == {True}


def test_a_thumb_keeps_the_first_verdict_without_a_calibration(calibration):
    calibration(FakeJudge(UNSURE))
    thumb = TraceEvent("feedback.explicit", {"rating": "thumbs_up", "scope": "turn"})
    turn = Subject("turn", "t", "?", "!", events=(thumb,))
    (verdict,) = run(FakeJudge(UNSURE), FakeJudge(RIGHT), [turn]).verdicts
    assert (verdict.calibrated, verdict.signals["escalation_skipped"]) == (False, "explicit_feedback")


def test_model_of_signals_decides_by_its_probability(calibration):
    model = {
        "features": ["confidence", "mood"],
        "means": [0.5, 0.0],
        "scales": [1.0, 1.0],
        "weights": [0.0, 4.0],
        "intercept": 0.0,
    }
    replies = [attrs.evolve(SURE, signals=signals) for signals in ({"mood": 1}, {"mood": -1}, {})]
    calibration(FakeJudge(replies), model=model, threshold=0.9)
    run_ = run(FakeJudge(replies), FakeJudge(RIGHT), rows(3))
    assert [verdict.calibrated for verdict in run_.verdicts] == [True, False, False]
    assert run_.verdicts[0].signals["calibration"]["value"] == pytest.approx(1 / (1 + math.exp(-4)))
    assert run_.verdicts[2].signals["calibration"]["reasons"] == ["signal"]


def test_ask_all_asks_every_stage_and_lists_what_each_said():
    text = "judges: [{hybrid/cascade: {stages: [cheap, costly], ask_all: true}}]\n"
    (verdict,) = run_pipeline(
        text, components={"cheap": FakeJudge(SURE), "costly": FakeJudge(WRONG)}, subjects=rows(1)
    ).verdicts
    assert verdict.score == 0.0
    assert [stage["score"] for stage in verdict.signals["stages"]] == [1.0, 0.0]


# Arithmetic


def brute(losses, n, rate):
    """The mean likelihood ratio over the rates above *rate*, by the trapezoid rule."""
    steps = 100_000
    width = (1 - rate) / steps
    at = [rate + width * number for number in range(steps + 1)]
    ratio = [(p / rate) ** losses * ((1 - p) / (1 - rate)) ** (n - losses) for p in at]
    return math.log((sum(ratio) - (ratio[0] + ratio[-1]) / 2) * width / (1 - rate))


@pytest.mark.parametrize(("losses", "n", "rate"), [(0, 5, 0.1), (3, 10, 0.1), (7, 20, 0.2), (25, 60, 0.3)])
def test_evidence_is_the_mean_likelihood_ratio_over_higher_rates(losses, n, rate):
    assert ln_above(losses, n, rate) == pytest.approx(brute(losses, n, rate), abs=1e-6)


def test_published_evidence():
    assert ln_above(100, 500, 0.1) == pytest.approx(19.201085, abs=5e-7)


@given(st.integers(0, 40), st.floats(0.02, 0.9))
def test_evidence_is_1_on_average_where_the_rate_is_kept(n, rate):
    chances = (math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1))
    assert math.fsum(p * math.exp(ln_above(k, n, rate)) for k, p in enumerate(chances)) == pytest.approx(1, abs=1e-9)


@given(st.lists(st.booleans(), max_size=80), st.floats(0.02, 0.6))
def test_bets_begin_every_25_audits_with_their_share(losses, risk):
    watch, shares = Watch(risk, list(losses)), [6 / (math.pi * (j + 1)) ** 2 for j in range(4)]
    parts = [losses[25 * j :] for j in range(4) if 25 * j < len(losses)]
    bets = sum(
        share * math.exp(ln_above(sum(part), len(part), risk)) for share, part in zip(shares, parts, strict=False)
    )
    assert watch.evidence() == pytest.approx(bets + 1 - sum(shares[: len(parts)]), rel=1e-9)


@given(st.integers(-(2**63), 2**63 - 1), st.floats(0, 1), st.text(max_size=5))
def test_who_is_audited_hangs_on_the_seed_and_the_id_alone(seed, rate, id):
    assert Audit(rate, seed).draws(id) is Audit(rate, seed).draws(id)
    assert not Audit(0.0, seed).draws(id)
    assert Audit(1.0, seed).draws(id)


def test_share_that_is_audited_is_the_rate():
    drawn = sum(Audit(0.1, 3).draws(f"r{number}") for number in range(20_000))
    assert abs(drawn / 20_000 - 0.1) < 4 * math.sqrt(0.09 / 20_000)
