"""Observers of a run's records: its aggregates and its early stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import attrs
import orjson

from ..contract.plugin_errors import describe_error, in_brackets, place_of
from ..contract.protocols import Source
from ..pipeline.gate import gate_line
from ..plan.labels import pipeline_labels
from ..plan.sections import METRICS, Pipeline, Slot
from ..source.shuffle import ShuffledSource
from ..stream.opening import ComponentStack, open_component
from ..values import Event, Record, Results, RunContext, Sizes, Subject
from ..values.json_form import json_fault
from ..values.read_only import ReadOnlyDict, read_only
from .reader import RecordReader, SubjectRecord

STOP_KEYS = ("reason", "plugin", "row_index")
"""Keys of a stop that the kernel writes."""


def takes_weights(component: object) -> bool:
    """Return whether the figures of an aggregate, an early stop or a comparison are right for subjects with weights."""
    return getattr(component, "takes_weights", False) is True


def weights_message(label: str, run: str) -> str:
    """Return the message that the component *label* is refused because subjects of *run* have weights."""
    fix = "remove it, or judge all subjects without a sample; the means and pass rates in labels are weighted"
    return f"{label}: it counts each subject once, and the subjects of {run} have weights; {fix}"


class RecordObservers:
    """Dispatcher of every record, in the order of the source, to *aggregates* and *stops*: live objects with their slots.

    *stopped* is the result of the first stop that ended the run. An observer that raises gets no further records, and *broken* has
    its error.
    """

    def __init__(
        self, aggregates: Sequence[tuple[Slot, Any]], stops: Sequence[tuple[Slot, Any]], started: Mapping[str, Any]
    ) -> None:
        self._aggregates, self._stops, self._reader = aggregates, stops, RecordReader(started)
        self.broken: dict[str, str] = {}
        self._is_weighted = False
        self._rows = 0
        self.stopped: Mapping[str, object] | None = None

    @classmethod
    async def open(
        cls, pipeline: Pipeline, run: RunContext, source: Source, parts: ComponentStack, started: Mapping[str, Any]
    ) -> RecordObservers:
        """Open the observers of *pipeline* for the subjects of *source*."""
        run = attrs.evolve(run, pass_at=started.get("pass_at") or {})
        if isinstance(source, ShuffledSource) and pipeline.source is not None:
            sizes = partial(_sizes, pipeline, source)
            run = attrs.evolve(run, shuffle=pipeline.source.shuffle, sizes=sizes)
        run = attrs.evolve(run, gate_at=partial(gate_line, pipeline.gate, pipeline_labels(pipeline)))

        async def opened(slots: Sequence[Slot]) -> list[tuple[Slot, Any]]:
            return [
                (slot, await open_component(slot.component, run, parts.part(slot.path), slot.kind)) for slot in slots
            ]

        return cls(await opened(pipeline.aggregates), await opened(pipeline.early_stop), started)

    @property
    def may_stop(self) -> bool:
        """True if a record can end the run."""
        return bool(self._stops)

    def observe(self, events: Iterable[Event], subject: Subject | None = None, *, complete: bool = False) -> None:
        """Process the records among *events*, of *subject* if given. *complete* is True if no subject is split between calls."""
        if self._aggregates or self._stops:
            if subject is not None:
                self._reader.keep_row(subject)
            for result in chain(self._reader.read(events), self._reader.rest() if complete else ()):
                if self._reader.weights and not self._is_weighted:
                    self._refuse_weights()
                self._take(result)

    def _refuse_weights(self) -> None:
        """Break each observer that would count a subject with a weight once."""
        self._is_weighted = True
        for slot, _ in (*self._aggregates, *self._stops):
            if not takes_weights(slot.component):
                self.broken.setdefault(slot.path, weights_message(slot.label, "this run"))

    def _take(self, result: SubjectRecord) -> None:
        subject, record, missing, failed = result
        record = read_only(record)  # the record of a task is the payload of its event
        for slot, live in self._aggregates:
            item = (
                _full_record((subject, record, missing, None))
                if missing and getattr(live, "observes_failures", False)
                else record
            )
            if item is None and failed is not None and getattr(live, "observes_failed_requests", False):
                item = _request_record(failed)
            if item is not None:
                self._call(slot, live.add, item)
        for slot, live in self._stops:
            item = _full_record((subject, record, {}, None)) if getattr(live, "observes_failures", False) else record
            stop = None if item is None else self._call(slot, live.observe, item)
            if stop is not None and self.stopped is None:
                self._refuse_own_keys(slot, stop)
                details = {key: value for key, value in stop.items() if key not in STOP_KEYS}
                self.stopped = {"plugin": slot.label, "row_index": self._rows, **details}
        self._rows += 1

    def _refuse_own_keys(self, slot: Slot, stop: Mapping[str, object]) -> None:
        """Report the early stop in *slot* as broken if its reason to *stop* has keys of the kernel; the run stops all the same."""
        if clash := [key for key in STOP_KEYS if key in stop]:
            self.broken.setdefault(
                slot.path, f"{slot.label}: observe returned {clash[0]!r}, a key that dicast writes itself; rename it"
            )

    def _call(self, slot: Slot, function: Callable[..., Any], *args: object, is_due: bool = False) -> Any:
        """Return the result of *function* of the component in *slot* as JSON data; None if the component is broken.

        :param is_due: whether None is a fault.
        """
        if slot.path in self.broken:
            return None
        try:
            answer = function(*args)
            if answer is None and not is_due:
                return None
        except Exception as error:  # code of a plugin
            self.broken[slot.path] = f"{slot.label}: {describe_error(error, type(slot.component).__module__)}"
            return None
        if (fault := json_fault(answer)) is not None:
            self.broken[slot.path] = f"{slot.label}: {function.__name__}: {fault}{in_brackets(place_of(function))}"
            return None
        return orjson.loads(orjson.dumps(answer))  # also turns NaN into null

    def finish(self) -> Iterator[tuple[Slot, Mapping[str, object] | None]]:
        """Yield the result of each aggregate; None if it is broken."""
        for result in self._reader.rest():
            self._take(result)
        for slot, live in self._aggregates:
            yield slot, self._call(slot, live.finish, is_due=True)

    def intervals(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the label and the interval of each stop that computes one, after all records were observed."""
        for slot, live in self._stops:
            if hasattr(live, "interval") and (interval := self._call(slot, live.interval)) is not None:
                yield slot.component.on, interval

    def compare(self, slots: Iterable[Slot], baseline: Results, variant: Results) -> Iterator[tuple[Slot, Any]]:
        """Yield the result of each comparison in *slots*; None if it is broken, or would count a subject with a weight once."""
        weighted = [results.run_id for results in (baseline, variant) if results.weighted()]
        for slot in slots:
            if weighted and not takes_weights(slot.component):
                self.broken.setdefault(slot.path, weights_message(slot.label, f"run {' and '.join(weighted)}"))
            yield slot, self._call(slot, slot.component.compare, baseline, variant, is_due=True)


def _full_record(result: SubjectRecord) -> Record:
    """Return the record of a subject with its identity: an empty record if it has none, and None in place of missing scores."""
    (kind, subject_id, session), record, missing, _ = result
    base: Record = {"row": {}, "metrics": {}, **(record or {})}
    metrics: Any = base["metrics"]
    scores = {"scores": {**metrics.get("scores", {}), **missing}} if missing else {}
    identity = {"subject_kind": kind, "subject_id": subject_id, "session_id": session}
    return ReadOnlyDict({**base, **identity, "metrics": ReadOnlyDict({**metrics, **scores})})


def _request_record(failed: Record) -> Record | None:
    """Return the record of the requests that a row made before it *failed*; None if it made none."""
    requests: Any = failed.get("requests")
    if not requests:
        return None
    responses = {str(n): {"metrics": request} for n, request in enumerate(requests)}
    record: Record = read_only({"row": {}, "metrics": {}, "responses": responses})
    return record


def _sizes(pipeline: Pipeline, source: ShuffledSource, label: str) -> Sizes:
    """Return the number of subjects of *source* that *label* judges; all subjects if it is no metric's or judge's label."""
    of_all = pipeline.metrics if label == METRICS else ()
    slots = of_all or [slot for slot in (*pipeline.metrics, *pipeline.judges) if slot.label == label]
    kinds = {kind for slot in slots for kind in slot.on} if all(slot.on for slot in slots) else ()
    return source.sizes(sorted(kinds))
