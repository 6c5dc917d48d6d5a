"""Secrets and personal data in the subjects of a source: counted, or masked before anything is stored or sent.

The members of :mod:`dicast.toolkit.file_source` apply the option ``scan`` of a source; a source only has the option::

    scan: Scan = attrs.field(default="warn", metadata={"later": True})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import orjson

from .._kernel.classes import evolve
from .._kernel.values import Due, ReadCounts, RecordedScore, Subject, TraceEvent
from .._kernel.values.subject import Trail
from .secret_shapes import any_shape, find_secrets

Scan = Literal["warn", "mask", "off"]
"""Treatment of secrets in the input: counted, replaced, or not looked for."""

COUNTS = "scan"
"""The member of a run's ``read`` with the number of secrets of each kind."""

_LEAST = 8
"""The shortest text with a secret."""

ROWS = 32
"""Rows that are searched in one pass."""

CHARACTERS = 200_000
"""Characters that are searched in one pass; a longer row has a pass of its own."""

_PARTS = {"tool.called": ("tool_name", "input"), "tool.completed": ("output",), "tool.failed": ("error",)}
"""Members of events that are parts of tool cycles, by the type of the event."""

_CALL = frozenset(_PARTS["tool.called"])
"""The keys of the input of a tool cycle."""

_LONG_NUMBER = 10**12
_MOST_NOTED = 3


def scanned(live: Any, scan: Scan) -> Any:
    """Return the live source *live*, or a view of it whose subjects are scanned."""
    return live if scan == "off" else ScannedSource(live, scan)


class ScannedSource:
    """A live source whose subjects are scanned, with the other members of the source.

    Rows that nobody masks are searched after they were yielded, many in one pass.
    """

    def __init__(self, live: Any, scan: Scan) -> None:
        self._live, self._scan = live, scan
        self._scanner = SecretScan(scan)
        self._records = 0
        self._rows: list[Subject] = []
        self._characters = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._live, name)

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the subjects of the source in their order."""
        self._scanner, self._records, self._rows = SecretScan(self._scan), 0, []
        for item in self._live.subjects():
            self._records += 1
            if self._scan == "warn" and type(item) is Subject and not item.events and not item.trail.stop:
                self._add_row(item)
                yield item
            else:
                self._search_rows()
                yield self._scanner.item(item)

    def read_counts(self) -> ReadCounts:
        """Return the source's counts of its newest pass, with the number of secrets of each kind."""
        self._search_rows()
        count = getattr(self._live, "read_counts", None)
        return self._scanner.add_counts(ReadCounts(self._records) if count is None else count())

    def _add_row(self, row: Subject) -> None:
        self._rows.append(row)
        characters = self._characters
        for part in (row.input, row.output, row.reference):
            if type(part) is str:
                characters += len(part)
        self._characters = characters
        if len(self._rows) == ROWS or characters >= CHARACTERS:
            self._search_rows()

    def _search_rows(self) -> None:
        rows, self._rows, self._characters = self._rows, [], 0
        self._scanner.rows(rows)


class SecretScan:
    """Search for secrets in the subjects of a source, in the source's order: all subjects of a session follow each other.

    A secret counts once for each record, which is a row or a session. Ids are never masked, since verdicts name them. *counts* has the number of
    secrets of each kind, *places* the first place of each kind.
    """

    def __init__(self, scan: Scan) -> None:
        self.counts: Counter[str] = Counter()
        self.in_ids = 0
        self._masks = scan == "mask"
        self._any_shape = any_shape()
        self.places: dict[str, str] = {}
        self._record: object = None
        self._sessions: dict[str | None, set[tuple[str, bytes]]] = {}
        self._known: set[tuple[str, bytes]] = set()
        self._place = ""
        self._events: dict[int, tuple[TraceEvent, TraceEvent]] = {}
        self._logs: dict[int, _Log] = {}
        self._shared: dict[int, tuple[Any, Any]] = {}
        self._texts: dict[int, object] = {}
        self._has_secrets = False

    def item(self, item: Subject | Due) -> Subject | Due:
        """Return *item*, with masks in place of its secrets if the scan masks."""
        if isinstance(item, Subject):
            return self.subject(item)
        failure = item.failure
        subject = self.subject(item.subject)
        if failure is not None:
            failure = evolve(failure, message=self._text(failure.message))
        recorded = tuple(map(self._recorded, item.recorded))
        return evolve(item, subject=subject, failure=failure, recorded=recorded) if self._masks else item

    def _recorded(self, score: RecordedScore) -> RecordedScore:
        """Return a recorded score with masks in its texts. Its name is a label, and stays."""
        text, reason, by = (None if text is None else self._text(text) for text in (score.text, score.reason, score.by))
        return evolve(score, text=text, reason=reason, by=by)

    def subject(self, subject: Subject) -> Subject:
        """Return *subject*, with masks in place of its secrets if the scan masks."""
        if not subject.events and not subject.trail.stop and self._is_clean_row(subject):
            return subject
        self._start_record(subject)
        log = subject.trail.events if subject.trail.stop else ()
        state = self._logs.setdefault(id(log), _Log(log))
        events, state.walked = (*log[state.walked :], *subject.events), len(log)
        fresh = {id(event): event for event in events if id(event) not in self._events}
        for event in fresh.values():
            if event.type == "turn.completed" and isinstance(texts := event.payload.get("signals_extra"), Mapping):
                self._texts |= {id(text): text for text in texts.values()}
            elif (keys := _PARTS.get(event.type)) is not None:
                self._texts |= {id(value): value for value in map(event.payload.get, keys)}
        parts = [subject.input, subject.output, subject.reference]
        mappings = (subject.context, subject.columns)
        shared = {id(value): value for value in mappings if value and id(value) not in self._shared}
        new = [part for part in parts if part is not None and not self._is_of_event(part)]
        is_clean = self._is_clean([*new, *shared.values(), *((event.payload, event.extra) for event in fresh.values())])
        for key, event in fresh.items():
            self._events[key] = (event, event if is_clean else self._event(event))
        for key, value in shared.items():
            self._shared[key] = (value, value if is_clean else self._value(value))
        masked_parts = [self._value(value) for value in parts] if self._has_secrets or not is_clean else parts
        if not self._masks or not self._has_secrets:
            return subject
        input_, output, reference = masked_parts
        state.masked += [self._events[id(event)][1] for event in log[len(state.masked) :]]
        context, columns = (self._shared[id(value)][1] if value else value for value in mappings)
        return evolve(
            subject,
            input=input_,
            output=output,
            reference=reference,
            context=context,
            columns=columns,
            events=tuple(self._events[id(event)][1] for event in subject.events),
            trail=Trail(state.masked, subject.trail.stop) if log else subject.trail,
        )

    def rows(self, rows: Sequence[Subject]) -> None:
        """Count the secrets in *rows*, which have no events: in one pass, and then in each half of rows with a secret."""
        if len(rows) == 1:
            self.subject(rows[0])
        elif rows and not self._is_clean([_values(row) for row in rows]):
            middle = len(rows) // 2
            self.rows(rows[:middle])
            self.rows(rows[middle:])
        elif rows:
            self._record = None

    def event(self, event: TraceEvent) -> TraceEvent:
        """Return *event* of any session, with masks in place of its secrets if the scan masks. A secret counts once for each session."""
        name = event.session_id
        self._known = self._sessions.get(name, set())
        self._place = f"session {name}"
        masked = self._event(event)
        if self._known:
            self._sessions[name] = self._known
        return masked if self._masks else event

    def add_counts(self, counts: ReadCounts) -> ReadCounts:
        """Return *counts* with the number of secrets of each kind, and with a note that names kinds and places but no secret."""
        return with_secrets(counts, self.counts, self.places, is_masked=self._masks, in_ids=self.in_ids)

    def _is_clean_row(self, subject: Subject) -> bool:
        """Return True if *subject*, which has no events, is the first of a new record and has no secret in its id and its values."""
        if (subject.kind, subject.id) == self._record:
            return False
        is_clean = self._is_clean(_values(subject))
        if is_clean:
            self._record = None
        return is_clean

    def _is_of_event(self, part: object) -> bool:
        """Return True if *part* of a subject is a value of an event that was searched, or a call with such values."""
        known = self._texts
        if id(part) in known:
            return True
        return type(part) is dict and part.keys() == _CALL and all(id(value) in known for value in part.values())

    def _start_record(self, subject: Subject) -> None:
        record = ("session", subject.session_id) if subject.events or subject.trail.stop else (subject.kind, subject.id)
        if record == self._record:
            return
        self._record, self._has_secrets = record, False
        self._known, self._events, self._logs, self._shared, self._texts = set(), {}, {}, {}, {}
        name = subject.session_id if record[0] == "session" else subject.id
        self._place = f"{subject.kind if record[0] != 'session' else 'session'} {name}"
        if name is not None and len(name) >= _LEAST and find_secrets(name.encode(errors="replace")):
            self.in_ids += 1
            self._place = "a record whose id is not shown"

    def _is_clean(self, values: list[Any]) -> bool:
        """Return True if no value has a secret, by one pass over their JSON."""
        if not values:
            return True
        try:
            return self._any_shape.search(orjson.dumps(values, default=_plain, option=orjson.OPT_NON_STR_KEYS)) is None
        except (TypeError, RecursionError):  # lone surrogates, integers of more than 64 bits, deep values
            return False

    def _event(self, event: TraceEvent) -> TraceEvent:
        if self._is_clean([event.payload, event.extra]):
            return event
        payload, extra = self._value(event.payload), self._value(event.extra)
        if payload is event.payload and extra is event.extra:
            return event
        return TraceEvent.of(event.type, payload, event.time, event.session_id, event.turn_id, extra)

    def _value(self, value: Any) -> Any:
        """Return *value* with masks in place of its secrets; the same object if it has none."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            items = [self._value(item) for item in value]
            return value if all(map(_is_same, value, items)) else items
        if isinstance(value, int) and not isinstance(value, bool) and value >= _LONG_NUMBER:
            text = self._text(str(value))
            return text if text.startswith("[") else value
        return value

    def _mapping(self, value: Mapping[Any, Any]) -> Mapping[Any, Any]:
        masked, is_same = dict[Any, Any](), True
        for key, item in value.items():
            name = new = self._text(key) if isinstance(key, str) else key
            times = 1
            while new in masked:  # two keys with the same mask
                times += 1
                new = f"{name} {times}"
            masked[new] = self._value(item)
            is_same = is_same and new is key and masked[new] is item
        return value if is_same else masked

    def _text(self, text: str) -> str:
        if len(text) < _LEAST:
            return text
        data = text.encode("utf-8", "surrogatepass")
        secrets = find_secrets(data)
        if not secrets:
            return text
        for secret in secrets:
            self._count(secret.kind, data[secret.start : secret.end])
        if not self._masks:
            return text
        pieces, end = list[bytes](), 0
        for secret in secrets:
            pieces += [data[end : secret.start], f"[masked: {secret.kind}]".encode()]
            end = secret.end
        return b"".join([*pieces, data[end:]]).decode("utf-8", "surrogatepass")

    def _count(self, kind: str, secret: bytes) -> None:
        self._has_secrets = True
        if (kind, secret) not in self._known:
            self._known.add((kind, secret))
            self.counts[kind] += 1
            self.places.setdefault(kind, self._place)


def with_secrets(
    counts: ReadCounts, secrets: Mapping[str, int], places: Mapping[str, str], *, is_masked: bool, in_ids: int = 0
) -> ReadCounts:
    """Return *counts* with the number of *secrets* of each kind, and with a note that names kinds and their first *places* but no secret."""
    if not secrets:
        return counts
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(secrets.items()))
    shown = ", ".join(f"{kind} in {place}" for kind, place in [*places.items()][:_MOST_NOTED])
    result = "replaced by masks" if is_masked else "left as they are; scan: mask replaces them"
    notes = [f"secrets and personal data: {kinds} ({result}), first {shown}"]
    if in_ids:
        notes.append(f"{in_ids:,} subject ids have secrets or personal data; ids are not masked: choose others")
    return evolve(counts, details={**counts.details, COUNTS: dict(secrets)}, notes=(*counts.notes, *notes))


class _Log:
    """The *events* of a session, the number of scanned events, and their masked forms."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        self.events = events
        self.walked = 0
        self.masked: list[TraceEvent] = []


def _values(row: Subject) -> list[Any]:
    """Return the id and the values of *row*, which has no events."""
    values: list[Any] = [row.id, row.input, row.output, row.reference]
    if row.context or row.columns:
        values += [row.context, row.columns]
    return values


def _is_same(first: object, second: object) -> bool:
    return first is second


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
