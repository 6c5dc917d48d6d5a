"""The sections of an experiment (document 002): what makes records, what reads them, and what a run is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import attrs

from ..plan.sections import Baseline, Label, Slot
from ..values import ONLY
from ..values.names import nearest
from .faults import Part
from .labels import scored_criteria
from .parts import Placed, SectionBuilder
from .slots import clash, named, names, scored

_MAKERS = ("define", "task", "extractors")
"""The sections that say which criteria there are: where experiments of a suite change them, each may have others."""


class ExperimentParts(SectionBuilder):
    """Builds the sections ``extractors`` and ``baseline`` of one pipeline."""

    _criteria: tuple[str, ...] = ()
    """The criteria of the task for which an extractor writes a score."""
    _scored: Sequence[str] = ()
    """The names that scores may have; none where the file does not say."""

    def _extractors(self, task: Slot | None) -> list[Placed]:
        placed = self._labelled("extractors", "extractor")
        for (_, other), (path, slot) in combinations(placed, 2):
            if leaf := clash(slot.component, other.component):
                message = f"{slot.label} and {other.label} ({other.path}) both write metrics.{leaf}; give one of them "
                self._fault((*path, Part(slot.name)), f"{message}another place, or other criteria")
        criteria = names(getattr(task and task.component, "criteria", None))
        if criteria is not None:
            self._criteria = scored_criteria(criteria, [slot.component for _, slot in placed])
        if criteria is not None and not any(path.startswith(_MAKERS) for path in self._document.varied):
            self._check_criteria(placed, criteria or (ONLY,))
            self._scored = scored([slot.component for _, slot in placed], criteria or (ONLY,))
        return placed

    def _check_criteria(self, placed: Sequence[Placed], known: Sequence[str]) -> None:
        for path, slot in placed:
            for steps, name in (named(slot.component) or {}).items():
                if known and name not in known:
                    message = f"{slot.name} names the criterion {name!r}; those that it can name: {', '.join(known)}"
                    self._fault((*path, Part(slot.name), *steps), message, name, nearest(name, known))

    def _baseline(self) -> Baseline | None:
        given = self._file.get("baseline")
        if given is None:  # not there, or taken away by --set baseline=null
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
        self._check_criteria(placed, self._scored)
        return baseline and attrs.evolve(baseline, compare=tuple(slot for _, slot in placed))
