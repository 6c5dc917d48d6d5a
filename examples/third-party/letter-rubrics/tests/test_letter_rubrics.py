"""Tests of the rubrics."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.resources import files

import pytest
from dicast import rubric
from dicast.testing import RubricConformance

VERSIONS = {"letter-tone-v1": "1.0.0", "letter-parts-v1": "1.0.0"}
"""The published rubrics with their versions."""


class TestLetterTone(RubricConformance):
    rubric = "letter-tone-v1"


class TestLetterParts(RubricConformance):
    rubric = "letter-parts-v1"


def test_every_rubric_is_offered_and_has_its_file() -> None:
    offered = {point.name for point in entry_points(group="dicast.rubrics") if point.value == "letter_rubrics"}
    names = [file.name for file in files("letter_rubrics").iterdir() if file.name.endswith((".md", ".yaml"))]
    assert offered == {name.rpartition(".")[0] for name in names} == {*VERSIONS}


@pytest.mark.parametrize(("id", "version"), VERSIONS.items())
def test_a_rubric_has_its_published_version(id: str, version: str) -> None:
    assert (rubric(id).id, rubric(id).version) == (id, version)


def test_the_weights_of_the_dimensions_sum_to_1() -> None:
    dimensions = rubric("letter-parts-v1").data["dimensions"]
    assert isinstance(dimensions, list)
    assert sum(dimension["weight"] for dimension in dimensions) == pytest.approx(1)
