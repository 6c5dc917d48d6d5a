"""Numbers on a scale of their own: the slot's range makes scores of them, and nothing else does."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Cost, InvalidScore, RawScore, RequestError
from dicast.testing import run_pipeline, sample


@attrs.frozen
class Number:
    """Metric whose raw score is the number in the output."""

    name = "number"
    tier = "truth"
    lower_is_better: bool = False
    needs_range: bool = False

    def score(self, subject):
        return RawScore(subject.output, 0.5, "on purpose", signals={"said": subject.output})


@attrs.frozen
class Together(Number):
    def score_batch(self, subjects):
        return [self.score(subject) for subject in subjects]


def judged(component, *outputs, scale=""):
    subjects = [sample(output, id=str(n)) for n, output in enumerate(outputs)]
    return run_pipeline(f"metrics: [it: {{as: it{scale}}}]", subjects=subjects, components={"it": component})


@pytest.mark.parametrize("kind", [Number, Together])
def test_a_range_makes_a_score_of_a_raw_one(kind):
    done = judged(kind(), 8, 1, scale=", range: [0, 10]")
    assert [verdict.score for verdict in done.verdicts] == [0.8, 0.1]
    (score,) = done.verdicts[0].scores
    assert (score["confidence"], score["details"], score["signals"]) == (0.5, "on purpose", {"said": 8})


@pytest.mark.parametrize("kind", [Number, Together])
def test_where_lower_is_better_the_range_is_read_from_its_end(kind):
    done = judged(kind(lower_is_better=True), 8, 0, 10, scale=", range: [0, 10]")
    assert [verdict.score for verdict in done.verdicts] == [pytest.approx(0.2), 1.0, 0.0]


def test_without_a_range_only_what_lies_in_the_unit_interval_is_a_score():
    done = judged(Number(), 0.25, 8)
    assert [verdict.score for verdict in done.verdicts] == [0.25]
    (failure,) = done.of("eval.failed")
    assert "8 lies outside [0, 1]; declare its scale with range: [low, high]" in failure.payload["error_message"]


def test_what_lies_outside_of_the_range_is_no_score():
    done = judged(Number(lower_is_better=True), 11, scale=", range: [0, 10]")
    assert done.document["failures"] == {"invalid_score": 1}
    assert "11 lies outside the declared range [0, 10]" in done.of("eval.failed")[0].payload["error_message"]


def test_a_metric_whose_lowest_number_is_best_is_refused_without_a_range():
    with pytest.raises(RequestError, match=r"has a raw scale; set its bounds, as in range: \[0, 100\]"):
        judged(Number(lower_is_better=True), 0.5)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_score_on_a_scale_lies_where_the_number_lies(worst, best, value):
    if worst == best:
        return
    low, high = min(worst, best), max(worst, best)
    if low <= value <= high:
        assert RawScore(value).on((worst, best)).value == pytest.approx(abs(value - worst) / abs(best - worst))
    else:
        with pytest.raises(InvalidScore, match="outside"):
            RawScore(value).on((worst, best))


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "8", None])
def test_a_raw_score_is_a_finite_number(value):
    with pytest.raises(InvalidScore, match="a raw score must be a finite number"):
        RawScore(value, cost=Cost(1))
