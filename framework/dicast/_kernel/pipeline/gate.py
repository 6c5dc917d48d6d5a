"""Section ``gate`` of a pipeline: one or more clauses, each about an existing label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..classes import evolve, frozen
from ..plan.clauses import Clause, Gate, GatedFile
from ..plan.labels import file_labels
from ..plan.sections import METRICS, Scoring, Slot
from ..values import RECORDED_PREFIX
from ..values.names import nearest
from .clause import part_bounds, read_clause
from .faults import Part
from .faults import Path as Address
from .parts import Placed, SectionBuilder
from .raw_scale import clause_faults, raw_labels

_BOUNDED = ("min_score", "max_score", "min_pass_rate")
"""Rules whose figures have an interval."""

_RULES = (*_BOUNDED, "min_basis")
"""Rules of the kernel that concern one label."""


@frozen
class GatedLabels:
    """Components and criteria whose labels a clause may name.

    :param score_names: the names that scores of records may have.
    :param criteria: the criteria of the task that have a score.
    :param is_open: True if records may have further labels, which a clause may name.
    """

    metrics: Sequence[Slot]
    judges: Sequence[Slot]
    score_names: Sequence[str]
    criteria: Sequence[str]
    is_open: bool

    @property
    def declared(self) -> tuple[str, ...]:
        """The labels that the file declares."""
        return file_labels(self.metrics, self.judges, self.criteria)

    @property
    def choices(self) -> str:
        """The labels that the file declares, and its single metrics, which a clause may name too, as words of a message."""
        metrics = [slot.label for slot in self.metrics]
        if not metrics:
            return " or ".join(self.declared)
        alone = f"{METRICS} ({metrics[0]} alone)"
        together = alone if len(metrics) == 1 else f"{METRICS} ({', '.join(metrics[:-1])} and {metrics[-1]} together)"
        others = [label for label in self.declared if label != METRICS]
        return f"{', '.join([together, *others])}, or a single metric: {', '.join(metrics)}"

    @property
    def of_slots(self) -> list[str]:
        """The labels of metrics and judges."""
        slots = (*self.metrics, *self.judges)
        return [*([METRICS] if self.metrics else []), *(slot.label for slot in slots)]

    @property
    def existing(self) -> list[str]:
        """The labels of metrics, judges and criteria."""
        return [*self.of_slots, *dict.fromkeys([*self.score_names, *self.criteria])]

    @property
    def audited(self) -> tuple[str, ...]:
        """The labels whose means audits can correct."""
        truths = [slot.label for slot in self.metrics if slot.tier == "truth"]
        return (METRICS, *truths) if self.metrics else ()


def _exists(label: str, existing: Sequence[str]) -> bool:
    """Return True if *label* exists, or may exist: only the data shows which scores another tool recorded."""
    return label in existing or label.startswith(RECORDED_PREFIX)


def gate_line(gate: Gate, labels: Sequence[str], label: str) -> float | None:
    """Return the line for the mean of *label* in *gate*, the lower line of a clause with two; None without a line.

    *labels* are the labels of the file; a clause without ``on`` is about the only label.
    """
    clauses = (clause for clause in gate.clauses if (clause.on or only_label(labels)) == label)
    lines = (clause.max_score if clause.min_score is None else clause.min_score for clause in clauses)
    return next((line for line in lines if line is not None), None)


def only_label(labels: Sequence[str]) -> str | None:
    """Return the only label of *labels*; None if there are several, or none."""
    return labels[0] if len(labels) == 1 else None


def clause_place(file: Mapping[str, object], index: int) -> Address:
    """Return the address of the clause number *index* in *file*."""
    return ("gate", index) if isinstance(file.get("gate"), list) else ("gate",)


class GateSection:
    """Builder of the section ``gate`` of a pipeline."""

    def __init__(self, sections: SectionBuilder) -> None:
        self._sections, self._file = sections, sections.file

    def read(self) -> Gate:
        """Return the gate; clauses with faults are left out."""
        section = self._file.get("gate")
        if section is None:  # not in the file, or removed by --set gate=null
            return Gate()
        if not isinstance(section, list):
            return Gate(tuple(self._read_clause(("gate",), section)) or (Clause(),))
        if not section:
            self._sections.fault(("gate",), "gate is a clause or a list of them, and this list is empty; remove it")
        return Gate(
            tuple(clause for at, item in enumerate(section) for clause in self._read_clause(("gate", at), item))
        )

    def _read_clause(self, path: Address, item: object) -> list[Clause]:
        """Return the clause at *path*, in a list; an empty list if it has faults."""
        clauses, structurer = list[Clause](), self._sections.structurer
        with structurer.at(*path, faults=self._sections.faults):
            clauses.append(read_clause(structurer, item))
        self._check_rules(path, item, part_bounds(clauses[0].parts) if clauses else ())
        return [evolve(clause, coverage_note=self._coverage_note(path, item)) for clause in clauses]

    def _coverage_note(self, path: Address, item: object) -> str:
        """Return the text for the reason about coverage: if the value is the default, and which of several clauses it is about."""
        default = "" if isinstance(item, Mapping) and "min_coverage" in item else "the default"
        section = self._file["gate"]
        if not isinstance(section, list) or len(section) == 1:
            return default
        file, line, _ = self._sections.document.place_parts(path)
        number = f"clause {int(path[1]) + 1}"
        place = number if line is None or file.startswith("<") else f"{number}, {file}:{line}"
        return f"{default} of {place}" if default else place

    def _check_rules(self, path: Address, item: object, bounds: Sequence[str]) -> None:
        """Report a clause without a rule. The only clause of a file has at least ``min_coverage``, and may name the score's label.

        *bounds* are the values of ``bound`` that the rules of plugins take.
        """
        if not isinstance(item, Mapping) or item.get("bound") in bounds:
            return
        if item.get("bound") == "test":
            message = (
                "bound: test needs a clause with baseline and max_drop; min_score and max_score take bound: interval"
            )
            self._sections.fault((*path, "bound"), message, "test")
        elif "bound" in item and not any(rule in item for rule in _BOUNDED):
            message = f"bound needs one of {', '.join(_BOUNDED)}, but this clause has none"
            self._sections.fault((*path, "bound"), message, item["bound"])
        elif item.get("bound") == "anytime" and not any(rule in item for rule in _BOUNDED[:2]):
            message = "bound: anytime needs min_score or max_score; no early stop watches a pass rate"
            self._sections.fault((*path, "bound"), message, item["bound"])
        elif {*item} <= {"on"} and len(path) > 1:
            rules = ", ".join((*_RULES, "min_coverage"))
            self._sections.fault(path, f"this clause of the gate has no rule; add one of {rules}")

    def check(self, gate: Gate, scoring: Scoring, labels: GatedLabels, components: Sequence[Placed]) -> None:
        """Report clauses, and label options of *components*, that name no existing label, and rules without figures."""
        if self._sections.faults:
            return  # the labels of components with faults are unknown
        declared, existing = labels.declared, labels.existing
        for path, slot in components:
            for option, names in getattr(slot.component, "label_options", {}).items():
                for label in (label for label in names if not _exists(label, existing)):
                    self._report_label((*path, Part(slot.name), option), f"{option} of {slot.name}", label, existing)
        for index, clause in enumerate(gate.clauses):
            path = clause_place(self._file, index)
            if clause.on is None:
                self._check_on(path, clause, labels)
            elif not _exists(clause.on, existing) and not labels.is_open:
                self._report_label((*path, "on"), "gate.on", clause.on, existing)
            on = clause.on or only_label(declared)
            has_unit_scale = on in labels.of_slots and on not in raw_labels(labels.metrics)
            if has_unit_scale:
                self._check_bounds(path, clause)
            file = GatedFile(on, scoring.audit is not None, labels.audited, has_unit_scale, self._key_places(path))
            self._check_parts(path, clause, file)
        for index, option, message in clause_faults(gate, labels.metrics, only_label(declared)):
            self._sections.fault((*clause_place(self._file, index), option), message)

    def _check_parts(self, path: Address, clause: Clause, file: GatedFile) -> None:
        """Report the faults that plugins find in their keys of *clause*."""
        for part in clause.parts:
            for key, message in part.faults(clause, file):
                self._sections.fault((*path, key), message, self._value(path, key))

    def _key_places(self, path: Address) -> dict[str, str]:
        """Return the file and the line of each rule of the clause at *path*."""
        places = {key: self._sections.document.place((*path, key), key=True) for key in _RULES}
        return {key: f"{place.file}:{place.line}" for key, place in places.items()}

    def _value(self, path: Address, key: str) -> object:
        """Return the value of *key* in the clause at *path*, as the file has it."""
        item: object = self._file["gate"]
        if isinstance(item, list):
            item = item[int(path[1])]
        return item.get(key) if isinstance(item, Mapping) else None

    def _report_label(self, path: Address, place: str, label: str, existing: Sequence[str]) -> None:
        message = f"{place} must be the label of a metric, a judge or a criterion, or {METRICS!r}"
        message = f"{message}: {label!r} is none of these (labels: {', '.join(existing) or 'none'})"
        self._sections.fault(path, message, label, nearest(label, existing))

    def _check_on(self, path: Address, clause: Clause, labels: GatedLabels) -> None:
        """Report a *clause* about one label without ``on``, in a file without exactly one label."""
        rules = [rule for rule in _RULES if getattr(clause, rule) is not None]
        rules += [key for part in clause.parts if (key := part.label_key) is not None]
        if not rules or len(labels.declared) == 1:
            return
        rule = rules[0]
        message = (
            f"{rule} needs one label, but the file has several; set on to {labels.choices}"
            if labels.declared
            else f"without metrics and judges there is no score for {rule}; set gate.on to a criterion"
        )
        self._sections.fault((*path, rule), message, self._value(path, rule))

    def _check_bounds(self, path: Address, clause: Clause) -> None:
        """Report a line that no mean of a metric or a judge can reach; only criteria have their own scales."""
        for rule in _BOUNDED[:2]:
            value = getattr(clause, rule)
            if value is not None and not 0 <= value <= 1:
                message = f"invalid value for {rule}, expected a number from 0 to 1, got {value:g}"
                self._sections.fault((*path, rule), message, value)
