"""What came of each subject of a run, by label, out of its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from math import isfinite
from typing import Any

import attrs

from .._kernel.events import EVAL_STARTED, RECORD_ENDS, RUN_STARTED, SUBJECT_READ, VERDICT_ENDS
from .._kernel.pipeline.labels import recorded_score_label
from .._kernel.values import Event, weakest
from .._kernel.values.passes import TOLERANCE, PassRule
from .._kernel.values.rationale import RATIONALE, SCOPE
from .._kernel.values.stop_reasons import output_ending
from ..toolkit.table_texts import TableTexts
from .figures import figure

ALL_METRICS = "metrics"
"""The label of what all metrics together say of a subject."""

RECORD = "record"
"""The label of a run that judges nothing: whether a record of the row was completed."""

_WORD = 60
"""A longer text is no word."""

_Key = tuple[str | None, str | None]


@attrs.frozen
class Outcome:
    """What one *label* came to for one subject: a *score*, or the kind of its *failure*, or why it was *skipped*.

    *pass_at* is the least score that passes. A criterion, a record, and all metrics together where each has to pass have none; their *flag*
    is whether they pass, where that is known. *raw* is the value of a label on a scale of its own, which has no score. *spared* is a metric that was skipped, which lies in what all metrics together come to. *basis* is what the score rests on; *reason* what was said of it, or why it failed; *cost_usd* what it cost, as decimal text, None
    where that is not known or not told apart; *milliseconds* how long it took; *finish_reason* the word for the end of a judge's last reply, if it is recorded.
    """

    label: str
    pass_at: float | None
    score: float | None = None
    raw: float | None = None
    flag: bool | None = None
    basis: str | None = None
    failure: str | None = None
    skipped: str | None = None
    spared: bool = False
    reason: str | None = None
    cost_usd: str | None = None
    milliseconds: int | None = None
    finish_reason: str | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the score is at least *pass_at*, or what the *flag* says; None without either."""
        if self.value is None or self.pass_at is None:
            return self.flag
        return self.value >= self.pass_at - TOLERANCE

    @property
    def value(self) -> float | None:
        """The score, or the raw value."""
        return self.raw if self.score is None else self.score

    @property
    def is_open(self) -> bool:
        """Whether there is no verdict: it failed, or was skipped and not *spared*. Such an outcome neither passes nor fails to."""
        return self.failure is not None or (self.skipped is not None and not self.spared)

    @property
    def did_not_pass(self) -> bool:
        """Whether the score is under its line, the flag is false, or there is no verdict. A score without a line or a flag says neither."""
        return self.passed is False or self.is_open

    @property
    def shortfall(self) -> str:
        """Of an outcome that does not pass: its score, and what it is below."""
        is_whole = self.label == ALL_METRICS and self.pass_at is None
        below = "as not every metric passes" if is_whole else "flagged as failing"
        below = below if self.pass_at is None else f"below {self.pass_at:g}"
        return below if self.value is None else f"{figure(self.value)}, {below}"


@attrs.frozen
class JudgedSubject:
    """A subject with the outcome of every label, in the order of the pipeline.

    *content* is the judged content, if the ledger has it; *finish_reason* is the word for the end of the output, if it is known.
    """

    kind: str
    id: str
    session_id: str | None
    outcomes: Mapping[str, Outcome]
    content: Mapping[str, Any] | None = None
    finish_reason: str | None = None

    def is_open(self, labels: Sequence[str]) -> bool:
        """Return whether some of *labels* have no verdict, and none of the others is under its line: the subject has not failed to pass."""
        own = [self.outcomes[label] for label in labels if label in self.outcomes]
        return any(one.is_open for one in own) and not any(one.passed is False for one in own)

    def worst(self, labels: Sequence[str]) -> Outcome | None:
        """Of *labels* the first that failed, else the first under its *pass_at*, else the first that was skipped; None where all passed."""
        found = [self.outcomes[label] for label in labels if label in self.outcomes]
        return min((one for one in found if one.did_not_pass), key=_rank, default=None)


def _rank(one: Outcome) -> int:
    return 0 if one.failure is not None else 1 if one.passed is False else 2


@attrs.define
class _Told:
    """What the events of a subject have said so far."""

    kind: str
    id: str
    session_id: str | None
    begun: bool = False
    content: Mapping[str, Any] | None = None
    read: Mapping[str, Any] | None = None
    record: Mapping[str, Any] = attrs.field(factory=dict)
    ended: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)


class OutcomeReader:
    """Reads the subjects of a run out of its events; memory holds those that are not finished."""

    wants = (RUN_STARTED, SUBJECT_READ, EVAL_STARTED, *RECORD_ENDS, *VERDICT_ENDS)

    def __init__(self) -> None:
        self.started: Mapping[str, Any] | None = None
        self._rule = PassRule()
        self._told: dict[_Key, _Told] = {}
        self._newest: _Key | None = None
        self._texts: TableTexts | None = None
        self._criteria: dict[str, None] = {}

    @property
    def labels(self) -> list[str]:
        """The labels of the run: of all metrics together, of each, and of the judges, or :data:`RECORD` where it has none; and the criteria so far."""
        return [*self._judging, *self._criteria]

    @property
    def counted(self) -> list[str]:
        """The labels that decide whether a subject passes: those of the gate and of the score, else all; where nothing judges, its record and all criteria."""
        if self.started is None:
            return []
        label, gated = recorded_score_label(self.started), self.started.get("gated", ())
        counted = [*self.started["counted"]] or self.labels
        if self.started["counted"] and (label is not None or gated):
            counted = [] if label is None else [label]
        return [*dict.fromkeys([*counted, *gated])]

    @property
    def _judging(self) -> list[str]:
        if self.started is None:
            return []
        metrics = self.started["metrics"]
        return [*([ALL_METRICS] if metrics else []), *metrics, *self.started["judges"]] or [RECORD]

    def take(self, events: Sequence[Event]) -> list[JudgedSubject]:
        """Note *events*; return the subjects that are finished with them, in the order in which they were read.

        A subject that is judged again in a resumed run comes last.
        """
        for event in events:
            if event.type == RUN_STARTED:
                if self.started is None:
                    self.started, self._texts = event.payload, TableTexts(event.payload, records=True)
                    self._rule = PassRule.of(event.payload)
            elif event.type in self.wants:
                self._note(event)
        done = [] if self._newest is None else [*takewhile(self._newest.__ne__, self._told)]
        return [self._finished(key) for key in done]

    def end(self) -> list[JudgedSubject]:
        """The subjects that are left, without those that were about to be judged when the run stopped."""
        left = [key for key, told in self._told.items() if told.ended or told.record or not told.begun]
        return [self._finished(key) for key in left]

    def _note(self, event: Event) -> None:
        key = event.subject_kind, event.subject_id
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = _Told(str(event.subject_kind), str(event.subject_id), event.session_id)
        payload: Any = event.payload
        if event.type == SUBJECT_READ:
            told.content = payload.get("content")
            told.read = None if (self.started or {}).get("task") else payload
        elif event.type == EVAL_STARTED:
            told.begun = True
        else:
            self._newest = key
            if event.type in VERDICT_ENDS:
                told.ended[str(payload["judge"])] = payload
            else:
                told.record = payload

    def _finished(self, key: _Key) -> JudgedSubject:
        told = self._told.pop(key)
        outcomes = {outcome.label: outcome for outcome in self._outcomes(told)}
        whole = outcomes.get(ALL_METRICS)
        if whole is not None and whole.passed is False and self.started is not None:
            low = [outcomes[label] for label in self.started["metrics"] if label in outcomes]
            outcomes[ALL_METRICS] = attrs.evolve(
                whole, reason="; ".join(_in_words(one) for one in low if not one.passed)
            )
        ending = output_ending(told.record, told.read)
        return JudgedSubject(told.kind, told.id, told.session_id, outcomes, told.content, ending)

    def _outcomes(self, told: _Told) -> Iterator[Outcome]:
        if self.started is None or self._texts is None:
            return
        texts, started = self._texts.found(None, told.ended, told.record), self.started
        judging = self._judging
        for label in judging:
            reason: Any = texts.get(self._texts.reasons[label])
            line = None if label == RECORD else self._rule.line(label)
            outcome = Outcome(label, line, reason=reason and str(reason))
            said = told.ended.get(ALL_METRICS if label in started["metrics"] else label)
            if told.kind not in (started.get("on", {}).get(label) or (told.kind,)):  # where none is named, any
                continue
            if said is None:
                yield from _of_record(outcome, told.record)
            elif label in started["metrics"]:
                yield _of_metric(outcome, said)
            else:
                flag = self._rule.verdict(label, said) if line is None else None
                yield attrs.evolve(_of_verdict(outcome, said), flag=flag)
        for found in _of_criteria(told.record.get("metrics")):
            if found.label not in judging:
                self._criteria.setdefault(found.label)
                yield found


def facts(signals: Mapping[str, Any]) -> str:
    """Those of a judge's *signals* that are a number or a word, such as ``mean turn score 0.7222``: what it went by, where it gave no reason."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else f'{value:.4g}'}"
        for name, value in signals.items()
        if (isinstance(value, str) and len(value) < _WORD and name not in (RATIONALE, SCOPE))
        or (isinstance(value, int | float) and not isinstance(value, bool))
    )


def _in_words(metric: Outcome) -> str:
    """What lowers the score of all metrics together."""
    said = f": {metric.reason}" if metric.reason else ""
    return f"{metric.label} {metric.skipped or figure(metric.value)}" + ("" if metric.skipped else said)


def _of_criteria(metrics: object) -> Iterator[Outcome]:
    """The outcomes of the criteria that a record's *metrics* name."""
    found = metrics if isinstance(metrics, Mapping) else {}
    scores, flags = (one if isinstance(one := found.get(name), Mapping) else {} for name in ("scores", "score_flags"))
    for label in dict.fromkeys([*scores, *flags]):
        score: Any = scores.get(label)
        flag = flags.get(label)
        known = type(score) in (int, float) and isfinite(score)
        skipped = None if known or flag is not None else "the record has no score of it"
        yield Outcome(label, None, score if known else None, flag=None if flag is None else bool(flag), skipped=skipped)


def _of_record(outcome: Outcome, record: Mapping[str, Any]) -> Iterator[Outcome]:
    """The outcome of a label that has judged nothing: that of the task, where it failed or nothing judges what it made."""
    if "failure_mode" in record:
        yield attrs.evolve(outcome, failure=record["failure_mode"], reason=record.get("error"))
    elif record and outcome.label == RECORD:
        yield attrs.evolve(outcome, flag=True)


def _of_verdict(outcome: Outcome, said: Mapping[str, Any]) -> Outcome:
    """The outcome of a label with a verdict of its own."""
    ending = said.get("finish_reason") or (said.get("signals") or {}).get("finish_reason")
    outcome = attrs.evolve(
        outcome,
        cost_usd=said.get("judge_cost_usd"),
        milliseconds=said.get("judge_latency_ms"),
        finish_reason=ending if isinstance(ending, str) else None,
    )
    if "failure_mode" not in said:
        reason = outcome.reason or said["signals"].get(RATIONALE) or facts(said["signals"]) or None
        return attrs.evolve(outcome, score=said["score"], raw=said.get("raw"), basis=said.get("basis"), reason=reason)
    if (cap := said.get("skipped")) is not None:
        return attrs.evolve(outcome, skipped=f"no room in the budget: {cap}")
    return attrs.evolve(outcome, failure=said["failure_mode"], reason=said.get("error_message"))


def _of_metric(outcome: Outcome, said: Mapping[str, Any]) -> Outcome:
    """The outcome of one metric, out of what all of them together came to."""
    label = outcome.label
    if "failure_mode" in said:
        if said.get("skipped") is None and outcome.reason is not None:  # which stands with the metric that failed
            return attrs.evolve(outcome, failure=said["failure_mode"])
        why = "the subject has no verdict of its metrics together"
        return attrs.evolve(outcome, skipped=why, spared=True, reason=None)
    value, raw = said["signals"]["metrics"].get(label), said["signals"].get("raw", {}).get(label)
    if value is None and raw is None:
        failed = any(skip["metric"] == label for skip in said["skipped"])
        return attrs.evolve(outcome, skipped=outcome.reason or "not asked", spared=not failed)
    items = [item for item in said["scores"] if item["metric"] == label]
    bases = [item.get("basis") or item["tier"] for item in items]
    return attrs.evolve(outcome, score=value, raw=raw, basis=weakest(bases) if bases else None)
