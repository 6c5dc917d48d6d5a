"""The README's example runs, and gives the figures that are written below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dicast
from dicast import Subject
from dicast_feedback import StringSimilarity

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """The README's blocks of YAML; its titled files lie in the current folder."""
    monkeypatch.chdir(tmp_path)
    matches = re.findall(
        r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', README.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    for _, title, text in matches:
        if title:
            Path(title).write_text(text, encoding="utf-8")
    return [text for language, _, text in matches if language == "yaml"]


def test_the_example_gives_the_figures_in_the_text(blocks):
    first, second = dicast.run(blocks[0]).verdicts
    f1, _ = first.scores
    assert f1["value"] == pytest.approx(0.666667, abs=1e-6)
    assert f1["feedback"] in README.read_text("utf-8")
    assert [item["value"] for item in second.scores] == pytest.approx([0.666667, 0.826], abs=5e-4)


def test_objectives_of_several_plugins_are_combined(blocks):
    run = dicast.run(blocks[1])
    assert (run.scored, run.exit_code) == (2, 0)
    assert run.verdicts[0].score == pytest.approx((3 * 2 / 3 + 1) / 4)


def test_a_negation_is_more_similar_than_a_paraphrase():
    """The figures of the page: similarity measures the topic, not the truth."""
    outputs = ("The drug is not safe for children.", "Children can take this medicine without danger.")
    subjects = [Subject("row", "1", "", output, "The drug is safe for children.") for output in outputs]
    assert [round(StringSimilarity().score(subject).value, 2) for subject in subjects] == [0.92, 0.0]
