"""Tallies of a run's events in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..events import (
    BATCH_EVENTS,
    BUDGET_THROTTLED,
    EVAL_COMPLETED,
    EVAL_FAILED,
    RECORD_COMPLETED,
    RECORD_FAILED,
    RUN_STARTED,
    SPEND_LOST,
    SPEND_SETTLED,
    SUBJECT_READ,
    TASK_REPLIED,
)
from ..plan.labels import recorded_labels, recorded_score_label
from ..plan.sections import METRICS, RECORD
from ..values import RECORDED_PREFIX, Basis, Cost, Event
from ..values.judged import JUDGED, JudgedRow, Records
from ..values.passes import PassRule
from ..values.score import zero_costs
from ..values.stop_reasons import output_ending
from .batches import Batches
from .caps import ThrottledCalls
from .corrected import Corrections
from .endings import EndingNotes
from .evidence import EvidenceNotes
from .failure_words import NO_JUDGE
from .failures import FailureTally
from .judged_rows import JudgedRows, count_judged, note_row
from .lowest import LowestScores
from .recorded import RecordedTally
from .spool import BATCH, Passes
from .statistics import aggregate_all
from .tally import FAILED_SHOWN, Group, Rows, Tally, Watched, add_names, is_example, overrun_labels, tier_of, weights_of
from .weighted import SubjectWeights


class Report:
    """Observer of a run's events, in order. :func:`~.document.document` writes its fields."""

    most_shown = FAILED_SHOWN

    def __init__(self) -> None:
        self.expected: int | None = None
        self.notices: list[str] = []
        self.started: Mapping[str, Any] = {}
        self.run_id = ""
        self.subjects = self.judged = self.scored = self.failed = self.unaffordable = 0
        self.failed_records = 0
        self.failures, self.subject_kinds, self.overruns = FailureTally(), Counter[str](), Counter[str]()
        self.weights = SubjectWeights()
        self.evidence = EvidenceNotes()
        self.endings = EndingNotes()
        self.tiers: Counter[str] = Counter(truth=0, proxy=0)
        self.metrics: dict[str, Tally] = {}
        self.judges: dict[str, Tally] = {}
        self.recorded: dict[str, RecordedTally] = {}
        self.spent, self.lost = zero_costs(), zero_costs()
        self.throttled = ThrottledCalls()
        self.watched: dict[str, Watched] = {}
        self.criteria: tuple[str, ...] = ()
        self.raw: set[str] = set()
        self.rule = PassRule()
        self._due_criteria: tuple[str, ...] = ()
        self.rows = Rows()
        self.corrections: Corrections | None = None
        self.batches = Batches()
        self.models: dict[str, set[str]] = {}
        self.adapted: dict[str, set[str]] = {}
        self.failed_shown: list[Mapping[str, object]] = []
        self.lowest = LowestScores()
        self.labels: tuple[str, ...] = ()
        self.score_label: str | None = None
        self.lowest_label: str | None = None
        self.counted: frozenset[str] = frozenset()
        self._group: Group | None = None
        self._completed: list[Event | JudgedRow] = []
        self._observers: dict[str, Callable[[Any], None]] = {
            RUN_STARTED: self._start,
            SUBJECT_READ: self._read,
            JUDGED: partial(note_row, self, self._completed),
            EVAL_COMPLETED: self._complete,
            EVAL_FAILED: self._fail,
            RECORD_COMPLETED: self._record,
            RECORD_FAILED: self._fail_record,
            SPEND_SETTLED: self._settle,
            SPEND_LOST: self._lose,
            BUDGET_THROTTLED: self.throttled.add,
            TASK_REPLIED: self._note_reply,
            **dict.fromkeys(BATCH_EVENTS, self.batches.observe),
        }

    def observe(self, event: Event) -> None:
        """Count one event."""
        self.observe_all((event,))

    def observe_all(self, events: Iterable[Event | JudgedRow]) -> None:
        """Count *events* in their order. Verdicts are tallied in batches, which is faster."""
        observer_of, completed = self._observers.get, self._completed
        for event in events:
            observer = observer_of(event.type)
            if observer is not None:
                observer(event)
                if len(completed) >= BATCH:
                    self._tally()
        self._tally()

    def close(self) -> None:
        """Count the subject of the last events."""
        group, self._group = self._group, None
        if group is None:
            return
        if group.skipped:
            self.unaffordable += 1
            return
        self.judged += 1
        if group.failure is not None:
            self.failed += 1
            self.failures.add(group.failure, group.origin)
        elif group.counted:
            self.scored += 1

    @property
    def share_scored(self) -> float | None:
        """The share of scored subjects among those that were to be scored; None if there are none."""
        due = self.scored + self.failed + self.unaffordable
        return self.scored / due if due else None

    def mean(self, label: str) -> float | None:
        """Return the mean of the scores of *label*; None without scores."""
        if label in self.criteria:
            return aggregate_all(self.watched[label].scores, "mean")
        return self.tally(label).mean()

    def basis(self, label: str) -> Basis | None:
        """Return the weakest basis of the scores of *label*; None if it is unknown, as for a criterion."""
        return self.tally(label).basis()

    def _start(self, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        self.started, self.run_id = payload, event.run_id
        self.rule = PassRule.of(payload)
        self.raw = set(payload.get("raw", ()))
        self.metrics = {label: Tally() for label in self._labels("metrics")}
        self.judges = {label: Tally() for label in [*self._labels("judges"), METRICS]}
        self.counted = frozenset(self._labels("counted"))
        self.labels, self.score_label = recorded_labels(payload), recorded_score_label(payload)
        self.lowest_label = next(iter(payload.get("gated") or ()), self.score_label)
        self.corrections = Corrections(payload) if payload.get("audit") else None
        watched = dict.fromkeys(
            [*self.labels, *payload.get("gated", ()), *([self.score_label] if self.score_label else ())]
        )
        judged_labels = {*self.metrics, *self.judges}
        self.criteria = tuple(x for x in watched if x not in judged_labels and not x.startswith(RECORDED_PREFIX))
        self._due_criteria = tuple(label for label in self.criteria if label in payload.get("labels", ()))
        for label in watched:
            passes = self.metrics[label].passes if label in self.metrics else Passes()
            states = label not in self.criteria and self.rule.states(label)
            self.watched[label] = Watched(passes=passes, flagged=states)

    def _labels(self, key: str) -> Sequence[str]:
        labels: Sequence[str] = self.started[key]
        return labels

    def _read(self, event: Event) -> None:
        self.subjects += 1
        if "weight" in event.payload:
            self.weights.note(event)
        if "failure" in event.payload:
            self.failed_records += 1
        else:
            self.subject_kinds[str(event.subject_kind)] += 1
        if "finish_reason" in event.payload and not self.started.get("task"):
            self.endings.note_output(event, output_ending({}, event.payload))

    def _complete(self, event: Event) -> None:
        self._completed.append(event)
        label = str(event.payload["judge"])
        if label.startswith(RECORDED_PREFIX):
            return
        self.evidence.note(label, event.payload)
        self.endings.note_verdict(label, event.payload)
        group = self._grouped(event, label)
        group.counted = group.counted or label in self.counted

    def _tally(self) -> None:
        """Count the pending verdicts, grouped by label. Without other verdicts and weights, rows that were judged directly are counted together."""
        if rows := [row for row in self._completed if isinstance(row, JudgedRow)]:
            count_judged(self, rows)
            if len(rows) == len(self._completed) and not self.weights:
                JudgedRows(self, rows).count()
                self._completed.clear()
                return
        pending: dict[str, list[Event | JudgedRow]] = {}
        for event in self._completed:
            pending.setdefault(str(event.payload["judge"]), []).append(event)
        self._completed.clear()
        for label, events in pending.items():
            if label.startswith(RECORDED_PREFIX):
                self._tally_recorded(label, events)
                continue
            sessions = [event.session_id for event in events]
            weights = self.weights.of(events)
            scores = self.judges.setdefault(label, Tally()).add(events, weights, raw=label in self.raw)
            for key, names in (("models", self.models), ("adapted", self.adapted)):
                for by_label in [event.payload[key] for event in events if key in event.payload]:
                    add_names(names, by_label)
            if label == METRICS:
                self._tally_metrics(events)
                if self.corrections is not None:
                    self.corrections.add(events)
            if (watched := self.watched.get(label)) is not None:
                watched.add(sessions, scores, [self.rule.verdict(label, event.payload) for event in events], weights)
                if label in self.raw:
                    spared = [event for event, score in zip(events, scores, strict=True) if score is None]
                    watched.scores.spare([event.session_id for event in spared], self.weights.of(spared))
            self._note_score(label, events, scores)

    def _note_score(self, label: str, events: Records, scores: Sequence[float | None]) -> None:
        """Count the tiers if *label* is the label of the run's score, and note the lowest *scores*."""
        if label == self.score_label:
            self.tiers.update([str(event.payload["tier"]) for event in events])
        self._note_worst(label, events, scores)

    def _tally_recorded(self, label: str, events: Records) -> None:
        """Count the scores of another tool. They make no subject judged or scored."""
        tally = self.recorded.setdefault(label, RecordedTally())
        numbers = tally.add(events, weights := self.weights.of(events))
        if tally.is_raw:
            self.raw.add(label)
        if (watched := self.watched.get(label)) is not None:
            passes = [self.rule.verdict(label, event.payload) for event in events]
            watched.add([event.session_id for event in events], numbers, passes, weights)
        self._note_score(label, events, numbers)

    def coverage(self, label: str) -> float | None:
        """Return the share of subjects that the watched *label* scored."""
        tally = self.recorded.get(label)
        return self.watched[label].coverage() if tally is None else tally.share(self.subject_kinds, self.failed_records)

    def _note_reply(self, event: Event) -> None:
        """Count the adaptations of a task's model. A ledger of digests has no replies."""
        reply: Any = event.payload.get("reply")
        if reply is not None and reply.get("adapted"):
            add_names(self.adapted, {"task": reply["adapted"]})

    def _tally_metrics(self, events: Records) -> None:
        payloads: list[Mapping[str, Any]] = [event.payload for event in events]
        valued: list[Mapping[str, float]] = [payload["signals"]["metrics"] for payload in payloads]
        basis_counts = Counter(
            [
                (item["metric"], item.get("basis") or item["tier"])
                for payload, values in zip(payloads, valued, strict=True)
                for item in payload["scores"]
                if item["metric"] in values or item["metric"] in self.raw  # scores from audits alone enter no mean
            ]
        )
        for (label, basis), count in basis_counts.items():
            self.metrics[label].bases[basis] += count
        for label in (label for payload in payloads for label in {skip["metric"] for skip in payload["skipped"]}):
            self.metrics[label].skipped += 1
        for spared in (spared for payload in payloads for spared in payload.get("spared", ())):
            tally = self.metrics[spared["metric"]]
            tally.spared += spared["runs"]
            self._add(tally.saved, spared)
        for label, tally in self.metrics.items():
            self._tally_metric(label, tally, self._judged_by(label, events))

    def _tally_metric(self, label: str, tally: Tally, events: Records) -> None:
        sessions = [event.session_id for event in events]
        place = "raw" if label in self.raw else "metrics"
        signals: list[Mapping[str, Any]] = [event.payload["signals"] for event in events]  # type: ignore[misc]  # structure of the payload
        values = [signal.get(place, {}).get(label) for signal in signals]
        weights = self.weights.of(events)
        tally.passes.add(sessions, [self.rule.metric(label, event.payload) for event in events], weights)
        tally.add_scores([value for value in values if value is not None], weights_of(values, weights))
        if label in (self.score_label, self.lowest_label):
            scored = [(event, value) for event, value in zip(events, values, strict=True) if value is not None]
            if label == self.score_label:
                self.tiers.update([tier_of(event.payload, label) for event, _ in scored])
            self._note_worst(label, [event for event, _ in scored], [v for _, v in scored])
        if (watched := self.watched.get(label)) is not None:
            watched.add_scores(sessions, values, weights)
            spared = [
                event
                for event, value in zip(events, values, strict=True)
                if value is None and label not in {skip["metric"] for skip in event.payload["skipped"]}  # type: ignore[union-attr]
            ]
            watched.scores.spare([event.session_id for event in spared], self.weights.of(spared))

    def tally(self, label: str) -> Tally | RecordedTally:
        """Return the running sums of *label*, a metric's or a verdict's; empty for a criterion."""
        return self.metrics.get(label) or self.judges.get(label) or self.recorded.get(label) or Tally()

    def _judged_by(self, label: str, events: Records) -> Records:
        """Return the *events* whose subjects have a kind that the metric *label* judges."""
        on = self.started.get("on", {}).get(label)
        return [event for event in events if event.subject_kind in on] if on else events

    def _note_worst(self, label: str, events: Records, scores: Sequence[float | None]) -> None:
        """Keep the lowest *scores* of the gate's label, or the score's, with their subjects; no raw values, as their best value is unknown."""
        if label == self.lowest_label and label not in self.raw:
            self.lowest.add(((event.subject_kind, event.subject_id) for event in events), scores)

    def _fail(self, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        label = str(payload["judge"])
        tally = self.judges.setdefault(label, Tally())
        tally.total += 1
        tally.failed += "skipped" not in payload
        tally.kinds[event.subject_kind] += 1
        for name, metric in self.metrics.items() if label == METRICS else ():
            failed = self._judged_by(name, [event])
            metric.passes.add([event.session_id for event in failed], [None] * len(failed), self.weights.of(failed))
        if (watched := self.watched.get(label)) is not None:
            watched.add([event.session_id], [None], [None], self.weights.of([event]))
        group = self._grouped(event, label)
        if "skipped" in payload:
            group.skipped = group.skipped or label in self.counted
            return
        add_names(self.adapted, payload.get("adapted", {}))
        self.endings.note_failure(label, event)
        self._show_failed(event, label, str(payload["failure_mode"]), payload["error_message"])
        if label in self.counted:
            group.fail(str(payload["failure_mode"]), payload.get("origin"))

    def _record(self, event: Event) -> None:
        """Count a record. Its subject is scored if every criterion of the file has a score."""
        self.rows.add(event)
        self.evidence.note_record(event.payload)
        self.endings.note_output(event, output_ending(event.payload))
        weights, metrics = self.weights.of([event]), event.payload["metrics"]
        for label in self.criteria:
            score = self.watched[label].add_record(event.session_id, metrics, label, weights)
            self._note_worst(label, [event], [score])
            if score is None and label in self._due_criteria:
                message = f"the record has no score of {label}"
                self._fail_criterion(event, label, "invalid_score", message)
        if self._due_criteria:
            self._grouped(event, RECORD).counted = True
        elif not self.counted:
            self.judged += 1
            self.scored += 1

    def _fail_record(self, event: Event) -> None:
        self.rows.fail(event)
        add_names(self.adapted, {"task": event.payload["adapted"]} if "adapted" in event.payload else {})
        mode = str(event.payload["failure_mode"])
        for label in self.criteria:
            self.watched[label].add_record(event.session_id, {}, label, self.weights.of([event]))
        if self._due_criteria:
            group = self._grouped(event, RECORD)
            group.fail(mode, NO_JUDGE)
        elif not self.counted:
            self.judged += 1
            self.failed += 1
            self.failures.add(mode, NO_JUDGE)
        if not self.counted:
            self._show_failed(event, NO_JUDGE, mode, event.payload["error"])

    def _fail_criterion(self, event: Event, label: str, mode: str, message: str) -> None:
        """Count the subject of *event* as failed, because its record lacks the score of the criterion *label*."""
        group = self._grouped(event, RECORD)
        group.fail(mode, NO_JUDGE)
        self._show_failed(event, label, mode, message)

    def _show_failed(self, event: Event, label: str, mode: str, message: object) -> None:
        if is_example(self.failed_shown, mode, event.payload.get("origin"), self.most_shown):
            subject = {"subject_kind": event.subject_kind, "subject_id": event.subject_id, "judge": label}
            origin = {"origin": event.payload["origin"]} if "origin" in event.payload else {}
            self.failed_shown.append({**subject, "failure_mode": mode, "error_message": message, **origin})

    def _grouped(self, event: Event, label: str) -> Group:
        key = (event.subject_kind, event.subject_id)
        group = self._group
        if group is None or group.key != key or (label in group.labels and group.event is not event):
            self.close()
            group = self._group = Group(key)
        group.labels.add(label)
        group.event = event
        return group

    def _settle(self, event: Event) -> None:
        self._add(self.spent, event.payload)
        self.overruns.update(overrun_labels(event.payload, self.started.get("task")))

    def _lose(self, event: Event) -> None:
        self._add(self.lost, event.payload)

    def _add(self, sums: dict[str, Cost], payload: Mapping[str, Any]) -> None:
        unit = payload["unit"]
        sums[unit] = Cost(payload["amount"], unit) + sums[unit]
