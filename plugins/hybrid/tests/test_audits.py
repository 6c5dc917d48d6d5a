"""Audits of kept verdicts: the rule of agreement, the draw, and labels that answer them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from dicast import ConfigError
from dicast_hybrid.audit import Audit
from dicast_hybrid.document import Calibrated, check_stages
from dicast_hybrid.gold_audits import GoldAudits, Waiting

RULE = Calibrated("d", 0.9, 0.1, "pass", None, None, ())


@pytest.mark.parametrize(
    ("rule", "score", "reference", "answer"),
    [
        ({}, 0.5, 1.0, False),
        ({}, 0.49, 0.5, True),
        ({"pass_at": 0.7}, 0.5, 0.69, False),
        ({"pass_at": 0.7}, 0.7, 0.69, True),
        ({"agree": "winner"}, 0.5, 0.5, False),
        ({"agree": "winner"}, 0.5, 0.51, True),
        ({"agree": "winner"}, 0.6, 1.0, False),
        ({"agree": "winner"}, 0.4, 0.6, True),
        ({"agree": "within", "window": 0.15}, 0.5, 0.65, False),
        ({"agree": "within", "window": 0.15}, 0.65, 0.5, False),
        ({"agree": "within", "window": 0.15}, 0.5, 0.651, True),
        ({"agree": "within"}, 0.5, 0.5, False),
        ({"agree": "within"}, 0.5, 0.51, True),
    ],
)
def test_scores_disagree_by_the_rule_of_the_calibration(rule, score, reference, answer):
    assert attrs.evolve(RULE, **rule).disagree(score, reference) is answer


def test_an_audit_draws_its_share_and_the_same_subjects_each_time():
    drawn = [id for id in map(str, range(4000)) if Audit(0.1, seed=3).draws(id)]
    assert 300 < len(drawn) < 500
    assert drawn == [id for id in map(str, range(4000)) if Audit(0.1, seed=3).draws(id)]
    assert drawn != [id for id in map(str, range(4000)) if Audit(0.1, seed=4).draws(id)]
    assert not any(Audit(0.0).draws(str(number)) for number in range(50))
    assert all(Audit(1.0).draws(str(number)) for number in range(50))


class Entries:
    """Rows of a ledger, from number 1."""

    def __init__(self, *payloads):
        self.rows = [
            SimpleNamespace(
                seq=seq,
                event=SimpleNamespace(
                    payload=payload,
                    session_id=payload.pop("session", None),
                    type=payload.pop("type"),
                    run_id=f"run {seq}",
                ),
            )
            for seq, payload in enumerate(payloads, 1)
        ]

    def __call__(self, query):
        rows = [row for row in self.rows if not query.types or row.event.type in query.types]
        rows = [row for row in rows if row.seq > (query.after or 0)]
        return iter(rows[::-1] if query.newest_first else rows)


def judged(id, *, digest="d", against="gold", score=0.75, **more):
    audit = {"against": against, "output_digest": more.pop("output", None)}
    signals = {"audit": audit, "calibration": {"digest": digest, "stage": 1}}
    return {
        "type": "eval.completed",
        "subject_kind": "row",
        "subject_id": id,
        "score": score,
        "signals": signals,
    } | more


def labeled(id, score=1.0, **more):
    return {"type": "label.given", "subject": id, "score": score} | more


def retracted(id, run):
    return {"type": "label.retracted", "subject": id, "subject_kind": "row", "label_run": run}


def answers(*payloads, waiting=()):
    audits = GoldAudits(Entries(*payloads), "d")
    audits.read_waiting()
    for drawn in waiting:
        audits.add(drawn)
    return [(drawn.subject[1], drawn.score, score) for drawn, score in audits.labeled()]


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ([judged("a"), labeled("a", 0.0, subject_kind="row")], [("a", 0.75, 0.0)]),
        ([judged("a"), labeled("a", 0.0)], [("a", 0.75, 0.0)]),
        ([judged("a"), labeled("a", 0.0, subject_kind="row"), retracted("a", "run 2")], []),
        ([judged("a"), labeled("a", 0.0), retracted("a", "run 2")], []),
        ([judged("a"), labeled("a", 0.0, subject_kind="turn")], []),
        ([judged("a"), labeled("b")], []),
        ([labeled("a"), judged("a")], []),
        ([judged("b"), labeled("a"), judged("a")], []),
        ([judged("a"), labeled("a", 0.5), labeled("a", 1.0)], [("a", 0.75, 0.5)]),
        ([judged("a"), judged("a", score=0.25), labeled("a")], [("a", 0.75, 1.0)]),
        ([judged("a", digest="x"), labeled("a")], []),
        ([judged("a", against="next"), labeled("a")], []),
        ([{"type": "eval.completed", "signals": None}, judged("a"), labeled("a")], [("a", 0.75, 1.0)]),
        ([{"type": "eval.completed", "signals": {}}, judged("a"), labeled("a")], [("a", 0.75, 1.0)]),
        (
            [judged("a", output="o"), labeled("a", output_digest="p"), labeled("a", 0.0, output_digest="o")],
            [("a", 0.75, 0.0)],
        ),
        ([judged("a", output="o"), labeled("a")], [("a", 0.75, 1.0)]),
        ([judged("a"), labeled("a", output_digest="p")], [("a", 0.75, 1.0)]),
        ([judged("a"), judged("b"), labeled("b"), labeled("a", 0.0)], [("b", 0.75, 1.0), ("a", 0.75, 0.0)]),
    ],
)
def test_a_label_after_a_verdict_and_about_its_output_answers_it(payloads, expected):
    assert answers(*[dict(payload) for payload in payloads]) == expected


def test_labels_before_the_run_answer_no_verdict_of_the_run():
    drawn = Waiting(0, 0.5, ("row", "a"), None)
    assert answers(labeled("a"), waiting=[drawn]) == []
    audits = GoldAudits(entries := Entries(labeled("a")), "d")
    audits.read_waiting()
    audits.add(drawn)
    audits.add(drawn._replace(score=0.9))
    entries.rows += Entries(labeled("x"), labeled("a", 0.25)).rows[1:]
    entries.rows[-1].seq = 2
    assert [(each.score, score) for each, score in audits.labeled()] == [(0.5, 0.25)]
    assert [*audits.labeled()] == []
    empty = GoldAudits(Entries(), "d")
    empty.read_waiting()
    assert [*empty.labeled()] == []


def test_one_audit_counts_for_a_session_or_a_subject_without_one():
    drawn = Waiting(0, 0.5, ("row", "a"), "s")
    assert (drawn.who, drawn._replace(session=None).who) == ("session s", "row a")


def stage(**changes):
    slot = {"fingerprint": "f", "name": "llm/judge", "version": "1", "options": {}, "path": "judges[0]"} | changes
    return SimpleNamespace(slot=SimpleNamespace(**slot))


def record(options=None, **changes):
    of = {"component": "llm/judge", "version": "1", "options": options or {}, "fingerprint": "f"} | changes
    return {"label": "one", "of": of}


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (record(), stage(fingerprint="g"), "its rubric or one of its files has changed"),
        (record(), stage(fingerprint="g", name="llm/pairwise"), "it was llm/judge, and is llm/pairwise"),
        (record(), stage(fingerprint="g", version="2"), "version 1 is now 2"),
        (
            record({"a": {"b": 1}, "c": 2}),
            stage(fingerprint="g", options={"a": {"b": 3}, "c": 2}),
            "a.b was 1, and is 3",
        ),
        (
            record({"a": "x" * 58}),
            stage(fingerprint="g", options={"a": "x" * 59}),
            f'a was "{"x" * 58}", and is "{"x" * 56}…',
        ),
        (
            record({str(number): 0 for number in range(5)}),
            stage(fingerprint="g", options={str(number): 1 for number in range(5)}),
            "; ".join(f"{number} was 0, and is 1" for number in range(5)),
        ),
        (
            record({str(number): 0 for number in range(7)}),
            stage(fingerprint="g", options={str(number): 1 for number in range(7)}),
            "; ".join(f"{number} was 0, and is 1" for number in range(5)) + "; and 2 more options",
        ),
    ],
)
def test_a_changed_stage_is_refused_with_its_differences(before, now, words):
    document = attrs.evolve(RULE, stages=(before,))
    with pytest.raises(ConfigError) as raised:
        check_stages(document, [now, stage()], Path("c.json"))
    (problem,) = raised.value.problems
    assert problem.message == f"one is not the calibrated judge: {words}; calibrate again, or undo the change"
    check_stages(attrs.evolve(RULE, stages=(record(),)), [stage(), stage()], Path("c.json"))
    with pytest.raises(ConfigError, match="has 1 steps and the cascade 2"):
        check_stages(document, [stage()] * 3, Path("c.json"))
    with pytest.raises(ConfigError, match="has no fingerprint to compare"):
        check_stages(document, [object(), stage()], Path("c.json"))
