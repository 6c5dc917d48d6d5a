"""The section ``gate`` of one pipeline: one clause or several, each about a label that exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ..plan.clauses import CARD_BARS, Clause, Gate
from ..plan.sections import METRICS, Slot
from ..values.names import nearest
from .experiment import ExperimentParts
from .faults import Part
from .faults import Path as Address
from .labels import file_labels, score_label
from .parts import Placed
from .raw_scale import clause_faults, raw_labels

_BOUNDED = ("min_score", "max_score", "min_pass_rate")
"""The rules whose figures have an interval."""


_RULES = (*_BOUNDED, "min_basis", "require_card")
"""The rules that are about one label."""


def gate_line(gate: Gate, labels: Sequence[str], label: str) -> float | None:
    """Return the line that *gate* holds the mean of *label* against, the least where a clause has two; None without a line.

    *labels* are those of the file: a clause without ``on`` is about the only one.
    """
    mine = (clause for clause in gate.clauses if (clause.on or _only(labels)) == label)
    lines = (clause.max_score if clause.min_score is None else clause.min_score for clause in mine)
    return next((line for line in lines if line is not None), None)


def _only(labels: Sequence[str]) -> str | None:
    return labels[0] if len(labels) == 1 else None


class GateParts(ExperimentParts):
    """Builds and checks the section ``gate`` of one pipeline."""

    def _gate(self) -> Gate:
        given = self._file.get("gate")
        if given is None:  # not in the file, or removed by --set gate=null
            return Gate()
        if isinstance(given, list):
            return self._clauses(given)
        clause = self._section("gate", Clause, Clause())
        self._check_rules(("gate",), given, alone=True)
        return Gate((clause,))

    def _clauses(self, given: Sequence[object]) -> Gate:
        clauses = list[Clause]()
        for index, item in enumerate(given):
            with self._structurer.at("gate", index, faults=self.faults):
                clauses.append(self._structurer.structure(item, Clause))
            self._check_rules(("gate", index), item, alone=False)
        if not given:
            self._fault(("gate",), "gate is a clause or a list of them, and this list is empty: leave it out")
        return Gate(tuple(clauses))

    def _check_rules(self, path: Address, given: object, *, alone: bool) -> None:
        """Find a clause that asks for nothing; one that is *alone* asks for coverage at least, and may say what the score is about."""
        if not isinstance(given, Mapping):
            return
        rules = ", ".join((*_RULES, "min_coverage"))
        if "bound" in given and not any(rule in given for rule in _BOUNDED):
            message = f"bound is about {', '.join(_BOUNDED)}, and this clause has none of them"
            self._fault((*path, "bound"), message, given["bound"])
        elif (bar := next((name for name in CARD_BARS if name in given), None)) and "require_card" not in given:
            message = f"{bar} is a line that a judge card is held against: name the card with require_card: FILE"
            self._fault((*path, bar), message, given[bar])
        elif given.get("corrected") and not any(rule in given for rule in _BOUNDED[:2]):
            message = "corrected is about min_score and max_score, and this clause has neither"
            self._fault((*path, "corrected"), message, given["corrected"])
        elif given.get("corrected") and given.get("bound") == "anytime":
            self._fault(
                (*path, "bound"),
                "what audits have corrected has no interval at any time: bound: interval",
                given["bound"],
            )
        elif given.get("bound") == "anytime" and not any(rule in given for rule in _BOUNDED[:2]):
            message = "bound: anytime is about min_score and max_score: no early stop watches a pass rate"
            self._fault((*path, "bound"), message, given["bound"])
        elif {*given} <= {"on"} and not alone:
            self._fault(path, f"this clause of the gate has no rule: add one of {rules}")

    def _check_stops(
        self, stops: Sequence[Placed], gate: Gate, source: Slot | None, labels: Sequence[str], raw: Sequence[str]
    ) -> None:
        """Find an early stop that needs a random order, a line or scores in [0, 1] that the file lacks, and a clause that needs such a stop."""
        if self.faults:
            return  # labels of components that could not be built are not known
        counting = [(path, slot) for path, slot in stops if getattr(slot.component, "needs_shuffle", False)]
        for at, slot in counting if source is not None and source.shuffle is None else ():
            message = f"{slot.name} holds for rows in random order: add shuffle: SEED (a whole number) to the source's options"
            self._fault(at, message)
        for at, slot in counting:
            on = slot.component.on
            if on in raw:
                message = f"{slot.name} is about scores in [0, 1], and {on} gives any number: give its metric a range"
                self._fault(at, message)
            needs_line = on is not None and getattr(slot.component, "needs_line", False)
            if needs_line and gate_line(gate, labels, on) is None:
                message = f"{slot.name} has no line to decide about: add at: LINE, or a gate on {slot.component.on} with min_score or max_score"
                self._fault(at, message)
        watched = [slot.component.on for _, slot in counting]
        for index, clause in enumerate(gate.clauses):
            on = clause.on or _only(labels)
            if clause.bound == "anytime" and on is not None and on not in watched:
                message = f"bound: anytime needs an early stop that makes its interval: early_stop: [{{trust/anytime: {{on: {on}, at: …}}}}]"
                self._fault((*self._place(index), "bound"), message, clause.bound)

    def _with_label(self, stops: Sequence[Placed], gate: Gate, labels: Sequence[str]) -> list[Placed]:
        """Return *stops*; one that watches the run's score has its label as ``on``. Find one where the score has no label."""
        label, found = score_label(gate, labels), list[Placed]()
        for at, slot in stops:
            component = slot.component
            if not getattr(component, "needs_score", False):
                found.append((at, slot))
                continue
            has_on = getattr(component, "needs_shuffle", False)  # such a stop has an option ``on``
            if label is None and (len(labels) > 1 or has_on):
                there = f"the file has several labels ({', '.join(labels)})" if labels else "the file declares no label"
                self._fault(at, f"{slot.name} watches the run's score, and {there}: say which with gate: {{on: LABEL}}")
            named = attrs.evolve(component, on=label) if has_on else component
            found.append((at, attrs.evolve(slot, component=named)))
        return found

    def _check_gate(
        self, gate: Gate, metrics: Sequence[Slot], judges: Sequence[Slot], others: Sequence[Placed], *, open_ended: bool
    ) -> None:
        """Hold the labels of the clauses, and those that *others* name, against those that there are; with *open_ended* records may have further ones, which a clause may be about."""
        if self.faults:
            return  # labels of components that could not be built are not known
        labels = [*([METRICS] if metrics else []), *(slot.label for slot in (*metrics, *judges))]
        known, raw = [*labels, *dict.fromkeys([*self._scored, *self._criteria])], raw_labels(metrics)
        own = file_labels(metrics, judges, self._criteria)
        for path, slot in others:
            for option, named in getattr(slot.component, "label_options", {}).items():
                for label in (each for each in named if each not in known):
                    self._fault_of_label((*path, Part(slot.name), option), f"{option} of {slot.name}", label, known)
        for index, clause in enumerate(gate.clauses):
            path = self._place(index)
            if clause.on is None:
                self._check_on(path, clause, own)
            elif clause.on not in known and not open_ended:
                self._fault_of_label((*path, "on"), "gate.on", clause.on, known)
            on = clause.on or _only(own)
            if on in labels and on not in raw:
                self._check_shares(path, clause)
            if clause.corrected:
                self._check_corrected(path, clause, metrics, on)

        for index, option, message in clause_faults(gate, metrics, _only(own)):
            self._fault((*self._place(index), option), message)

    def _place(self, index: int) -> Address:
        return ("gate", index) if isinstance(self._file.get("gate"), list) else ("gate",)

    def _fault_of_label(self, path: Address, what: str, label: str, known: Sequence[str]) -> None:
        message = f"{what} is the label of a metric, a judge or a criterion, or {METRICS!r}"
        message = f"{message}: {label!r} is none (there is: {', '.join(known) or 'none'})"
        self._fault(path, message, label, nearest(label, known))

    def _check_corrected(self, path: Address, clause: Clause, metrics: Sequence[Slot], on: str | None) -> None:
        """Find a clause on a corrected mean that no audit corrects."""
        audited = [METRICS, *(slot.label for slot in metrics if slot.tier == "truth")] if metrics else []
        scoring = self._file.get("scoring")
        if not isinstance(scoring, Mapping) or scoring.get("audit") is None:
            message = "corrected needs audits: add scoring: {audit: {rate: 0.05}}"
        elif on is not None and on not in audited:
            message = f"audits correct the mean of {', '.join(audited) or 'metrics'}, not of {on!r}"
        else:
            return
        self._fault((*path, "corrected"), message, clause.corrected)

    def _check_on(self, path: Address, clause: Clause, labels: Sequence[str]) -> None:
        """Find a *clause* that is about one label and names none, where the file does not have exactly one."""
        rule = next((rule for rule in _RULES if getattr(clause, rule) is not None), None)
        if rule is None or len(labels) == 1:
            return
        message = (
            f"{rule} is about one label, and the file has several: set on to {' or '.join(labels)}"
            if labels
            else f"there is no score to hold {rule} against, without metrics and judges: set gate.on to a criterion"
        )
        self._fault((*path, rule), message, getattr(clause, rule))

    def _check_shares(self, path: Address, clause: Clause) -> None:
        """Find a mean that no label of a metric or a judge can have; only criteria have scales of their own."""
        for rule in _BOUNDED[:2]:
            value = getattr(clause, rule)
            if value is not None and not 0 <= value <= 1:
                message = f"invalid value for {rule}, expected a number from 0 to 1, got {value:g}"
                self._fault((*path, rule), message, value)
