"""Rule by which subjects pass, and the passes of a run, by label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from ..classes import define, evolve, field, frozen

TOLERANCE = 1e-9
"""A number that is less than this below a line counts as on it: three scores of .7 have a mean of .7 despite rounding."""

PASS_AT = 0.5
"""The score with which a subject passes if neither the file nor the component sets one."""

METRICS = "metrics"
"""The label of the combined verdict of all metrics."""

Labels = tuple[str, ...]
Payload = Mapping[str, Any]
"""The payload of an ``eval.completed`` or ``eval.failed`` event."""

_NONE: Mapping[str, Any] = {}

_ABSENT, _FAILS, _PASSES, _OPEN = range(4)
_CODES = {False: _FAILS, True: _PASSES, None: _OPEN}
_MEANINGS = {_FAILS: False, _PASSES: True, _OPEN: None}

SubjectKey = tuple[str, str]
"""A subject's kind and id."""


@frozen
class PassRule:
    """Rule by which a subject passes a label, for the document, the gate, JUnit and every report; of two runs the newer rule applies.

    An answer is True, False, or None if the subject is open: it has no verdict, or a metric was skipped or excluded and no other metric fails.

    :param pass_at: the least score with which a subject passes, by label; None for a raw label without one, and for all metrics together if each has to pass.
    :param labels: the labels of the file: ``metrics``, each judge, each criterion of the task.
    :param label: the label of the gate, else of the run's score; None if the file has several labels and no gate names one.
    :param metrics: the kinds of subjects that each metric judges, by label; empty for all kinds.
    :param weights: the weights of the metrics, by label.
    :param truths: the labels of the truth metrics.
    :param threshold: the least value of every proxy with which the truth metrics run.
    :param every: all metrics together pass if each metric with a weight passes; otherwise the combined score is compared.
    :param truth_only: the proxies do not enter the score, so their part of the rule is the threshold.
    """

    pass_at: Mapping[str, float | None] = field(factory=dict)
    labels: tuple[str, ...] = ()
    label: str | None = None
    metrics: Mapping[str, tuple[str, ...]] = field(factory=dict)
    weights: Mapping[str, float] = field(factory=dict)
    truths: frozenset[str] = frozenset()
    threshold: float = 0.5
    every: bool = False
    truth_only: bool = False
    _by_kind: dict[str, tuple[Labels, Labels]] = field(factory=dict, init=False, repr=False, eq=False)

    @classmethod
    def of(cls, started: Mapping[str, Any]) -> Self:
        """Read the payload of ``run.started``; a payload of an older version, without ``pass_rule``, compares the combined score."""
        stated = started.get("pass_rule") or {}
        on = started.get("on") or {}
        return cls(
            started.get("pass_at") or {},
            metrics={label: tuple(on.get(label) or ()) for label in started.get("metrics", ())},
            weights=stated.get("weights", {}),
            truths=frozenset(stated.get("truths", ())),
            threshold=stated.get("threshold", 0.5),
            every=stated.get("metrics") == "all",
            truth_only=stated.get("combine") == "truth",
        )

    def stated(self) -> dict[str, Any]:
        """Return the rule as JSON data, which :meth:`of` reads."""
        rule = {
            "metrics": "all" if self.every else "score",
            "combine": "truth" if self.truth_only else "all",
            "threshold": self.threshold,
            "weights": dict(self.weights),
            "truths": sorted(self.truths),
        }
        on = {label: list(kinds) for label, kinds in self.metrics.items()}
        return {"metrics": list(self.metrics), "on": on, "pass_at": dict(self.pass_at), "pass_rule": rule}

    def over(self, other: PassRule) -> PassRule:
        """Return this rule for the verdicts of the run that recorded the *other* rule; the metrics are the other rule's."""
        weights = {label: self.weights.get(label, weight) for label, weight in other.weights.items()}
        return evolve(self, metrics=other.metrics, weights=weights, truths=other.truths or self.truths)

    def passes(self, label: str, score: float) -> bool | None:
        """Return whether *score* passes under *label*; None if the label has no line."""
        line = self.pass_at.get(label)
        return None if line is None else score >= line - TOLERANCE

    def states(self, label: str) -> bool:
        """Return whether the rule determines which subjects pass *label*; False for a raw label without a line."""
        return (label == METRICS and self.every) or self.line(label) is not None

    def line(self, label: str) -> float | None:
        """Return the least value with which a subject passes *label*; None without a line, as for all metrics under ``pass_at: all``."""
        return None if label == METRICS and self.every else self.pass_at.get(label, PASS_AT)

    def reaches(self, label: str, value: float | None) -> bool | None:
        """Return whether *value* passes *label*; None without a value or a line."""
        line = self.line(label)
        return None if value is None or line is None else value >= line - TOLERANCE

    def verdict(self, label: str, payload: Payload) -> bool | None:
        """Return whether the verdict *payload* of *label*, all metrics together or a judge, passes."""
        if "failure_mode" in payload:
            return None
        if label != METRICS:
            return self.reaches(label, payload["score"])
        if not self.every:
            score = payload["score"] if payload["score"] is not None else payload.get("raw")
            return False if score is None else self.reaches(METRICS, score)  # only a raw value may be held back
        return self._every(payload)

    def metric(self, label: str, payload: Payload) -> bool | None:
        """Return whether the metric *label* passes in the verdict *payload* of all metrics; False if the proxies held it back."""
        if "failure_mode" in payload or not self.states(label):
            return None
        value = values_of(payload).get(label)
        if value is not None:
            return self.reaches(label, value)
        is_open = _is_skipped(label, payload) and not (label in self.truths and self._held_back(payload))
        return None if is_open else False

    def _every(self, payload: Payload) -> bool | None:
        """Return whether every metric with a weight passes.

        False if one of them does not, the proxies held the subject back, or its output is missing: a metric without a value cannot change that.
        """
        values = values_of(payload)
        proxies, truths = self._due(str(payload["subject_kind"]))
        missing = [label for label in (*proxies, *truths) if label not in values]
        if any(not _is_skipped(label, payload) for label in missing) or (missing and self._held_back(payload)):
            return False
        is_gate = self.truth_only and bool(truths)
        counted = [label for label in (truths if is_gate else (*proxies, *truths)) if self.weights.get(label, 1.0)]
        is_below = is_gate and self._lowest(proxies, values) < self.threshold - TOLERANCE
        if is_below or not all(self.reaches(label, values[label]) for label in counted if label in values):
            return False
        return None if any(label in missing for label in counted) else True

    def _held_back(self, payload: Payload) -> bool:
        """Return whether no truth metric has a value because a proxy is below the threshold."""
        values = values_of(payload)
        proxies, truths = self._due(str(payload["subject_kind"]))
        return not any(label in values for label in truths) and self._lowest(proxies, values) < self.threshold

    @staticmethod
    def _lowest(proxies: Labels, values: Mapping[str, float]) -> float:
        return min((values[label] for label in proxies if label in values), default=1.0)

    def _due(self, kind: str) -> tuple[Labels, Labels]:
        """Return the proxies and the truth metrics that accept subjects of *kind*."""
        tiers = self._by_kind.get(kind)
        if tiers is None:
            due = [label for label, kinds in self.metrics.items() if not kinds or kind in kinds]
            proxies, truths = ([label for label in due if (label in self.truths) is tier] for tier in (False, True))
            tiers = self._by_kind[kind] = tuple(proxies), tuple(truths)
        return tiers


def values_of(payload: Payload) -> Mapping[str, float]:
    """Return the value of each metric in the verdict *payload* of all metrics, raw values included."""
    signals = payload.get("signals") or _NONE
    raw: Mapping[str, float] = signals.get("raw") or _NONE
    values: Mapping[str, float] = signals.get("metrics") or _NONE
    return {**values, **raw} if raw else values


def _is_skipped(label: str, payload: Payload) -> bool:
    return any(skip["metric"] == label for skip in payload.get("skipped") or ())


@define(eq=False)
class SubjectPasses:
    """Passes of a run's subjects under each label, in the order in which the subjects were first recorded.

    *labels* are numbered; a subject's row has a code for each, so that a run of a million subjects fits into memory. *assumed* are the labels
    of a file of records that has neither flags nor a line for them: there a score of one half passes.
    """

    labels: dict[str, int] = field(factory=dict)
    rows: dict[SubjectKey, bytearray] = field(factory=dict)
    assumed: set[str] = field(factory=set)

    def put(self, subject: SubjectKey, label: str, *, passed: bool | None) -> None:
        """Record whether *subject* passes under *label*, None if it is open. The newest answer replaces older ones."""
        self.put_codes(subject, self.codes({label: passed}))

    def codes(self, answers: Mapping[str, bool | None]) -> Mapping[int, int]:
        """Return the codes of *answers*, which are by label, for :meth:`put_codes`: subjects with equal answers share them."""
        return {self.labels.setdefault(label, len(self.labels)): _CODES[passed] for label, passed in answers.items()}

    def put_codes(self, subject: SubjectKey, codes: Mapping[int, int]) -> None:
        """Record the answers of *subject* by their :meth:`codes`. The newest answer of a label replaces older ones."""
        row = self.rows.setdefault(subject, bytearray())
        if len(row) <= (last := max(codes)):
            row.extend(bytes(last + 1 - len(row)))
        for column, code in codes.items():
            row[column] = code

    def answer(self, row: Sequence[int] | None, label: str) -> tuple[bool, bool | None]:
        """Return whether the subject with the codes *row* was judged under *label*, and whether it passes; None if it is open."""
        column = self.labels.get(label)
        if row is None or column is None or column >= len(row) or row[column] == _ABSENT:
            return False, None
        return True, _MEANINGS[row[column]]

    def is_judged(self, subject: SubjectKey, label: str) -> bool:
        """Return whether the run judged *subject* under *label*; an open subject was judged."""
        return self.answer(self.rows.get(subject), label)[0]

    def get(self, subject: SubjectKey, label: str) -> bool | None:
        """Return whether *subject* passes under *label*; None if it is open, or if the run has no answer."""
        return self.answer(self.rows.get(subject), label)[1]

    def subjects(self, label: str) -> Iterator[SubjectKey]:
        """Yield the subjects that the run judged under *label*, open subjects included."""
        return (subject for subject, row in self.rows.items() if self.answer(row, label)[0])


def only_metric(done: Mapping[str, Any]) -> str | None:
    """Return the only metric of the document *done* if all metrics together have the same mean and passes, so that one line shows both."""
    metrics, whole = dict(done["metrics"]), done["labels"].get(METRICS)
    if len(metrics) != 1 or whole is None:
        return None
    ((name, figures),) = metrics.items()
    is_same = figures["mean"] == whole["mean"] and figures.get("passes") == whole.get("passes")
    return name if is_same else None


def shown_label(done: Mapping[str, Any], label: str) -> str:
    """Return the name of *label* in the document *done* for a reader: all metrics together have the name of the only metric, if both have the same mean and passes."""
    return (only_metric(done) if label == METRICS else None) or label
