"""Choice of subjects to label, their evidence in lines, and agreement between labelers, for labels that are written out here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dicast import Subject
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.random_order import in_random_order
from dicast_trust.cards.asking_again import recorded_again
from dicast_trust.cards.history import Content, JudgeHistory, PastVerdict
from dicast_trust.cards.page import page
from dicast_trust.labeling.label import Choice
from dicast_trust.labels.agreement import LabelerAgreement
from dicast_trust.labels.choosing import Evidence, Judged, audited, disagreements, stratified

KEYS = [("row", str(number)) for number in range(23)]


def stage(outcomes):
    """Return a stage with a score and a confidence by key."""
    return SimpleNamespace(
        outcomes={key: SimpleNamespace(score=score, confidence=sure) for key, (score, sure) in outcomes.items()}
    )


def test_a_random_order_depends_on_the_seed_and_on_no_other_key():
    order = in_random_order(KEYS, 1)
    assert sorted(order) == sorted(KEYS)
    assert order not in (KEYS, in_random_order(KEYS, 2))
    assert in_random_order(KEYS[::-1][:9], 1) == [key for key in order if key in KEYS[::-1][:9]]
    swapped = [("a", "b"), ("b", "a")]
    assert {tuple(in_random_order(swapped, seed)) for seed in range(9)} == {tuple(swapped), tuple(swapped[::-1])}


@pytest.mark.parametrize("count", [1, 4, 5, 20])
def test_a_stratified_draw_takes_from_fifths_of_the_confidence_in_turn(count):
    confidences = {("row", str(number)): (1.0, number / 100) for number in range(count)}
    drawn = stratified([*KEYS[:count], ("row", "unjudged")], stage(confidences), 0)
    assert sorted(drawn) == sorted(KEYS[:count])
    size = -(-count // 5)
    parts = [int(id) // size for _, id in drawn]
    assert parts[: len(set(parts))] == sorted(set(parts))
    first = [key for key in drawn if int(key[1]) < size]
    assert first == in_random_order([key for key in KEYS if int(key[1]) < size], 0)
    rounds = [drawn[at : at + len(set(parts))] for at in range(0, count, len(set(parts)))]
    assert [len({int(id) // size for _, id in part}) for part in rounds] == [len(part) for part in rounds]


def test_subjects_on_which_stages_disagree_come_first_then_the_least_confident_ones():
    first = stage(
        {KEYS[0]: (1.0, 0.5), KEYS[1]: (0.5, 0.9), KEYS[2]: (0.0, 0.8), KEYS[3]: (None, 0.1), KEYS[5]: (0.4, 0.7)}
    )
    second = stage({KEYS[0]: (0.9, 0.6), KEYS[1]: (0.4, 0.95), KEYS[2]: (0.1, 0.2), KEYS[3]: (0.7, 0.3)})
    # 1 is on both sides of .5; the least confidences of the others are .5, .2, .3, 0 (unjudged) and .7
    assert [id for _, id in disagreements(KEYS[:6], [first, second])] == ["1", "4", "2", "3", "0", "5"]
    assert [id for _, id in disagreements(KEYS[:2], [first, second], 0.95)] == ["0", "1"]


def test_audited_subjects_are_those_whose_audit_waits_for_people():
    payloads = [
        {"signals": {"audit": {"against": "gold"}}},
        {"signals": {"audit": {"against": "last"}}},
        {"signals": {"audit": True}},
        {"signals": None},
        {},
    ]
    entries = [
        SimpleNamespace(event=SimpleNamespace(payload={"subject_kind": "row", "subject_id": str(at)} | payload))
        for at, payload in enumerate(payloads)
    ]
    assert audited(SimpleNamespace(read=lambda _: entries)) == {("row", "0")}


JUDGED = Judged(Subject("turn", "t 1", output="o"), "run-1")


def test_evidence_has_a_line_for_what_is_cut_folded_or_missing():
    sections = [
        {"title": "INPUT", "text": "hello", "cut": ["2 turns", "1 call"]},
        {"title": "OUTPUT", "text": "o", "cut": []},
    ]
    agents = [SimpleNamespace(lines=lambda: iter(["an agent"]))]
    assert [*Evidence(JUDGED, sections, 1000, 2500, None, agents, 1).lines()] == [
        "turn t 1  of run run-1",
        "cut as for the judge: 1,000 of 2,500 characters",
        *("", "INPUT (cut: 2 turns; 1 call)", "hello"),
        *("", "OUTPUT", "o"),
        "an agent",
        *("", "its reasoning (1 text) is folded: dicast show 't 1' --run run-1"),
    ]
    assert [*Evidence(JUDGED, [], 5, 5, "no text", (), 1200).lines()] == [
        "turn t 1  of run run-1",
        *("", "its reasoning (1,200 texts) is folded: dicast show 't 1' --run run-1"),
        *("", "nothing to show: no text"),
    ]


def test_a_choice_names_its_counts_by_kind():
    one = Choice([JUDGED] * 3, {"row": 1200})
    assert one.words("p.yaml", 2, "random") == (
        "2 of 1,200 subjects that p.yaml has judged (1,200 of kind row); drawn: random; 3 without a label"
    )
    assert Choice([JUDGED], {"row": 2, "turn": 3}).words("p", 1, "audits") == (
        "1 of 5 subjects that p has judged (2 of kind row, 3 of kind turn); drawn: audits; 1 without a label; --kind selects one kind"
    )


def label(id, score, labeller="ann", **changes):
    return GoldLabel(id, score, "row", labeller, **changes)


def test_agreement_is_over_subjects_that_two_people_have_labeled():
    rows = [("1", 1.0, 1.0), ("2", 0.0, 1.0), ("3", 0.0, 0.0), ("4", 0.5, 1.0)]
    labels = [item for id, first, second in rows for item in (label(id, first), label(id, second, "bob"))]
    labels += [label("5", 1.0), label("6", 1.0, None), label("2", 0.0, "eve", others={"adjudicated": True})]
    document = LabelerAgreement.of(labels).document()
    assert document["labellers"] == {"ann": 5, "bob": 4, "nobody named": 1}
    (pair,) = document["pairs"]
    assert pair.pop("agree_ci") == pytest.approx([0.3006, 0.9544], abs=1e-4)  # Wilson's, 3 of 4
    assert pair == {"a": "ann", "b": "bob", "n": 4, "agree": 0.75, "kappa": pytest.approx(0.5)}
    # one of four units disagrees: 8 labels, 5 of them pass
    assert document["alpha"] == pytest.approx(1 - 7 * 2 / (2 * 5 * 3))
    assert (document["adjudicated"], document["reasons"]) == (1, [])
    assert document["differ"] == [
        {"subject_kind": "row", "subject_id": "4", "output_digest": None, "labels": {"ann": 0.5, "bob": 1.0}}
    ]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([label("1", 1.0), label("2", 1.0, "bob")], "no two labelers have labeled the same subject"),
        (
            [label("1", 1.0), label("1", 1.0, "bob")],
            "the labels of subjects with several labelers all pass, or all fail",
        ),
        (
            [label("1", 0.0), label("1", 0.25, "bob")],
            "the labels of subjects with several labelers all pass, or all fail",
        ),
    ],
)
def test_agreement_without_both_classes_is_not_defined(labels, reason):
    document = LabelerAgreement.of(labels).document()
    assert (document["alpha"], document["reasons"]) == (None, [f"alpha is not defined: {reason}"])
    assert all(pair["kappa"] is None for pair in document["pairs"])


def test_a_label_without_an_output_is_counted_once():
    labels = [label("1", 1.0), label("1", 0.0, "bob", output_digest="a"), label("1", 0.0, "bob", output_digest="b")]
    document = LabelerAgreement.of(labels).document()
    (pair,) = document["pairs"]
    assert (pair["n"], pair["agree"]) == (2, 0.0)
    assert [row["output_digest"] for row in document["differ"]] == ["a", "b"]


def past(seq, score, *, run="r", preview=False, content="a"):
    return PastVerdict(seq, run, preview, None, score, 1.0, "m", "llm", None, 1, content, ())


def again(verdicts, repeats=False, live=()):
    key = ("row", "x")
    history = JudgeHistory(
        "one", "f", {key: verdicts}, contents={"a": Content(digest="1"), "b": Content(digest="2")}, live=set(live)
    )
    answers = recorded_again(history, [SimpleNamespace(subject=key)], 0.5, repeats=repeats)
    return answers.consistent, answers.repeated, answers.rounds, dict(answers.unknown)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([past(1, 1.0)], (0, 0, 0)),
        ([past(1, 1.0), past(2, 0.5)], (1, 1, 2)),
        ([past(1, 1.0), past(2, 0.4)], (0, 1, 2)),
        ([past(1, 0.5), past(2, 1.0)], (1, 1, 2)),
        ([past(1, 0.5), past(2, 0.4)], (0, 1, 2)),
        ([past(1, 1.0), past(2, 0.0), past(3, 1.0, preview=True)], (1, 1, 2)),
        ([past(1, 1.0), past(2, 0.0, preview=True), past(3, 1.0, preview=True)], (1, 1, 2)),
        ([past(1, 1.0), past(2, 0.0, preview=True, content="b"), past(3, 1.0)], (1, 1, 2)),
        ([past(1, 1.0, content="b"), past(2, 0.0), past(3, 0.0)], (1, 1, 2)),
        ([past(1, 1.0, preview=True), past(2, 1.0, preview=True)], (0, 0, 0)),
    ],
)
def test_a_second_verdict_on_the_same_output_shows_consistency(verdicts, expected):
    assert again(verdicts) == (*expected, {})


def test_a_recording_is_no_second_verdict():
    verdicts = [past(1, 1.0), past(2, 1.0, run="r2")]
    reason = {"self_consistency": "its replies came from a recording or a cache, which always repeat a reply"}
    assert again(verdicts, repeats=True) == (1, 1, 2, reason)
    assert again(verdicts, repeats=True, live=["r"]) == (1, 1, 2, reason)
    assert again(verdicts, repeats=True, live=["r2"]) == (1, 1, 2, {})
    assert again(verdicts[:1], repeats=True) == (0, 0, 0, {})


@pytest.mark.parametrize(
    ("can_gate", "color", "answer"),
    [(True, "good", "can gate"), (False, "bad", "cannot gate"), (None, "open", "not known whether it can gate")],
)
def test_the_page_of_a_card_escapes_its_texts(can_gate, color, answer):
    from test_card_text import JUDGE

    judge = JUDGE | {
        "label": "<b>",
        "can_gate": can_gate,
        "words": "a & b\u202e",
        "left_out": 2,
        "warnings": [{"message": "<x>"}],
    }
    html = page(
        {"pipeline": "p<", "judges": [judge], "gold": {"n": 1200, "source": "g&", "digest": "d"}, "digest": "c"}
    )
    assert f'<h2>&lt;b&gt; <span class="answer {color}">{answer}</span></h2>' in html
    assert "<p>a &amp; b </p>" in html
    assert '<tr><td>labels</td><td class="n">1,200</td><td></td><td>&gt;= 100: reached</td></tr>' in html
    assert "<li>left out: 2 verdicts of other versions of the judge, or of other models</li>" in html
    assert "<li><strong>Warning: it &lt;x&gt;.</strong></li>" in html
    assert (
        "<footer>1,200 labels from g&amp;. Valid for subjects drawn like these labels.\n<br>Labels d<br>Card c</footer>"
        in html
    )
    assert "<h1>Judge card: p&lt;</h1>" in html
