"""Tests of the metric."""

from __future__ import annotations

import pytest
from dicast.testing import MetricConformance, run_pipeline, sample
from hypothesis import given
from hypothesis import strategies as st

from dicast_grade_level import automated_readability_index


class TestReadable(MetricConformance):
    metric = "grade_level/readable"


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("A cat sat.", 4.71 * 7 / 3 + 0.5 * 3 - 21.43),
        ("Go on. Stop!", 4.71 * 8 / 3 + 0.5 * 3 / 2 - 21.43),
        ("Version 2.5 is out", 4.71 * 14 / 4 + 0.5 * 4 - 21.43),
    ],
)
def test_the_index_has_its_published_coefficients(text: str, index: float) -> None:
    assert automated_readability_index(text) == pytest.approx(index)


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=30))
def test_longer_words_never_lower_the_index(words: list[str]) -> None:
    longer = [f"{word}a" for word in words]
    assert automated_readability_index(" ".join(longer)) > automated_readability_index(" ".join(words))


def test_a_text_of_a_higher_grade_scores_less() -> None:
    hard = "Incontrovertible jurisdictional considerations necessitate comprehensive reconsideration."
    run = run_pipeline("metrics: [grade_level/readable]", subjects=[sample("Go on."), sample(hard, id="hard")])
    easy, other = [verdict.score for verdict in run.verdicts]
    assert easy == 1.0
    assert other is not None
    assert 0 < other < 0.5
