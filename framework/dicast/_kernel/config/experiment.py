"""The sections of an experiment (document 002): what makes records, what reads them, and what a run is compared with."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..converter import Part
from ..sections import Baseline, Label
from .parts import Parts, Placed
from .slots import clash


class ExperimentParts(Parts):
    """Builds the sections ``extractors`` and ``baseline`` of one pipeline."""

    def _extractors(self) -> list[Placed]:
        placed = self._labelled("extractors", "extractor")
        for index, (path, slot) in enumerate(placed):
            for _, other in placed[:index]:
                if leaf := clash(slot.component, other.component):
                    message = f"{slot.label} and {other.label} ({other.path}) both write metrics.{leaf}"
                    self._fault(
                        (*path, Part(slot.name)), f"{message}; give one of them another place, or other criteria"
                    )
        return placed

    def _baseline(self) -> Baseline | None:
        given = self._file.get("baseline")
        if "baseline" not in self._file:
            return None
        compare: object = []
        if isinstance(given, Mapping):
            compare = given.get("compare", [])
            given = {key: value for key, value in given.items() if key != "compare"}
        baseline: Baseline | None = None
        with self._structurer.at("baseline", faults=self.faults):
            baseline = self._structurer.structure(given, Baseline)
        listed = self._list(("baseline", "compare"), compare, ("comparison",), Label)
        placed = [(path, self._slot(path, built)) for path, built in listed]
        self._check_labels(placed)
        return baseline and attrs.evolve(baseline, compare=tuple(slot for _, slot in placed))
