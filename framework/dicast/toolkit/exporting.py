"""Files of a recorded run for other tools: the part that all formats of ``dicast export`` share.

A plugin adds a format by a function in the entry-point group ``dicast.exporters``, under the name of the format. The function writes the run
to a file, does not commit the file, and returns its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .._kernel import events
from .._kernel.classes import field, frozen
from .._kernel.values import Entry, Event, Query
from .._kernel.values.errors import ConfigError
from .atomic_file import AtomicFile

_ENDS = (events.RUN_COMPLETED, events.RUN_STOPPED)
_RESULTS = (events.EVAL_COMPLETED, events.EVAL_FAILED, events.RECORD_COMPLETED, events.RECORD_FAILED)


@frozen
class ExportCounts:
    """Counts of an export: the number *written*, its *unit* in the plural, and counts of content *left_out* by a phrase for the user."""

    written: int
    unit: str
    left_out: Mapping[str, int] = field(factory=dict)


@frozen
class ExportedRun:
    """A run of a ledger that is exported. *read* reads the ledger; *has_content* is False if judged content must be left out."""

    read: Callable[[Query], Iterator[Entry]]
    run_id: str
    has_content: bool = True

    def events(self, *types: str) -> Iterator[Event]:
        """Yield the events of the run in their order, of *types* or all."""
        return (entry.event for entry in self.read(Query(self.run_id, types)))

    def document(self) -> Mapping[str, object]:
        """Return the document of the run as it ended last.

        :raises ConfigError: if the run has not ended.
        """
        ends = [event.payload for event in self.events(*_ENDS)]
        if not ends:
            raise ConfigError(f"run {self.run_id} has not ended, so that it has no results to export")
        return ends[-1]

    def results(self) -> Iterator[Event]:
        """Yield the newest verdict, failure or record of each subject and label, in the order of the ledger."""
        newest: dict[tuple[object, ...], str] = {}
        for event in self.events(*_RESULTS):
            newest[_label(event)] = event.id
        return (event for event in self.events(*_RESULTS) if newest[_label(event)] == event.id)


Exporter = Callable[[ExportedRun, AtomicFile], ExportCounts]
"""Writes a run to a file, and returns the counts. The caller commits the file."""


def _label(event: Event) -> tuple[object, ...]:
    return event.subject_kind, event.subject_id, event.type.partition(".")[0], event.payload.get("judge")
