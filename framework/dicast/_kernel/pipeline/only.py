"""Restriction of a pipeline to some labels: the option ``--only`` of ``dicast run``."""

from __future__ import annotations

from collections.abc import Sequence

from ..classes import evolve
from ..plan.clauses import GATE_LEFT_OUT, Gate
from ..plan.labels import file_labels
from ..plan.sections import METRICS, Scoring
from ..values.names import nearest
from .gate import only_label
from .parts import Placed, SectionBuilder


class OnlyLabels:
    """Restriction of a pipeline to the metrics and judges with the labels *only*; all of them if it is empty.

    *warnings* are the warnings for the run's document, each with its kind.
    """

    def __init__(self, sections: SectionBuilder, only: Sequence[str]) -> None:
        self._sections, self._only = sections, frozenset(only)
        self._left_out: dict[str, list[str]] = {}
        self._declared: tuple[str, ...] = ()
        self.warnings: list[tuple[str, str]] = []

    def keep(
        self, metrics: list[Placed], judges: list[Placed], criteria: Sequence[str]
    ) -> tuple[list[Placed], list[Placed]]:
        """Return the metrics and the judges with the labels, and report a label that the file lacks."""
        if not self._only or self._sections.faults:
            return metrics, judges
        labels = [slot.label for _, slot in (*metrics, *judges)]
        known = [*([METRICS] if metrics else []), *labels]
        for name in sorted(self._only - set(known)):
            message = f"--only: the file has no metric or judge {name!r}; it has {', '.join(known)}"
            self._sections.fault((), message, name, nearest(name, known))
        kept_metrics = metrics if METRICS in self._only else [item for item in metrics if item[1].label in self._only]
        kept_judges = [item for item in judges if item[1].label in self._only]
        dropped = [
            slot.label
            for _, slot in (*metrics, *judges)
            if all(slot is not kept for _, kept in (*kept_metrics, *kept_judges))
        ]
        self._check_children(kept_judges, dropped)
        self._declared = file_labels([slot for _, slot in metrics], [slot for _, slot in judges], criteria)
        parts = [slot.label for _, slot in metrics if slot.label in dropped]
        self._left_out = {label: [label] for label in dropped} | ({METRICS: parts} if parts else {})
        if dropped:
            message = f"--only {' --only '.join(sorted(self._only))}: not judged: {', '.join(dropped)}"
            self.warnings.append(("only", message))
        return kept_metrics, kept_judges

    def _check_children(self, judges: list[Placed], dropped: Sequence[str]) -> None:
        """Report a judge that reads the verdicts of a label that is not judged."""
        for path, slot in judges:
            if (child := getattr(slot.component, "children", None)) in dropped:
                message = f"--only {slot.label}: {slot.label} reads the verdicts of {child}; add --only {child}"
                self._sections.fault(path, message, slot.label)

    def scoring(self, metrics: Sequence[Placed]) -> Scoring:
        """Return the section ``scoring``; without a number in ``pass_at`` if *metrics* is one of several.

        The number is about the score of all metrics together. The metric that is left passes at its own line, as in a run without ``--only``.
        """
        scoring: Scoring = self._sections.section("scoring", Scoring, Scoring())
        is_one_of_several = len(metrics) == 1 and METRICS in self._left_out
        return evolve(scoring, pass_at=Scoring().pass_at) if is_one_of_several else scoring

    def gate(self, gate: Gate) -> Gate:
        """Return *gate*; without clauses if any of them is about a label that is not judged, or judged in part."""
        about = {label for clause in gate.clauses if (label := clause.on or only_label(self._declared)) is not None}
        missing = dict.fromkeys(part for label in sorted(about) for part in self._left_out.get(label, ()))
        if not missing:
            return gate
        message = f"gate: not applied: --only left out {', '.join(missing)}, which it needs"
        self.warnings.append((GATE_LEFT_OUT, message))
        return Gate()
