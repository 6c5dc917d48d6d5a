"""Scores in a run: the README's example, two writers of one place, and names of criteria."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import attrs
import pytest

from dicast import Answered, ConfigError, Subject
from dicast.testing import run_pipeline

README = Path(__file__).parents[1] / "README.md"
ROWS = [Subject("row", "1", output='{"score": 1, "rating": "2"}')]


def test_the_readmes_example_gives_the_figures_in_the_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = re.findall(r'^```\w+ title="([^"\n]+)"\n(.*?)^```$', README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for name, text in files:
        Path(name).write_text(text, encoding="utf-8")
    done = run_pipeline(dict(files)["rated.yaml"])
    assert [event.payload["metrics"] for event in done.of("record.completed")] == [
        {"scores": {"default": 0.72}, "score_flags": {"default": True}},
        {"scores": {"default": 0.65}, "score_flags": {"default": False}},
        {"scores": {"default": None}},
    ]
    with Path("rated.csv").open(newline="", encoding="utf-8") as file:
        assert [row["metric_scores_default"] for row in csv.DictReader(file)] == ["0.72", "0.65", ""]


def test_two_extractors_that_write_one_place_are_refused_and_both_named():
    with pytest.raises(ConfigError) as caught:
        run_pipeline(
            "extractors: [score_extractor/scores, score_extractor/scores: {as: other, key: rating}]", subjects=ROWS
        )
    assert "other and score_extractor/scores (extractors[0]) both write metrics.scores" in str(caught.value)


def test_two_extractors_of_different_criteria_add_up():
    @attrs.frozen
    class Rated:
        def produce(self, subject):
            content = {"content": subject.output, "metrics": {}}
            return Answered.of(subject, {"Clear prose": content, "depth": content})

    done = run_pipeline(
        """
task: rated
extractors:
  - score_extractor/scores: {criteria: [Clear prose], threshold: 1}
  - score_extractor/scores: {as: other, criteria: [depth], key: rating}
""",
        subjects=ROWS,
        components={"rated": Rated()},
    )
    (record,) = done.of("record.completed")
    assert record.payload["metrics"] == {
        "scores": {"Clear prose": 1.0, "depth": 2.0},
        "score_flags": {"Clear prose": True},
    }
