"""Children and parents: a session's judge is given its turns' verdicts, and these name the verdict they went into."""

from __future__ import annotations

import asyncio

import pytest

from dicast import Judgment, Score, Subject, judge, metric
from dicast.testing import run_pipeline


@judge(accepts=["turn"])
def quick(subject):
    """The number that the turn's output is."""
    return Judgment(float(subject.text))


@judge(accepts=["turn"])
async def slow(subject):
    """The same, the later turns sooner."""
    await asyncio.sleep(0.05 * (1 - float(subject.text)))
    return Judgment(float(subject.text))


@judge(accepts=["session"])
def whole(subject, children):
    """The lowest of the turns."""
    return Judgment(min(child.score for child in children), signals={"children": [c.subject_id for c in children]})


@metric(tier="proxy")
def fair(subject):
    """Half."""
    return Score(0.5)


def turn(session, number, score):
    return Subject("turn", f"{session}/{number}", output=str(score), session_id=session, parent_id=session)


def session(name):
    return Subject("session", name, session_id=name)


SUBJECTS = [turn("a", 1, 0.2), turn("a", 2, 0.9), session("a"), turn("b", 1, 0.6), session("b")]


def judged(text, subjects=SUBJECTS, **components):
    done = run_pipeline(text, subjects=subjects, components=components)
    assert done.document["failures"] == {}
    return {(verdict.subject_id, verdict.judge): verdict for verdict in done.verdicts}


@pytest.mark.parametrize("of_turns", [quick, slow])
def test_a_session_is_given_the_verdicts_on_its_turns_in_their_order(of_turns):
    verdicts = judged("judges: [{t: {as: t}}, {s: {as: s}}]", t=of_turns(), s=whole())
    assert [verdicts[name, "s"].signals["children"] for name in "ab"] == [["a/1", "a/2"], ["b/1"]]
    assert [verdicts[name, "s"].score for name in "ab"] == [0.2, 0.6]


@pytest.mark.parametrize("of_turns", [quick, slow])
def test_a_child_names_the_verdict_it_went_into(of_turns):
    verdicts = judged("judges: [{t: {as: t}}, {s: {as: s}}]", t=of_turns(), s=whole())
    for name, parent in (("a/1", "a"), ("a/2", "a"), ("b/1", "b")):
        assert verdicts[name, "t"].parent_eval_id == verdicts[parent, "s"].eval_id
    assert verdicts["a", "s"].parent_eval_id is None


def test_of_two_verdicts_on_the_parent_the_first_is_named():
    verdicts = judged("judges: [{t: {as: t}}, {s: {as: s}}, {s2: {as: s2}}]", t=quick(), s=whole(), s2=whole())
    assert verdicts["a/1", "t"].parent_eval_id == verdicts["a", "s"].eval_id != verdicts["a", "s2"].eval_id
    assert verdicts["a", "s2"].signals == verdicts["a", "s"].signals


def test_there_is_no_parent_where_nobody_judges_it():
    verdicts = judged("judges: [{t: {as: t}}]", t=quick())
    assert {verdict.parent_eval_id for verdict in verdicts.values()} == {None}


def test_a_judge_among_the_metrics_is_given_the_children_too():
    verdicts = judged(
        "metrics: [{f: {as: f, on: session}}, {s: {as: s, on: session}}]\njudges: [{t: {as: t}}]",
        t=quick(),
        s=whole(),
        f=fair(),
    )
    assert verdicts["a", "metrics"].score == pytest.approx((0.5 + 0.2) / 2)
    assert verdicts["a/2", "t"].parent_eval_id == verdicts["a", "metrics"].eval_id
