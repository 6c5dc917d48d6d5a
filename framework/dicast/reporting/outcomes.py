"""Outcomes of the subjects of a run by label, read from its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from math import isfinite
from typing import Any

import attrs

from .._kernel.events import EVAL_STARTED, RECORD_ENDS, RUN_STARTED, SUBJECT_READ, VERDICT_ENDS
from .._kernel.plan.labels import recorded_score_label
from .._kernel.report.failure_words import failure_words
from .._kernel.values import ALL_METRICS, Event, weakest
from .._kernel.values.passes import TOLERANCE, PassRule
from .._kernel.values.rationale import RATIONALE, SCOPE
from .._kernel.values.stop_reasons import output_ending
from ..toolkit.table_texts import TableTexts
from .figures import figure

RECORD = "record"
"""The label of a run without judges and metrics: a row passes if its record was completed."""

_WORD = 60
"""Texts of signals below this length are shown as facts."""

_CALLS = ("attempts", "cut_replies", "finish_reason")
"""Signals about the calls of a judge."""

_Key = tuple[str | None, str | None]


@attrs.frozen
class Outcome:
    """Outcome of one *label* for one subject: a *score*, the kind of its *failure*, or the reason why it was *skipped*.

    *pass_at* is the least score that passes. It is None for criteria, for records, and for all metrics together if each metric has to pass:
    then *flag* is True if the outcome passes, None if that is unknown. *raw* is a raw score, in place of a *score*. *spared* marks a skipped
    metric that the score of all metrics accounts for. *basis* is the basis of the score, *reason* the judge's reason or the reason of the
    failure. *cost_usd* is the cost as decimal text, or None if it is unknown or not recorded separately; *milliseconds* is the duration;
    *finish_reason* is the endpoint's reason for the end of a judge's last reply, if it is recorded. *origin* is ``task`` if the failure is of the
    task, ``record`` if nothing judges the record that is missing.
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
    origin: str | None = None

    @property
    def failure_words(self) -> str:
        """The kind of the failure in words, by the component that failed; empty without a failure."""
        return "" if self.failure is None else failure_words(self.failure, self.origin)

    @property
    def passed(self) -> bool | None:
        """True if the score is at least *pass_at*, else the *flag*; None without either."""
        if self.value is None or self.pass_at is None:
            return self.flag
        return self.value >= self.pass_at - TOLERANCE

    @property
    def value(self) -> float | None:
        """The score, or the raw value."""
        return self.raw if self.score is None else self.score

    @property
    def is_open(self) -> bool:
        """True if there is no verdict: the judgment failed, or was skipped and not *spared*."""
        return self.failure is not None or (self.skipped is not None and not self.spared)

    @property
    def did_not_pass(self) -> bool:
        """True if the score is below *pass_at*, the flag is false, or there is no verdict. False for a score without *pass_at* and flag."""
        return self.passed is False or self.is_open

    @property
    def shortfall(self) -> str:
        """The score of an outcome that does not pass, and its threshold."""
        is_whole = self.label == ALL_METRICS and self.pass_at is None
        below = "as not every metric passes" if is_whole else "flagged as failing"
        below = below if self.pass_at is None else f"below {self.pass_at:g}"
        return below if self.value is None else f"{figure(self.value)}, {below}"


@attrs.frozen
class JudgedSubject:
    """A subject with the outcome of every label, in the order of the pipeline.

    *content* is the judged content with the output of a task, if the ledger has it; *finish_reason* is the endpoint's reason for the end of the output, if it is known.
    """

    kind: str
    id: str
    session_id: str | None
    outcomes: Mapping[str, Outcome]
    content: Mapping[str, Any] | None = None
    finish_reason: str | None = None

    def is_open(self, labels: Sequence[str]) -> bool:
        """Return True if a label of *labels* has no verdict and no label is below its threshold, so it is unknown whether the subject passes."""
        outcomes = [self.outcomes[label] for label in labels if label in self.outcomes]
        return any(outcome.is_open for outcome in outcomes) and not any(outcome.passed is False for outcome in outcomes)

    def worst(self, labels: Sequence[str]) -> Outcome | None:
        """Return the first of *labels* that failed, else the first below its *pass_at*, else the first that was skipped; None if all passed."""
        outcomes = [self.outcomes[label] for label in labels if label in self.outcomes]
        return min((outcome for outcome in outcomes if outcome.did_not_pass), key=_rank, default=None)


def _rank(outcome: Outcome) -> int:
    return 0 if outcome.failure is not None else 1 if outcome.passed is False else 2


@attrs.define
class _SubjectState:
    """State of a subject, collected from its events so far."""

    kind: str
    id: str
    session_id: str | None
    is_started: bool = False
    content: Mapping[str, Any] | None = None
    read: Mapping[str, Any] | None = None
    record: Mapping[str, Any] = attrs.field(factory=dict)
    verdicts: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)


class OutcomeReader:
    """Reader of a run's subjects from its events. It keeps unfinished subjects in memory."""

    wants = (RUN_STARTED, SUBJECT_READ, EVAL_STARTED, *RECORD_ENDS, *VERDICT_ENDS)

    def __init__(self) -> None:
        self.started: Mapping[str, Any] | None = None
        self._rule = PassRule()
        self._states: dict[_Key, _SubjectState] = {}
        self._newest: _Key | None = None
        self._texts: TableTexts | None = None
        self._criteria: dict[str, None] = {}

    @property
    def labels(self) -> list[str]:
        """The labels of the run: all metrics together, each metric, and the judges, or :data:`RECORD` without any of them; then the criteria so far."""
        return [*self._judging, *self._criteria]

    @property
    def counted(self) -> list[str]:
        """The labels that decide whether a subject passes: the labels of the score and of the gate, else all labels.

        :attr:`only_metric` replaces all metrics together.
        """
        if self.started is None:
            return []
        label, gated = recorded_score_label(self.started), self.started.get("gated", ())
        counted = [*self.started["counted"]] or self.labels
        if self.started["counted"] and (label is not None or gated):
            counted = [] if label is None else [label]
        only = {ALL_METRICS: self.only_metric}
        return [*dict.fromkeys(only.get(label) or label for label in (*counted, *gated))]

    @property
    def only_metric(self) -> str | None:
        """The only metric of a run whose subjects pass all metrics together by this metric's own line; None in other runs."""
        metrics = [*(self.started or {"metrics": ()})["metrics"]]
        is_same = len(metrics) == 1 and (
            self._rule.every or self._rule.line(ALL_METRICS) == self._rule.line(metrics[0])
        )
        return metrics[0] if is_same else None

    @property
    def _judging(self) -> list[str]:
        if self.started is None:
            return []
        metrics = self.started["metrics"]
        return [*([ALL_METRICS] if metrics else []), *metrics, *self.started["judges"]] or [RECORD]

    def take(self, events: Sequence[Event]) -> list[JudgedSubject]:
        """Add *events*; return the subjects that they finish, in the order in which the subjects were read.

        A subject that is judged again in a resumed run comes last.
        """
        for event in events:
            if event.type == RUN_STARTED:
                if self.started is None:
                    self.started, self._texts = event.payload, TableTexts(event.payload, records=True)
                    self._rule = PassRule.of(event.payload)
            elif event.type in self.wants:
                self._note(event)
        done = [] if self._newest is None else [*takewhile(self._newest.__ne__, self._states)]
        return [self._finished(key) for key in done]

    def end(self) -> list[JudgedSubject]:
        """Return the remaining subjects, without subjects whose judgments had only started when the run stopped."""
        rest = [key for key, state in self._states.items() if state.verdicts or state.record or not state.is_started]
        return [self._finished(key) for key in rest]

    def _note(self, event: Event) -> None:
        key = event.subject_kind, event.subject_id
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _SubjectState(str(event.subject_kind), str(event.subject_id), event.session_id)
        payload: Any = event.payload
        if event.type == SUBJECT_READ:
            state.content = payload.get("content")
            state.read = None if (self.started or {}).get("task") else payload
        elif event.type == EVAL_STARTED:
            state.is_started = True
        else:
            self._newest = key
            if event.type in VERDICT_ENDS:
                state.verdicts[str(payload["judge"])] = payload
            else:
                state.record = payload

    def _finished(self, key: _Key) -> JudgedSubject:
        state = self._states.pop(key)
        outcomes = {outcome.label: outcome for outcome in self._outcomes(state)}
        all_metrics = outcomes.get(ALL_METRICS)
        if all_metrics is not None and all_metrics.passed is False and self.started is not None:
            low = [outcomes[label] for label in self.started["metrics"] if label in outcomes]
            outcomes[ALL_METRICS] = attrs.evolve(
                all_metrics, reason="; ".join(_in_words(metric) for metric in low if not metric.passed)
            )
        ending = output_ending(state.record, state.read)
        if all_metrics is not None and (only := self.only_metric) in outcomes:
            outcomes[str(only)] = _with_verdict(outcomes[str(only)], all_metrics)
        content = _with_output(state.content, state.record)
        return JudgedSubject(state.kind, state.id, state.session_id, outcomes, content, ending)

    def _outcomes(self, state: _SubjectState) -> Iterator[Outcome]:
        if self.started is None or self._texts is None:
            return
        texts, started = self._texts.texts(None, state.verdicts, state.record), self.started
        judging = self._judging
        for label in judging:
            reason: Any = texts.get(self._texts.reasons[label])
            line = None if label == RECORD else self._rule.line(label)
            outcome = Outcome(label, line, reason=reason and str(reason))
            payload = state.verdicts.get(ALL_METRICS if label in started["metrics"] else label)
            if state.kind not in (started.get("on", {}).get(label) or (state.kind,)):  # an empty list means any kind
                continue
            if payload is None:
                yield from _of_record(outcome, state.record)
            elif label in started["metrics"]:
                yield _of_metric(outcome, payload)
            else:
                flag = self._rule.verdict(label, payload) if line is None else None
                yield attrs.evolve(_of_verdict(outcome, payload), flag=flag)
        for criterion in _of_criteria(state.record.get("metrics")):
            if criterion.label not in judging:
                self._criteria.setdefault(criterion.label)
                yield criterion


def _with_verdict(only: Outcome, verdict: Outcome) -> Outcome:
    """Return the outcome of the *only* metric with its cost and duration, or the kind of its failure, from the *verdict* of all metrics."""
    if verdict.is_open:
        return attrs.evolve(verdict, label=only.label, pass_at=only.pass_at)
    return attrs.evolve(only, cost_usd=verdict.cost_usd, milliseconds=verdict.milliseconds)


def _with_output(content: Mapping[str, Any] | None, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return *content* with the output that the task made, from its *record*: a text, or the texts by criterion."""
    responses = record.get("responses") or {"": record.get("response")}
    outputs = {name: response["content"] for name, response in responses.items() if isinstance(response, Mapping)}
    if content is None or not outputs:
        return content
    return {**content, "output": outputs if len(outputs) > 1 else next(iter(outputs.values()))}


def facts(signals: Mapping[str, Any]) -> str:
    """Return the numbers and short texts among a judge's *signals*, such as ``mean turn score 0.7222``. They replace a missing reason.

    Figures of the judge's calls, such as the number of attempts, are no reason.
    """
    return ", ".join(
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else f'{value:.4g}'}"
        for name, value in signals.items()
        if name not in _CALLS
        and (
            (isinstance(value, str) and len(value) < _WORD and name not in (RATIONALE, SCOPE))
            or (isinstance(value, int | float) and not isinstance(value, bool))
        )
    )


def _in_words(metric: Outcome) -> str:
    """Return the name of a metric that lowers the score of all metrics together, with its score and reason."""
    reason = f": {metric.reason}" if metric.reason else ""
    return f"{metric.label} {metric.skipped or figure(metric.value)}" + ("" if metric.skipped else reason)


def _of_criteria(metrics: object) -> Iterator[Outcome]:
    """Yield the outcomes of the criteria in a record's *metrics*."""
    document = metrics if isinstance(metrics, Mapping) else {}
    scores, flags = (
        values if isinstance(values := document.get(name), Mapping) else {} for name in ("scores", "score_flags")
    )
    for label in dict.fromkeys([*scores, *flags]):
        score: Any = scores.get(label)
        flag = flags.get(label)
        has_score = type(score) in (int, float) and isfinite(score)
        skipped = None if has_score or flag is not None else "the record has no score of it"
        yield Outcome(
            label, None, score if has_score else None, flag=None if flag is None else bool(flag), skipped=skipped
        )


def _of_record(outcome: Outcome, record: Mapping[str, Any]) -> Iterator[Outcome]:
    """Yield the outcome of a label without a verdict: the task's failure, or the completed record if nothing judges it."""
    if "failure_mode" in record:
        yield attrs.evolve(outcome, failure=record["failure_mode"], reason=record.get("error"), origin=RECORD)
    elif record and outcome.label == RECORD:
        yield attrs.evolve(outcome, flag=True)


def _of_verdict(outcome: Outcome, payload: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a label with its own verdict."""
    ending = payload.get("finish_reason") or (payload.get("signals") or {}).get("finish_reason")
    outcome = attrs.evolve(
        outcome,
        cost_usd=payload.get("judge_cost_usd"),
        milliseconds=payload.get("judge_latency_ms"),
        finish_reason=ending if isinstance(ending, str) else None,
    )
    if "failure_mode" not in payload:
        reason = outcome.reason or payload["signals"].get(RATIONALE) or facts(payload["signals"]) or None
        return attrs.evolve(
            outcome, score=payload["score"], raw=payload.get("raw"), basis=payload.get("basis"), reason=reason
        )
    if (cap := payload.get("skipped")) is not None:
        return attrs.evolve(outcome, skipped=f"no budget left: {cap}")
    reason = payload.get("error_message")
    return attrs.evolve(outcome, failure=payload["failure_mode"], reason=reason, origin=payload.get("origin"))


def _of_metric(outcome: Outcome, payload: Mapping[str, Any]) -> Outcome:
    """Return the outcome of one metric, from the verdict of all metrics together."""
    label = outcome.label
    if "failure_mode" in payload:
        reason = outcome.reason if payload.get("origin") is None else payload.get("error_message")
        if payload.get("skipped") is None and reason is not None:  # the metric's own failure, or the task's
            return attrs.evolve(outcome, failure=payload["failure_mode"], reason=reason, origin=payload.get("origin"))
        why = "the subject has no verdict of its metrics together"
        return attrs.evolve(outcome, skipped=why, reason=None)
    value, raw = payload["signals"]["metrics"].get(label), payload["signals"].get("raw", {}).get(label)
    if value is None and raw is None:
        failed = any(skip["metric"] == label for skip in payload["skipped"])
        return attrs.evolve(outcome, skipped=outcome.reason or "not asked", spared=not failed)
    items = [item for item in payload["scores"] if item["metric"] == label]
    bases = [item.get("basis") or item["tier"] for item in items]
    return attrs.evolve(outcome, score=value, raw=raw, basis=weakest(bases) if bases else None)
