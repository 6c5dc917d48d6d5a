"""History of one judge, one metric, or all metrics together in a ledger: the data of a judge card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import attrs

from dicast import ALL_METRICS, Event, Ledger, Query
from dicast.reading import output_digest
from dicast.toolkit.json_values import MISSING, lookup

from .identity import label_fingerprint

_TYPES = (
    *("run.started", "subject.read", "record.completed", "eval.completed", "eval.failed"),
    *("llm.call_completed", "route.decided", "spend.settled"),
)
_MODEL = {"llm.call_completed": "model", "route.decided": "chosen_model"}

Subject = tuple[str, str]
"""A subject's kind and id."""


class PastVerdict(NamedTuple):
    """Verdict at place *seq* of the ledger. *winners* has the winner of both orders of a pair; *latency* is in milliseconds, *cost* in usd, None if unknown."""

    seq: int
    run_id: str
    is_preview: bool
    session: str | None
    score: float
    confidence: float
    model: str | None
    kind: str
    cost: Decimal | None
    latency: int
    content: str | None
    winners: tuple[str, ...]


@attrs.frozen
class Content:
    """Judged content: the lengths of the output and of the reference in characters, the model that wrote the output, and the digest of the output.

    Unknown members are None.
    """

    output: int | None = None
    reference: int | None = None
    author: str | None = None
    digest: str | None = None


@attrs.define
class JudgeHistory:
    """Verdicts and failures of *label* in the ledger under its present *fingerprint*.

    *verdicts* are by subject, the oldest first; *failures* are counted by kind. *models* has the models that answered last, by the label of the judge that
    asked them. *excluded* counts the verdicts under other fingerprints, and the verdicts of models that have been replaced since. *contents* are by the digest of
    the judged content.
    """

    label: str
    fingerprint: str
    verdicts: dict[Subject, list[PastVerdict]] = attrs.field(factory=dict)
    failures: Counter[str] = attrs.field(factory=Counter)
    models: dict[str, list[str]] = attrs.field(factory=dict)
    contents: dict[str, Content] = attrs.field(factory=dict)
    live: set[str] = attrs.field(factory=set)
    """Runs in which a model was called; in other runs all replies came from a recording or a cache."""
    excluded: int = 0
    skips: Callable[[str, str, str], bool] | None = None
    """Function that returns whether a run judged another output of a subject than its label is about."""

    def is_same_output(self, earlier: PastVerdict, later: PastVerdict) -> bool:
        """Return whether two verdicts are about the same output; if the ledger keeps digests, about the same content."""
        first, second = (self.contents.get(verdict.content or "", Content()).digest for verdict in (earlier, later))
        return earlier.content == later.content if first is None or second is None else first == second

    def newest(self) -> Iterator[tuple[Subject, PastVerdict]]:
        """Yield the newest verdict on each subject, without previews; for a labeled subject only on the labeled output."""
        for subject, verdicts in self.verdicts.items():
            for verdict in reversed(verdicts):
                if not verdict.is_preview and not (self.skips and self.skips(verdict.run_id, *subject)):
                    yield subject, verdict
                    break


def read_labels(ledger: Ledger, fingerprints: Mapping[str, str], author: str) -> dict[str, JudgeHistory]:
    """Return the history of each label in *fingerprints*, the fingerprints of the pipeline.

    :param author: the path of the model's name in a row's context.
    """
    reader = _Reader(fingerprints, author)
    for entry in ledger.read(Query(types=_TYPES)):
        reader.read_event(entry.seq, entry.event)
    return reader.finish()


class _Reader:
    """Reader of the ledger's events into one history per label."""

    def __init__(self, fingerprints: Mapping[str, str], author: str) -> None:
        self._author = author
        labels = [key.partition("[")[2][:-1] for key in fingerprints if key.startswith(("judges[", "metrics["))]
        if any(key.startswith("metrics[") for key in fingerprints):
            labels.append(ALL_METRICS)
        self._histories = {label: JudgeHistory(label, str(label_fingerprint(fingerprints, label))) for label in labels}
        self._runs: dict[str, tuple[bool, Mapping[str, str]]] = {}
        self._read: dict[tuple[str, Subject], str] = {}
        self._contents: dict[str, Content] = {}
        self._authors: dict[str, str] = {}
        self._live: set[str] = set()
        self._answered: dict[str, list[tuple[Subject, PastVerdict, Mapping[str, Sequence[str]]]]] = {}

    def read_event(self, seq: int, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        if event.type == "run.started":
            fingerprints = payload.get("fingerprints", {})
            self._runs[event.run_id] = (
                payload.get("preview") is True,
                {label: str(label_fingerprint(fingerprints, label)) for label in self._histories},
            )
        elif event.type == "spend.settled":
            if payload.get("calls", 1):
                self._live.add(event.run_id)
        elif event.type in _MODEL:
            if event.turn_id and (model := payload.get(_MODEL[event.type])):
                self._authors[event.turn_id] = str(model)
        elif event.subject_kind is None or event.subject_id is None:
            return
        elif event.type == "subject.read":
            self._read_subject(event, payload)
        elif event.type == "record.completed":
            self._complete_record(event, payload)
        else:
            self._judge(seq, event, payload)

    def _read_subject(self, event: Event, payload: Mapping[str, Any]) -> None:
        digest = self._read[event.run_id, _subject(event)] = str(payload["digest"])
        content = payload.get("content")
        if isinstance(content, Mapping) and digest not in self._contents:
            author = lookup(content.get("context") or {}, self._author)
            author_name = None if author in (MISSING, None, "") else str(author)
            output = content.get("output")
            lengths = _length(output), _length(content.get("reference"))
            self._contents[digest] = Content(*lengths, author_name, output_digest(output))

    def _complete_record(self, event: Event, payload: Mapping[str, Any]) -> None:
        """Replace the content of a subject by the record's output, which a task made."""
        response = payload.get("response")
        if not isinstance(response, Mapping):
            return
        subject = _subject(event)
        read_digest = self._read.get((event.run_id, subject))
        content = self._contents.get(read_digest or "", Content())
        content_key = f"{event.run_id} {read_digest} {event.id}"
        self._read[event.run_id, subject] = content_key
        output = response.get("content")
        self._contents[content_key] = attrs.evolve(
            content, output=_length(output), digest=output_digest(output) if output else None
        )

    def _judge(self, seq: int, event: Event, payload: Mapping[str, Any]) -> None:
        judge, subject = str(payload["judge"]), _subject(event)
        preview, fingerprints = self._runs.get(event.run_id, (False, {}))
        for label, history in self._histories.items():
            if judge not in (label, ALL_METRICS) or (judge == ALL_METRICS and not self._is_metric(label, payload)):
                continue
            if fingerprints.get(label) != history.fingerprint:
                history.excluded += event.type == "eval.completed"
            elif event.type == "eval.failed":
                if not preview and "skipped" not in payload:
                    history.failures[str(payload["failure_mode"])] += 1
            elif (verdict := self._verdict(seq, event, label, preview=preview)) is not None:
                self._answered.setdefault(label, []).append((subject, verdict, payload.get("models", {})))

    @staticmethod
    def _is_metric(label: str, payload: Mapping[str, Any]) -> bool:
        if label == ALL_METRICS:
            return True
        return label in (payload.get("signals") or {}).get("metrics", {})

    def _verdict(self, seq: int, event: Event, label: str, *, preview: bool) -> PastVerdict | None:
        payload: Mapping[str, Any] = event.payload
        signals: Mapping[str, Any] = payload.get("signals") or {}
        score, confidence, kind = payload["score"], payload["confidence"], str(payload["judge_kind"])
        cost, model = payload.get("judge_cost_usd"), payload.get("judge_model")
        if str(payload["judge"]) == ALL_METRICS and label != ALL_METRICS:
            items = [item for item in payload["scores"] if item["metric"] == label]
            score = signals["metrics"][label]
            if score is None or not items:
                return None
            confidence = sum(item["confidence"] for item in items) / len(items)
            cost, signals = _cost(items), items[0].get("signals") or {}
            model = next(iter(payload.get("models", {}).get(label, ())), None)
            kind = "llm" if model else "metrics"
        if score is None:  # a label with its own scale, which the command refuses
            return None
        content_key = self._read.get((event.run_id, _subject(event)))
        return PastVerdict(
            seq,
            event.run_id,
            preview,
            event.session_id,
            float(score),
            float(confidence),
            model,
            kind,
            None if cost is None else Decimal(str(cost)),
            int(payload["judge_latency_ms"]),
            content_key,
            tuple(map(str, signals.get("winners", ()))),
        )

    def finish(self) -> dict[str, JudgeHistory]:
        for label, history in self._histories.items():
            answered = self._answered.get(label, [])
            last = _last_models(label, (models for _, _, models in answered))
            for subject, verdict, models in answered:
                if any(list(names) != last[asker] for asker, names in models.items() if asker in last):
                    history.excluded += 1
                    continue
                history.verdicts.setdefault(subject, []).append(verdict)
            history.models = last
            history.contents, history.live = self._contents, self._live
            for subject, verdicts in history.verdicts.items():
                self._name_author(subject, verdicts)
        return {
            label: history
            for label, history in self._histories.items()
            if history.verdicts or history.failures or history.excluded
        }

    def _name_author(self, subject: Subject, verdicts: Iterable[PastVerdict]) -> None:
        if (author := self._authors.get(subject[1])) is None:
            return
        for verdict in verdicts:
            if verdict.content is not None and self._contents.get(verdict.content, Content()).author is None:
                self._contents[verdict.content] = attrs.evolve(
                    self._contents.get(verdict.content, Content()), author=author
                )


def _last_models(label: str, answered: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Return the models that answered last, by the label of the judge that asked them: *label* or one of its nested judges."""
    last: dict[str, list[str]] = {}
    for models in answered:
        last |= {
            asker: list(names)
            for asker, names in models.items()
            if label in (ALL_METRICS, asker) or asker.startswith((f"{label}.", f"{label}["))
        }
    return dict(sorted(last.items()))


def _cost(items: Sequence[Mapping[str, Any]]) -> Decimal | None:
    amounts = [(item.get("cost") or {}).get("amount", "0") for item in items]
    return None if None in amounts else sum((Decimal(str(amount)) for amount in amounts), Decimal())


def _subject(event: Event) -> Subject:
    return str(event.subject_kind), str(event.subject_id)


def _length(value: object) -> int | None:
    """Return the number of characters of a text, or of the compact form of another JSON value."""
    if value is None or isinstance(value, str):
        return None if value is None else len(value)
    import orjson

    return len(orjson.dumps(value).decode())
