"""All that a ledger has of one judge, one metric, or all metrics together: what a judge card is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import attrs

from dicast import Event, Ledger, Query
from dicast.reading import output_digest
from dicast.toolkit.json_values import MISSING, lookup

from .identity import METRICS, label_fingerprint

_TYPES = (
    *("run.started", "subject.read", "record.completed", "eval.completed", "eval.failed"),
    *("llm.call_completed", "route.decided", "spend.settled"),
)
_MODEL = {"llm.call_completed": "model", "route.decided": "chosen_model"}

Subject = tuple[str, str]
"""A subject's kind and id."""


class Said(NamedTuple):
    """One verdict, the one at place *seq* of the ledger. *winners* are those of both orders of a pair, *latency* is in milliseconds, *cost* in usd and None where it is not known."""

    seq: int
    run_id: str
    preview: bool
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
    """A judged content: the lengths of the output and of the reference in characters, the model that wrote the output, and the digest of the output.

    A member is None where it is not known.
    """

    output: int | None = None
    reference: int | None = None
    author: str | None = None
    digest: str | None = None


@attrs.define
class Recorded:
    """What the ledger has of *label* under its present *fingerprint*.

    *said* are the verdicts by subject, the oldest first; *failures* count its failures by kind; *models* are those that answered, by who asked them. *others* counts the verdicts under other fingerprints,
    or of other models than answered last, which are left out; *contents* are by the digest of what was judged.
    """

    label: str
    fingerprint: str
    said: dict[Subject, list[Said]] = attrs.field(factory=dict)
    failures: Counter[str] = attrs.field(factory=Counter)
    models: dict[str, list[str]] = attrs.field(factory=dict)
    contents: dict[str, Content] = attrs.field(factory=dict)
    live: set[str] = attrs.field(factory=set)
    """The runs in which a model was called: in others, all replies came from a recording or a cache."""
    others: int = 0
    skips: Callable[[str, str, str], bool] | None = None
    """Whether a run judged another output of a subject than its label is about."""

    @property
    def verdicts(self) -> int:
        """How many verdicts there are."""
        return sum(map(len, self.said.values()))

    def is_same_output(self, one: Said, other: Said) -> bool:
        """Whether two verdicts are about the same output; where the ledger keeps digests, about the same content."""
        first, second = (self.contents.get(said.content or "", Content()).digest for said in (one, other))
        return one.content == other.content if first is None or second is None else first == second

    def newest(self) -> Iterator[tuple[Subject, Said]]:
        """Yield the newest verdict on each subject, of a labeled one on the output that the label is about; previews are left out."""
        for subject, all_said in self.said.items():
            for said in reversed(all_said):
                if not said.preview and not (self.skips and self.skips(said.run_id, *subject)):
                    yield subject, said
                    break


def read_labels(ledger: Ledger, fingerprints: Mapping[str, str], author: str) -> dict[str, Recorded]:
    """What *ledger* has of each label that is named in *fingerprints*, those of the pipeline; *author* is where a row's context names the model."""
    reader = _Reader(fingerprints, author)
    for entry in ledger.read(Query(types=_TYPES)):
        reader.take(entry.seq, entry.event)
    return reader.finish()


class _Reader:
    def __init__(self, fingerprints: Mapping[str, str], author: str) -> None:
        self._author = author
        labels = [key.partition("[")[2][:-1] for key in fingerprints if key.startswith(("judges[", "metrics["))]
        if any(key.startswith("metrics[") for key in fingerprints):
            labels.append(METRICS)
        self._found = {label: Recorded(label, str(label_fingerprint(fingerprints, label))) for label in labels}
        self._runs: dict[str, tuple[bool, Mapping[str, str]]] = {}
        self._read: dict[tuple[str, Subject], str] = {}
        self._contents: dict[str, Content] = {}
        self._authors: dict[str, str] = {}
        self._live: set[str] = set()
        self._answered: dict[str, list[tuple[Subject, Said, Mapping[str, Sequence[str]]]]] = {}

    def take(self, seq: int, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        if event.type == "run.started":
            prints = payload.get("fingerprints", {})
            self._runs[event.run_id] = (
                payload.get("preview") is True,
                {label: str(label_fingerprint(prints, label)) for label in self._found},
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
            named = None if author in (MISSING, None, "") else str(author)
            output = content.get("output")
            lengths = _length(output), _length(content.get("reference"))
            self._contents[digest] = Content(*lengths, named, output_digest(output))

    def _complete_record(self, event: Event, payload: Mapping[str, Any]) -> None:
        """A task has made the output: what was judged is the record's."""
        response = payload.get("response")
        if not isinstance(response, Mapping):
            return
        subject = _subject(event)
        read = self._read.get((event.run_id, subject))
        before = self._contents.get(read or "", Content())
        made = f"{event.run_id} {read} {event.id}"
        self._read[event.run_id, subject] = made
        output = response.get("content")
        self._contents[made] = attrs.evolve(
            before, output=_length(output), digest=output_digest(output) if output else None
        )

    def _judge(self, seq: int, event: Event, payload: Mapping[str, Any]) -> None:
        unit, subject = str(payload["judge"]), _subject(event)
        preview, prints = self._runs.get(event.run_id, (False, {}))
        for label, found in self._found.items():
            if unit not in (label, METRICS) or (unit == METRICS and not self._is_metric(label, payload)):
                continue
            if prints.get(label) != found.fingerprint:
                found.others += event.type == "eval.completed"
            elif event.type == "eval.failed":
                if not preview and "skipped" not in payload:
                    found.failures[str(payload["failure_mode"])] += 1
            elif (said := self._said(seq, event, label, preview=preview)) is not None:
                self._answered.setdefault(label, []).append((subject, said, payload.get("models", {})))

    @staticmethod
    def _is_metric(label: str, payload: Mapping[str, Any]) -> bool:
        if label == METRICS:
            return True
        return label in (payload.get("signals") or {}).get("metrics", {})

    def _said(self, seq: int, event: Event, label: str, *, preview: bool) -> Said | None:
        payload: Mapping[str, Any] = event.payload
        signals: Mapping[str, Any] = payload.get("signals") or {}
        score, confidence, kind = payload["score"], payload["confidence"], str(payload["judge_kind"])
        cost, model = payload.get("judge_cost_usd"), payload.get("judge_model")
        if str(payload["judge"]) == METRICS and label != METRICS:
            own = [item for item in payload["scores"] if item["metric"] == label]
            score = signals["metrics"][label]
            if score is None or not own:
                return None
            confidence = sum(item["confidence"] for item in own) / len(own)
            cost, signals = _cost(own), own[0].get("signals") or {}
            model = next(iter(payload.get("models", {}).get(label, ())), None)
            kind = "llm" if model else "metrics"
        if score is None:  # on a scale of its own: the command refuses the label
            return None
        read = self._read.get((event.run_id, _subject(event)))
        return Said(
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
            read,
            tuple(map(str, signals.get("winners", ()))),
        )

    def finish(self) -> dict[str, Recorded]:
        for label, found in self._found.items():
            answered = self._answered.get(label, [])
            last = _last_models(label, (models for _, _, models in answered))
            for subject, said, models in answered:
                if any(list(names) != last[asked] for asked, names in models.items() if asked in last):
                    found.others += 1
                    continue
                found.said.setdefault(subject, []).append(said)
            found.models = last
            found.contents, found.live = self._contents, self._live
            for subject, all_said in found.said.items():
                self._name_author(subject, all_said)
        return {label: found for label, found in self._found.items() if found.said or found.failures or found.others}

    def _name_author(self, subject: Subject, all_said: Iterable[Said]) -> None:
        if (author := self._authors.get(subject[1])) is None:
            return
        for said in all_said:
            if said.content is not None and self._contents.get(said.content, Content()).author is None:
                self._contents[said.content] = attrs.evolve(self._contents.get(said.content, Content()), author=author)


def _last_models(label: str, answered: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """The models that answered last, by who asked them: of *label* and the judges inside it."""
    last: dict[str, list[str]] = {}
    for models in answered:
        last |= {
            asked: list(names)
            for asked, names in models.items()
            if label in (METRICS, asked) or asked.startswith((f"{label}.", f"{label}["))
        }
    return dict(sorted(last.items()))


def _cost(items: Sequence[Mapping[str, Any]]) -> Decimal | None:
    amounts = [(item.get("cost") or {}).get("amount", "0") for item in items]
    return None if None in amounts else sum((Decimal(str(amount)) for amount in amounts), Decimal())


def _subject(event: Event) -> Subject:
    return str(event.subject_kind), str(event.subject_id)


def _length(value: object) -> int | None:
    """How many characters a text has; of any other JSON value those of its compact form."""
    if value is None or isinstance(value, str):
        return None if value is None else len(value)
    import orjson

    return len(orjson.dumps(value).decode())
