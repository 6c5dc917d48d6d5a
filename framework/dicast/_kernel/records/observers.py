"""What is made of a run's records as they pass: its aggregates, and whether enough is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import attrs
import orjson

from ..contract.protocols import Source
from ..pipeline.gate import gate_line
from ..pipeline.labels import pipeline_labels
from ..plan.sections import METRICS, Pipeline, Slot
from ..source.shuffle import ShuffledSource
from ..stream.opening import ComponentStack, open_component
from ..values import Event, Record, Results, RunContext, Sizes, Subject
from .reader import Found, RecordReader


class RecordObservers:
    """Tells *aggregates* and *stops*, live objects with their slots, every record in the order of the source.

    *stopped* is what the first of the stops said that has seen enough. One that breaks is told no more, and *broken* says why.
    """

    def __init__(
        self, aggregates: Sequence[tuple[Slot, Any]], stops: Sequence[tuple[Slot, Any]], started: Mapping[str, Any]
    ) -> None:
        self._aggregates, self._stops, self._reader = aggregates, stops, RecordReader(started)
        self.broken: dict[str, str] = {}
        self._rows = 0
        self.stopped: Mapping[str, object] | None = None

    @classmethod
    async def open(
        cls, pipeline: Pipeline, run: RunContext, source: Source, parts: ComponentStack, started: Mapping[str, Any]
    ) -> RecordObservers | None:
        """Open what *pipeline* has of them, for the subjects of *source*; None where nothing watches the records."""
        if not (pipeline.aggregates or pipeline.early_stop or pipeline.baseline):
            return None
        run = attrs.evolve(run, pass_at=started.get("pass_at") or {})
        if isinstance(source, ShuffledSource) and pipeline.source is not None:
            sizes = partial(_sizes, pipeline, source)
            run = attrs.evolve(run, shuffle=pipeline.source.shuffle, sizes=sizes)
        run = attrs.evolve(run, gate_at=partial(gate_line, pipeline.gate, pipeline_labels(pipeline)))

        async def opened(slots: Sequence[Slot]) -> list[tuple[Slot, Any]]:
            return [(slot, await open_component(slot.component, run, parts.part(slot.path))) for slot in slots]

        return cls(await opened(pipeline.aggregates), await opened(pipeline.early_stop), started)

    @property
    def may_stop(self) -> bool:
        """Whether a record may end the run."""
        return bool(self._stops)

    def observe(self, events: Iterable[Event], subject: Subject | None = None, *, whole: bool = False) -> None:
        """Take the records among *events* into account, of *subject* if that is given; *whole* says that no subject is told in parts."""
        if self._aggregates or self._stops:
            if subject is not None:
                self._reader.know(subject)
            for found in chain(self._reader.read(events), self._reader.rest() if whole else ()):
                self._take(found)

    def _take(self, found: Found) -> None:
        subject, record, missing, failed = found
        for slot, live in self._aggregates:
            told = _of_all(found) if missing and getattr(live, "observes_failures", False) else record
            if told is None and failed is not None and getattr(live, "observes_failed_requests", False):
                told = _of_requests(failed)
            if told is not None:
                self._ask(slot, live.add, told)
        for slot, live in self._stops:
            told = _of_all((subject, record, {}, None)) if getattr(live, "observes_failures", False) else record
            said = None if told is None else self._ask(slot, live.observe, told)
            if said is not None and self.stopped is None:
                self.stopped = {"plugin": slot.label, "row_index": self._rows, **said}
        self._rows += 1

    def _ask(self, slot: Slot, function: Callable[..., Any], *given: object) -> Any:
        """What *function* of the component in *slot* returns, as JSON data; None once it is broken."""
        if slot.path in self.broken:
            return None
        try:
            found = function(*given)
            if found is None:
                return None
            if not isinstance(found, Mapping):
                raise TypeError(f"it returned {found!r:.100}, not a mapping")
            return orjson.loads(orjson.dumps(found))  # also: what is not a number becomes null
        except Exception as error:  # the border to a plugin's code
            self.broken[slot.path] = f"{slot.label}: {type(error).__name__}: {error}"
            return None

    def finish(self) -> Iterator[tuple[Slot, Mapping[str, object] | None]]:
        """What each aggregate comes to; None where it is broken."""
        for found in self._reader.rest():
            self._take(found)
        for slot, live in self._aggregates:
            yield slot, self._ask(slot, live.finish)

    def intervals(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What the stops that make an interval know of the label that each is on; once all records are told."""
        for slot, live in self._stops:
            if hasattr(live, "interval") and (found := self._ask(slot, live.interval)) is not None:
                yield slot.component.on, found

    def compare(self, slots: Iterable[Slot], baseline: Results, variant: Results) -> Iterator[tuple[Slot, Any]]:
        """What each comparison in *slots* says; None where it is broken."""
        for slot in slots:
            yield slot, self._ask(slot, slot.component.compare, baseline, variant)


def _of_all(found: Found) -> Record:
    """The record of a subject that was *found*, with what names it, an empty one where it has none, and no number for what is missing."""
    (kind, subject_id, session), record, missing, _ = found
    whole: Record = {"row": {}, "metrics": {}, **(record or {})}
    metrics: Any = whole["metrics"]
    scores = {"scores": {**metrics.get("scores", {}), **missing}} if missing else {}
    named = {"subject_kind": kind, "subject_id": subject_id, "session_id": session}
    return {**whole, **named, "metrics": {**metrics, **scores}}


def _of_requests(failed: Record) -> Record | None:
    """Return the record of the requests that a row made before it *failed*; None if it made none."""
    requests: Any = failed.get("requests")
    if not requests:
        return None
    return {"row": {}, "metrics": {}, "responses": {str(n): {"metrics": one} for n, one in enumerate(requests)}}


def _sizes(pipeline: Pipeline, source: ShuffledSource, label: str) -> Sizes:
    """How many subjects *source* has for *label* to judge; where it is no metric's and no judge's, how many it has."""
    of_all = pipeline.metrics if label == METRICS else ()
    slots = of_all or [slot for slot in (*pipeline.metrics, *pipeline.judges) if slot.label == label]
    kinds = {kind for slot in slots for kind in slot.on} if all(slot.on for slot in slots) else ()
    return source.sizes(sorted(kinds))
