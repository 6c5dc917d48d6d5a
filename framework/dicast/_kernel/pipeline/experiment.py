"""Sections of an experiment: extractors, criteria and the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import attrs

from ..plan.labels import scored_criteria
from ..plan.sections import Baseline, Label, Slot
from ..values import ONLY
from ..values.names import nearest
from .faults import Part
from .parts import Placed, SectionBuilder
from .slots import clash, names, own_criteria, score_names

_MAKERS = ("define", "task", "extractors")
"""Sections that determine the criteria; experiments of a suite that change them may have other criteria."""


class ExperimentSections:
    """Builder of the sections ``extractors`` and ``baseline`` of a pipeline.

    *criteria* are the criteria of the task for which an extractor writes a score. *score_names* are the possible names of scores; empty if
    the file does not determine them.
    """

    def __init__(self, sections: SectionBuilder) -> None:
        self._sections = sections
        self.criteria: tuple[str, ...] = ()
        self.score_names: Sequence[str] = ()

    def extractors(self, task: Slot | None) -> list[Placed]:
        """Return the extractors, and store the criteria of *task* for which they write scores."""
        placed = self._sections.labeled("extractors", "extractor")
        for (_, other), (path, slot) in combinations(placed, 2):
            if leaf := clash(slot.component, other.component):
                message = f"{slot.label} and {other.label} ({other.path}) both write metrics.{leaf}; give one of them "
                self._sections.fault((*path, Part(slot.name)), f"{message}another place, or other criteria")
        criteria = names(getattr(task and task.component, "criteria", None))
        if criteria is not None:
            self.criteria = scored_criteria(criteria, [slot.component for _, slot in placed])
        if criteria is not None and not any(path.startswith(_MAKERS) for path in self._sections.document.varied):
            self.check_criteria(placed, criteria or (ONLY,))
            self.score_names = score_names([slot.component for _, slot in placed], criteria or (ONLY,))
        return placed

    def check_criteria(self, placed: Sequence[Placed], allowed: Sequence[str]) -> None:
        """Report each component among *placed* that names a criterion that is not among *allowed*."""
        for path, slot in placed:
            for steps, name in (own_criteria(slot.component) or {}).items():
                if allowed and name not in allowed:
                    message = f"{slot.name} names the criterion {name!r}; choose from {', '.join(allowed)}"
                    self._sections.fault((*path, Part(slot.name), *steps), message, name, nearest(name, allowed))

    def baseline(self) -> Baseline | None:
        """Return the baseline; None if the file has none, or if it has faults."""
        content = self._sections.file.get("baseline")
        if content is None:  # not in the file, or removed by --set baseline=null
            return None
        compare: object = []
        if isinstance(content, Mapping):
            compare = content.get("compare", [])
            content = {key: value for key, value in content.items() if key != "compare"}
        baseline: Baseline | None = None
        with self._sections.structurer.at("baseline", faults=self._sections.faults):
            baseline = self._sections.structurer.structure(content, Baseline)
        listed = self._sections.components(("baseline", "compare"), compare, ("comparison",), Label)
        placed = [(path, self._sections.slot(path, built)) for path, built in listed]
        self._sections.check_labels(placed)
        self.check_criteria(placed, self.score_names)
        return baseline and attrs.evolve(baseline, compare=tuple(slot for _, slot in placed))
