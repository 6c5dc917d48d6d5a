from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dicast_heuristic.distance import distance, within


def table(left, right):
    """The Levenshtein distance, by its definition."""
    row = list(range(len(right) + 1))
    for number, letter in enumerate(left, 1):
        above, row = row, [number]
        for place, other in enumerate(right):
            row.append(min(row[-1] + 1, above[place + 1] + 1, above[place] + (letter != other)))
    return row[-1]


TEXTS = st.text("ab{\u00e9", max_size=80)


@given(TEXTS, TEXTS)
@example("kitten", "sitting")
@example("", "abc")
def test_distance_is_the_definitions(left, right):
    assert distance(left, right) == table(left, right)


@given(TEXTS, TEXTS, st.sampled_from([0.0, 0.1, 0.29, 0.5, 1.0]))
@example("a" * 100, "a" * 71 + "b" * 29, 0.29)
@example("x" * 10, "x" * 9, 0.1)
def test_within_is_the_share_of_the_longer_text(left, right, most):
    longer = max(len(left), len(right))
    assert within(left, right, most) == (not longer or table(left, right) / longer <= most)


@pytest.mark.parametrize(("changed", "near"), [(10, True), (11, False)])
def test_a_tenth_of_a_text_may_differ(changed, near):
    text = "".join(chr(33 + number % 90) for number in range(100))
    assert within(text, "\u00e9" * changed + text[changed:], 0.1) is near
