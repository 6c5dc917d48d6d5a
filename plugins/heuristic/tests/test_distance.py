from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dicast_heuristic.distance import within


def table(left, right):
    """The Levenshtein distance, by its definition."""
    row = list(range(len(right) + 1))
    for number, letter in enumerate(left, 1):
        above, row = row, [number]
        for place, other in enumerate(right):
            row.append(min(row[-1] + 1, above[place + 1] + 1, above[place] + (letter != other)))
    return row[-1]


TEXTS = st.text("ab{\u00e9", max_size=80)
SHARES = st.sampled_from([0.0, 0.1, 0.29, 0.5, 1.0])
PROSE = "".join(random.Random(3).choices("etaoin shrdlu", k=50_000))


def edited(text, share, seed=5):
    """*text* with an edit at about *share* of its letters."""
    chance = random.Random(seed)
    edits = ("", "x", "xy")
    return "".join(letter if chance.random() > share else chance.choice(edits) for letter in text)


@given(TEXTS, TEXTS, SHARES)
@example("kitten", "sitting", 0.29)
@example("", "abc", 1.0)
@example("a" * 100, "a" * 71 + "b" * 29, 0.29)
@example("x" * 10, "x" * 9, 0.1)
def test_within_is_the_share_of_the_longer_text(left, right, most):
    longer = max(len(left), len(right))
    assert within(left, right, most) == (not longer or table(left, right) / longer <= most)


@given(st.text("abcdefgh ", min_size=30, max_size=120), st.floats(0, 0.3), SHARES, st.integers(0, 99))
def test_within_holds_for_texts_that_are_nearly_the_same(text, share, most, seed):
    other = edited(text, share, seed)
    assert within(text, other, most) == (table(text, other) / max(len(text), len(other)) <= most)
    assert within(other, text, most) == within(text, other, most)


@pytest.mark.parametrize(("changed", "near"), [(10, True), (11, False)])
def test_a_tenth_of_a_text_may_differ(changed, near):
    text = "".join(chr(33 + number % 90) for number in range(100))
    assert within(text, "\u00e9" * changed + text[changed:], 0.1) is near


@pytest.mark.parametrize(("changed", "near"), [(5000, True), (5001, False)])
def test_a_tenth_of_a_long_text_may_differ(changed, near):
    assert within(PROSE, PROSE[:100] + "\u00e9" * changed + PROSE[100 + changed :], 0.1) is near
    altered = "".join(
        "\u00e9" if place % 9 == 0 and place < 9 * changed else letter for place, letter in enumerate(PROSE)
    )
    assert within(PROSE, altered, 0.1) is near


@pytest.mark.parametrize("other", [edited(PROSE, 0.02), PROSE[::-1], "!" + PROSE[:-1] + "!"])
def test_long_texts_are_compared_in_a_moment(other):
    began = time.thread_time()
    within(PROSE, other, 0.1)
    assert time.thread_time() - began < 0.5
