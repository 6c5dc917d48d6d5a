"""Numbers of subjects that pass in one of two runs and not in the other, as reports, dashboard, compare and CI show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any

import attrs

from ..classes import frozen
from ..events import RECORD_COMPLETED, RECORD_ENDS, RUN_STARTED, VERDICT_ENDS
from ..plan.labels import recorded_labels, recorded_score_label
from ..plan.sections import METRICS
from ..values import Entry, Event, Query, Record, Results
from ..values.passes import PASS_AT, PassRule, SubjectKey, SubjectPasses
from .comparable import changed_subjects
from .contents import ledger_contents
from .ends import RunEnds, read_ends

Read = Callable[[Query], Iterator[Entry]]

SCORE = "score"
"""Label of a record's only score if the record does not name it."""


@frozen
class PassCounts:
    """Numbers of subjects that pass in two runs, among the subjects that the runs judged under one *label*.

    *a* and *b* pass in that run alone, *both* and *neither* in both or neither run. *open* subjects were judged in both runs, and at least
    one run has no answer: a failed judgment, or a judgment that did not fit into the budget. *unpaired_a* and *unpaired_b* were judged in
    that run alone.
    """

    label: str
    a: int = 0
    b: int = 0
    both: int = 0
    neither: int = 0
    open: int = 0
    unpaired_a: int = 0
    unpaired_b: int = 0

    @property
    def known(self) -> int:
        """The number of subjects with an answer in both runs."""
        return self.a + self.b + self.both + self.neither

    @property
    def words(self) -> str:
        """The counts as a sentence that names the label."""
        if not self.known:
            text = f"{self.label}: no subject has an answer in both runs"
        elif not self.a + self.b:
            text = f"{self.label}: no subject passes in one run and not in the other, of {self.known:,}"
        else:
            text = f"{self.label}: {self.b:,} pass in B alone, {self.a:,} in A alone, of {self.known:,}"
        parts = [
            (self.open, "open in one run or both"),
            (self.unpaired_a, "judged in A only"),
            (self.unpaired_b, "judged in B only"),
        ]
        return "; ".join([text, *(f"{count:,} {noun}" for count, noun in parts if count)])

    def json(self) -> dict[str, object]:
        """Return the counts and the sentence for a document."""
        return {**attrs.asdict(self), "known": self.known, "words": self.words}


@frozen
class PassChange:
    """A subject that passes under *label* in one of two runs, *a* or *b*, and not in the other."""

    subject: SubjectKey
    label: str
    a: bool
    b: bool


@frozen
class PairedPasses:
    """Two runs with the answer for each subject, both by the pass rule of the newer run.

    *labels* are the labels of both runs, *label* first. *label* is the label of the newer run's gate, else of its score; None if
    the newer run has several labels and selects none. *changed* are subjects of both runs with another input or reference, which are no pairs.
    """

    labels: tuple[str, ...]
    label: str | None
    a: SubjectPasses
    b: SubjectPasses
    changed: frozenset[SubjectKey] = frozenset()

    @property
    def assumed(self) -> frozenset[str]:
        """The labels with neither flags nor a line; a score of one half passes under them."""
        return frozenset(self.a.assumed & self.b.assumed)

    def counts(self, label: str) -> PassCounts:
        """Count the subjects under *label*."""
        return self._counts(label, self._tally())

    def counted(self) -> dict[str, PassCounts]:
        """Return the counts of each label."""
        tally = self._tally()
        return {label: self._counts(label, tally) for label in self.labels}

    def _tally(self) -> Counter[tuple[bytes | None, bytes | None]]:
        """Count the subjects with equal rows of codes in both runs. A row is None if the subject is no pair, or not in the run."""
        tally, rows_a, rows_b = Counter[tuple[bytes | None, bytes | None]](), self.a.rows, self.b.rows
        for subject, row in rows_a.items():
            row_b = None if subject in self.changed else rows_b.get(subject)
            tally[bytes(row), None if row_b is None else bytes(row_b)] += 1
        for subject, row in rows_b.items():
            if subject in self.changed or subject not in rows_a:
                tally[None, bytes(row)] += 1
        return tally

    def _counts(self, label: str, tally: Counter[tuple[bytes | None, bytes | None]]) -> PassCounts:
        pairs = {(False, False): 0, (False, True): 0, (True, False): 0, (True, True): 0}
        unknown = unpaired_a = unpaired_b = 0
        for (row_a, row_b), count in tally.items():
            is_in_a, passed_a = self.a.answer(row_a, label)
            is_in_b, passed_b = self.b.answer(row_b, label)
            unpaired_a += count if is_in_a and not is_in_b else 0
            unpaired_b += count if is_in_b and not is_in_a else 0
            if is_in_a and is_in_b:
                if passed_a is None or passed_b is None:
                    unknown += count
                else:
                    pairs[passed_a, passed_b] += count
        a, b, both, neither = pairs[True, False], pairs[False, True], pairs[True, True], pairs[False, False]
        return PassCounts(label, a, b, both, neither, unknown, unpaired_a, unpaired_b)

    def change(self, subject: SubjectKey, label: str) -> PassChange | None:
        """Return the change of *subject* under *label*; None if there is none, or it is unknown."""
        if subject in self.changed:
            return None
        passed_a, passed_b = self.a.get(subject, label), self.b.get(subject, label)
        return (
            None
            if passed_a is None or passed_b is None or passed_a is passed_b
            else PassChange(subject, label, passed_a, passed_b)
        )

    def changes(self) -> Iterator[PassChange]:
        """Yield every change, in the order of the first run's subjects, then of the labels."""
        for subject in self.a.rows:
            for label in self.labels:
                if (change := self.change(subject, label)) is not None:
                    yield change


def pair_passes(a: Results, b: Results) -> PairedPasses:
    """Pair the subjects of the runs *a* and *b* by kind and id.

    Both are counted by the rule of the run that started last. The rule of a file may be unknown; the other run's rule applies then.
    """
    key = (PairedPasses, a.run_id)
    if key not in b.kept:
        newer, older = (a, b) if (a.started_at or 0) > (b.started_at or 0) else (b, a)
        rule = _rule(newer) or _rule(older)
        b.kept[key] = _paired(rule, run_passes(a, rule), run_passes(b, rule), changed_subjects(a, b))
    pairs: PairedPasses = b.kept[key]
    return pairs


def _rule(run: Results) -> PassRule | None:
    return run.rule or (PassRule(run.pass_at) if run.pass_at else None)


def pair_runs(read: Read, a: str, b: str) -> PairedPasses | None:
    """Pair the subjects of the runs with the ids *a* and *b*, as :func:`pair_passes` does; None if the ledger lacks one of the runs.

    :param read: the ledger's ``read``.
    """
    starts = [next(iter(read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None) for run_id in (a, b)]
    if starts[0] is None or starts[1] is None:
        return None
    rules = [recorded_rule(starts[0].event.payload), recorded_rule(starts[1].event.payload)]
    rule = rules[starts[1].seq > starts[0].seq]
    changed = changed_subjects(*(_read_content(read, start.event) for start in starts if start is not None))
    return _paired(rule, ledger_passes(read, a, rules[0], rule), ledger_passes(read, b, rules[1], rule), changed)


def _read_content(read: Read, start: Event) -> Results:
    """Return the fingerprints and the digests of the contents of the run that *start* began, without its records."""
    started: Mapping[str, Any] = start.payload
    return Results(
        str(start.run_id),
        str(started.get("name")),
        lambda: iter(()),
        started["fingerprints"],
        contents=partial(ledger_contents, read, str(start.run_id), started),
    )


def _paired(
    rule: PassRule | None, subjects_a: SubjectPasses, subjects_b: SubjectPasses, changed: frozenset[SubjectKey]
) -> PairedPasses:
    differing = subjects_a.assumed ^ subjects_b.assumed  # a line of only one run allows no comparison
    shared = [label for label in subjects_b.labels if label in subjects_a.labels and label not in differing]
    rule_labels = rule.labels if rule is not None else ()
    label = None if rule is None else rule.label
    metrics = [] if rule is None else [*rule.metrics]
    if len(metrics) == 1 and metrics[0] in shared:  # the only metric has the same answers as all metrics together
        shared = [name for name in shared if name != METRICS]
        label = metrics[0] if label == METRICS else label
    if label is None and len(shared) == 1:
        label = shared[0]
    order = [*([label] if label in shared else []), *(name for name in rule_labels if name in shared), *shared]
    return PairedPasses(tuple(str(name) for name in dict.fromkeys(order)), label, subjects_a, subjects_b, changed)


def pass_counts(a: Results, b: Results) -> dict[str, PassCounts]:
    """Count the subjects that pass in the runs *a* and *b*, by label, the gate's label first."""
    return pair_passes(a, b).counted()


def run_passes(run: Results, rule: PassRule | None) -> SubjectPasses:
    """Return whether each subject of *run* passes by *rule*. A file of records has only its scores and flags.

    If a label of a file has neither flags nor a line, a score of at least :data:`PASS_AT` passes, provided that the record has no other score.
    """
    if run.passes is not None:
        return run.passes(rule)
    subjects, alone = SubjectPasses(), dict[str, dict[SubjectKey, float]]()
    for subject_id, record in run.records():
        subject = str(record.get("subject_kind", "row")), subject_id
        if not _put_record(subjects, subject, record, rule) and (only := _only_score(record)) is not None:
            alone.setdefault(only[0], {})[subject] = only[1]
    for label, scores in alone.items():
        has_flags = label in subjects.labels
        subjects.assumed.update(() if has_flags else (label,))
        for subject, score in scores.items():
            subjects.put(subject, label, passed=None if has_flags else score >= PASS_AT)
    return subjects


def _only_score(record: Record) -> tuple[str, float] | None:
    """Return the label and value of the record's only score; None if there are several, or none."""
    metrics = _mapping(record.get("metrics"))
    scores = _mapping(metrics.get("scores"))
    named = scores if SCORE not in metrics else {next(iter(scores), SCORE): metrics[SCORE]}
    label, score = next(iter(named.items()), (SCORE, None))
    return (label, float(score)) if len(scores) < 2 and _is_number(score) else None  # type: ignore[arg-type]


def recorded_rule(started: Mapping[str, Any]) -> PassRule:
    """Return the rule of passing in the payload of ``run.started``."""
    label = next(iter(started.get("gated") or ()), recorded_score_label(started))
    return attrs.evolve(PassRule.of(started), labels=recorded_labels(started), label=label)


def ledger_passes(
    read: Read,
    run_id: str,
    run_rule: PassRule,
    rule: PassRule | None,
    *,
    ends: Callable[[], RunEnds | None] | None = None,
) -> SubjectPasses:
    """Return whether each subject of the run passes by *rule*. *run_rule* is the rule of the run, with the metrics that judged it.

    The newest verdict or failure of each label counts. A subject without a record is open under every label of the file.

    :param ends: returns the verdicts and failures of the run, if other readers need them too.
    """
    applied_rule, subjects = run_rule if rule is None else rule.over(run_rule), SubjectPasses()
    compact = read_ends(read, run_id) if ends is None else ends()
    if compact is not None:
        _put_ends(subjects, compact, applied_rule)
        return subjects
    for entry in read(Query(run_id=run_id, types=(*RECORD_ENDS, *VERDICT_ENDS))):
        event = entry.event
        subject = str(event.subject_kind), str(event.subject_id)
        if event.type in VERDICT_ENDS:
            _put_verdict(subjects, subject, event.payload, applied_rule)
        elif event.type == RECORD_COMPLETED:
            _put_record(subjects, subject, event.payload, applied_rule)
        else:
            for label in run_rule.labels:
                subjects.put(subject, label, passed=None)
    return subjects


def _put_ends(subjects: SubjectPasses, ends: RunEnds, rule: PassRule) -> None:
    """Put the verdicts and failures *ends*. Equal judgments of subjects of one kind are decided once."""
    codes = dict[tuple[str, int], Mapping[int, int]]()
    for subject, number in zip(ends.subjects, ends.numbers, strict=True):
        key = subject[0], number
        if key not in codes:
            codes[key] = subjects.codes(_answers(subject[0], ends.shapes[number][1], rule))
        subjects.put_codes(subject, codes[key])


def _put_verdict(subjects: SubjectPasses, subject: SubjectKey, payload: Mapping[str, Any], rule: PassRule) -> None:
    subjects.put_codes(subject, subjects.codes(_answers(subject[0], payload, rule)))


def _answers(kind: str, payload: Mapping[str, Any], rule: PassRule) -> dict[str, bool | None]:
    """Return whether a subject of *kind* passes under the label of a verdict or failure, and under each metric if it is of all metrics."""
    label = str(payload["judge"])
    answers = {label: rule.verdict(label, payload)}
    for metric, kinds in rule.metrics.items() if label == METRICS else ():
        if not kinds or kind in kinds:
            answers[metric] = rule.metric(metric, payload)
    return answers


def _put_record(subjects: SubjectPasses, subject: SubjectKey, record: Record, rule: PassRule | None) -> bool:
    """Put the flags of a *record*, else its scores by the lines of *rule*; return True if it has any answer."""
    metrics = _mapping(record.get("metrics"))
    flags, scores = (_mapping(metrics.get(name)) for name in ("score_flags", "scores"))
    answers = {criterion: bool(flag) for criterion, flag in flags.items() if flag is not None}
    by_line = {criterion: _passed(criterion, score, rule) for criterion, score in scores.items()}
    if (label := record.get("scored_by")) is not None:
        by_line[str(label)] = _passed(str(label), metrics.get(SCORE), rule)
        if label == METRICS and rule is not None and rule.every:
            by_line[METRICS] = rule.verdict(METRICS, _as_verdict(subject[0], scores, metrics.get(SCORE), rule))
    answers = {criterion: passed for criterion, passed in by_line.items() if passed is not None} | answers
    for criterion, passed in answers.items():
        subjects.put(subject, criterion, passed=passed)
    return bool(answers)


def _as_verdict(kind: str, scores: Mapping[str, object], score: object, rule: PassRule) -> Mapping[str, Any]:
    """Return a record's scores as the verdict of all metrics; metrics without a score count as skipped, because a record has no reasons."""
    values = {label: scores[label] for label in rule.metrics if _is_number(scores.get(label))}
    skipped = [{"metric": label} for label in rule.metrics if label not in values]
    return {"subject_kind": kind, "score": score, "signals": {"metrics": values}, "skipped": skipped}


def _passed(label: str, score: object, rule: PassRule | None) -> bool | None:
    return rule.passes(label, float(score)) if rule is not None and _is_number(score) else None  # type: ignore[arg-type]


def _mapping(value: object) -> Mapping[str, object]:
    return {str(name): item for name, item in value.items()} if isinstance(value, Mapping) else {}


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]
