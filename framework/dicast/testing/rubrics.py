"""Checks for rubrics of a package."""

from __future__ import annotations

import importlib
import importlib.resources
from pathlib import Path

from .._kernel.contract.registry import rubrics
from .._kernel.pipeline.rubrics import SUFFIXES, load_rubric
from .._kernel.values import Rubric
from .._kernel.values.errors import RequestError
from .._kernel.values.names import nearest
from .conformance import Contract


class RubricConformance(Contract):
    """Checks for a rubric that a package offers. Name it with ``rubric = "tone-v1"``, its id."""

    rubric: str

    def read(self) -> Rubric:
        """Return the rubric, read like a pipeline reads it."""
        try:
            return load_rubric(self.rubric, Path())
        except RequestError as error:
            raise AssertionError(f"the rubric {self.rubric!r} cannot be read: {error}") from error

    def test_is_offered_by_one_package(self) -> None:
        """The entry-point group ``dicast.rubrics`` has the id once."""
        offer = rubrics().get(self.rubric)
        near = nearest(self.rubric, rubrics())
        hint = f", did you mean {near!r}?" if near else ""
        assert offer is not None, f"no installed package offers the rubric {self.rubric!r}{hint}"
        assert offer.error is None, offer.error

    def test_is_a_file_of_its_package(self) -> None:
        """The file is installed with the package: a build backend leaves data files out unless they are declared."""
        offer = rubrics()[self.rubric]
        folder = importlib.resources.files(importlib.import_module(offer.target))
        names = [f"{self.rubric}{suffix}" for suffix in SUFFIXES]
        assert any((folder / name).is_file() for name in names), (
            f"{offer.target} has no file {' or '.join(names)}; declare it as package data"
        )

    def test_has_its_id_and_a_version(self) -> None:
        """Verdicts name the id and the version of their rubric."""
        rubric = self.read()
        assert rubric.id == self.rubric, f"the file has the id {rubric.id!r}, not {self.rubric!r}"
        assert rubric.version.strip(), f"the rubric {self.rubric!r} has an empty version"

    def test_has_instructions(self) -> None:
        """A rubric has more than its id and version."""
        rubric = self.read()
        body = rubric.text.rpartition("---")[2] if rubric.text.lstrip("\ufeff").startswith("---") else ""
        assert body.strip() or set(rubric.data) - {"id", "version", "name"}, (
            f"the rubric {self.rubric!r} has no instructions"
        )
