"""Limits of texts, tokens and votes, at the limit itself."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Reply, Subject, Token
from dicast_llm.conversation import lifecycle_line
from dicast_llm.letters import letter_signals
from dicast_llm.likelihood import NoLikelihood, likelihood
from dicast_llm.measured import FOLDS, LEAST, accuracies, measure
from dicast_llm.room import GAP, level, middle_cut, text
from dicast_llm.settling import combined, settled
from dicast_llm.shown_evidence import read_evidence
from dicast_llm.words import Distribution


@given(st.integers(0, 60), st.integers(-2, 70))
def test_a_text_loses_its_middle_and_no_more(length, room):
    value = ("abcdefg" * 9)[:length]
    cut = middle_cut(value, room)
    assert len(cut) == min(len(value), max(room, 0))
    if len(value) > room >= len(GAP):
        kept = room - len(GAP)
        assert cut == value[: kept - kept // 2] + GAP + (value[-(kept // 2) :] if kept // 2 else "")


def test_a_section_of_a_text_that_fits_exactly_is_whole():
    whole, cut = text("OUTPUT", "x" * 100, 100), text("OUTPUT", "x" * 100, 99)
    assert (whole.section.cut, whole.chars, whole.original_chars) == ((), 100, 100)
    assert cut.section.cut == ("99 of 100 characters, without the middle",)
    assert (cut.chars, cut.original_chars) == (99, 100)


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(-5, 120))
def test_the_common_length_is_the_greatest_that_fits(lengths, room):
    most = level(lengths, room)
    assert sum(min(length, most) for length in lengths) <= max(0, room)
    if lengths and most < max(lengths):
        assert sum(min(length, most + 1) for length in lengths) > max(0, room)
    else:
        assert most == max(lengths, default=0)


@pytest.mark.parametrize(
    ("first", "second", "winners", "bias"),
    [
        (2.0, 1.0, ["output", "opponent"], 1.5),
        (2.0, -1.0, ["output", "output"], 0.5),
        (-2.0, 1.0, ["opponent", "opponent"], -0.5),
        (0.0, -1.0, ["tie", "output"], -0.5),
        (0.0, 0.0, ["tie", "tie"], 0.0),
    ],
)
def test_the_winner_of_each_order_is_that_of_its_sign(first, second, winners, bias):
    signals = letter_signals(first, second)
    assert (signals["winners"], signals["letter_bias"]) == (winners, bias)
    assert signals["flipped"] is (len(set(winners)) > 1)


def tokens(count):
    return tuple(Token(f" w{number}", math.log(0.1 + number / 100)) for number in range(count))


@pytest.mark.parametrize(("count", "ends"), [(5, "' w0' 0.10"), (6, "…")])
def test_a_message_names_five_tokens(count, ends):
    listed = Distribution({"yes": -1.0}, tokens(count)).tokens_text.split(", ")
    assert len(listed) == min(count, 5) + (count > 5)
    assert listed[0] == f"' w{count - 1}' {0.1 + (count - 1) / 100:.2f}"
    assert listed[-1] == ends


class Numbers:
    """Reply of a number at each key, with the place of the number in the text."""

    def __init__(self, text):
        self.text = text

    def member(self, key):
        start = self.text.index(key) + 3
        return SimpleNamespace(start=start, end=self.text.index(",", start))


def probability(logprobs, pieces=("a: ", "0", ".5", ","), text=None, keys="a"):
    reply = Reply(text or "".join(pieces), logprobs=tuple(map(Token, pieces, logprobs)))
    return likelihood(reply, Numbers(reply.text), keys)


def test_the_probability_is_that_of_the_tokens_of_the_number():
    assert probability([-9.0, -0.5, -0.25, -9.0]) == pytest.approx(math.exp(-0.75))
    assert probability([-9.0, 0.0, 0.0, 5.0]) == 1.0
    two = probability([-9.0, -1.0, -9.0, -3.0, -9.0], ("a: ", "1", ",b: ", "2", ","), keys="ab")
    assert two == pytest.approx(math.exp(-2.0))  # the geometric mean
    assert probability([-9.0, -1.0, -9.0], ("é!a: ", "1", ","), "\ufffd\ufffd!a: 1,") == pytest.approx(math.exp(-1.0))
    assert probability([-9.0, -1.0, -9.0], ("a: ", "1", ",\ufffd"), "a: 1,é") == pytest.approx(math.exp(-1.0))


@pytest.mark.parametrize(
    ("logprobs", "pieces", "text", "reason"),
    [
        ([], (), "a: 1,", "the model reported none"),
        ([-9.0, 1.0, -9.0, -9.0], ("a: ", "0", ".5", ","), None, "the reported ones are above 0"),
        ([-9.0, 0.5, 0.0, -9.0], ("a: ", "0", ".5", ","), None, "the reported ones are above 0"),
        ([-9.0, -1.0, -9.0], ("b: ", "1", ";"), "a: 1,", "the tokens do not match the text"),
    ],
)
def test_tokens_that_show_no_probability_have_a_reason(logprobs, pieces, text, reason):
    with pytest.raises(NoLikelihood, match=reason):
        probability(logprobs, pieces, text)


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("combine", "votes", "left", "failed", "line", "answer"),
    [
        ("mean", [1, 1], [1], 0, Fraction(2, 3), True),  # between 2/3 and 1
        ("mean", [1, 1], [1], 0, Fraction(3, 4), False),
        ("mean", [0, 0], [1], 0, Fraction(1, 3), False),  # up to exactly 1/3
        ("mean", [0, 0], [1], 0, Fraction(2, 5), True),
        ("majority", [1, 1], [1], 0, HALF, True),
        ("majority", [1, 0], [1], 0, HALF, False),
        ("mean", [1], [1], 0, HALF, False),  # one of two is no majority
        ("mean", [1], [1], 2, HALF, True),  # no verdict is possible
        ("mean", [1], [1], 1, Fraction(1), False),
    ],
)
def test_an_outcome_is_settled_at_the_line_itself(combine, votes, left, failed, line, answer):
    scored = [(Fraction(score), Fraction(1)) for score in votes]
    assert settled(combine, scored, list(map(Fraction, left)), failed, line) is answer


@pytest.mark.parametrize(
    ("scores", "result"), [([1, 0], HALF), ([HALF, 0, 1], 1), ([Fraction(49, 100), 0, 1], 0), ([HALF, 0], HALF)]
)
def test_a_majority_passes_from_one_half_on(scores, result):
    assert combined("majority", [(Fraction(score), Fraction(1)) for score in scores]) == result


def ledger_of(votes):
    """Return a ledger's reader of juries, the newest first; each a session with the scores of two judges."""
    entries = []
    for number, scores in enumerate(votes):
        cast = [
            {"judge": name, "judge_model": "m"} | ({} if score is None else {"score": score})
            for name, score in zip("ab", scores, strict=True)
        ]
        payload = {"judge_kind": "jury", "signals": {"votes": cast}, "subject_kind": "row", "subject_id": str(number)}
        entries.append(SimpleNamespace(event=SimpleNamespace(payload=payload, session_id=f"s{number}")))
    return lambda _query: iter(entries)


def test_measured_weights_need_enough_subjects_of_other_sessions():
    count = next(number for number in range(LEAST, 3 * LEAST) if not _is_refused([(1, 1)] * number))
    with pytest.raises(ConfigError, match=f"on {LEAST} subjects of other sessions, but the ledger has {LEAST - 1}:"):
        measure(ledger_of([(1, 1)] * (count - 1)), "ab")
    assert len(measure(ledger_of([(1, 1)] * count), "ab").parts) == FOLDS


def _is_refused(votes):
    try:
        measure(ledger_of(votes), "ab")
    except ConfigError:
        return True
    return False


def test_a_vote_of_one_half_passes_and_a_judge_without_votes_is_even():
    half = [(0.5, 1.0), (0.49, 0.0)] * 60
    whole = [(1.0, 1.0), (0.0, 0.0)] * 60
    assert measure(ledger_of(half), "ab").digest == measure(ledger_of(whole), "ab").digest
    assert accuracies([{0: True}, {0: False}] * 10, 2)[1] == 0.5
    assert accuracies([{0: True, 1: True}] * 10, 2) == pytest.approx([1.0, 1.0])


ROW = Subject("row", "r", "in", "out", "ref")


def test_a_reader_has_the_evidence_of_the_first_judge_that_asks_a_model():
    shown = read_evidence(SimpleNamespace(), subject=ROW, judges=[object()])
    assert [(part["title"], part["text"]) for part in shown["sections"]] == [
        ("INPUT", "in"),
        ("OUTPUT", "out"),
        ("REFERENCE", "ref"),
    ]
    assert (shown["chars"], shown["whole"]) == (8, 8)
    assert all(part["cut"] == [] for part in shown["sections"])


@pytest.mark.parametrize(
    ("type", "payload", "line"),
    [
        ("turn.completed", {"stop_reason": "end_turn", "tool_call_count": 2}, "turn completed"),
        ("session.ended", {"disposition": "abandoned"}, "session ended"),
        ("route.decided", {"chosen_model": "gpt\n"}, 'routed to "gpt\\n"'),
        ("llm.call_failed", {"error": "late"}, "model call failed: late"),
        ("llm.call_completed", {"stop_reason": "max_tokens"}, "model call stopped at its limit of tokens"),
        ("llm.call_completed", {"stop_reason": "end_turn"}, None),
        ("message.sent", {}, None),
    ],
)
def test_events_of_the_life_of_a_turn_have_a_line(type, payload, line):
    shown = lifecycle_line(type, payload)
    assert shown == line if line is None or "completed" not in line and "ended" not in line else shown.startswith(line)
