"""Drift of a judge: another verdict on an anchor is a change, another score is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dicast_trust.cards.drift import drift


@pytest.mark.parametrize(
    ("scores", "changed"),
    [([0.5, 0.5], 0), ([0.5, 0.9], 0), ([0.9, 0.5], 0), ([0.4, 0.5], 1), ([0.5, 0.4], 1)],
)
def test_a_score_at_the_bar_passes(scores, changed):
    verdicts = [SimpleNamespace(seq=seq, score=score, is_preview=False) for seq, score in enumerate(scores)]
    history = SimpleNamespace(verdicts={("row", "a"): verdicts}, is_same_output=lambda *_: True)
    figures, _ = drift(history, [("row", "a")], 0.5, 0.9)
    assert (figures["n"], figures["changed"]) == (1, changed)
