"""Reads, records and model calls of runs as columns: the run, the subject or turn, and the row in the ledger."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from .._kernel.events import RECORD_COMPLETED, RECORD_FAILED, SUBJECT_READ
from .._kernel.values import Entry, Query
from .columns import growing, kept, rows_with
from .names import Names

if TYPE_CHECKING:
    from .columns import Ints

READ, ROUTED, CALLED, RECORDED, UNRECORDED = ACTIVITY_TYPES = (
    SUBJECT_READ,
    "route.decided",
    "llm.call_completed",
    RECORD_COMPLETED,
    RECORD_FAILED,
)
"""The types of the events that :func:`read_activity` reads."""

_MODEL = {ROUTED: "chosen_model", CALLED: "model"}
"""The key of the model's name in the payloads of a trace's events."""


class ActivityOrigin(NamedTuple):
    """Fields that many events share. *kind_or_model* is the kind of the subject, or in a trace's event the model."""

    run_id: str
    type: str
    kind_or_model: str


@attrs.define
class ActivityColumns:
    """Events of :data:`ACTIVITY_TYPES`, one per row, in the order of the ledger.

    *codes* are indices into *origins*. *content_hashes* are 8 bytes of the digest of a content that was read, 0 for other events.
    *numbers* refer to *names*, the ids of subjects, or of turns for a trace's events.
    """

    seqs: Ints = attrs.field(factory=lambda: array("q"))
    codes: Ints = attrs.field(factory=lambda: array("i"))
    content_hashes: Ints = attrs.field(factory=lambda: array("q"))
    numbers: Ints = attrs.field(factory=lambda: array("i"))
    names: Names = attrs.field(factory=Names)
    origins: list[ActivityOrigin] = attrs.field(factory=list)

    @property
    def ids(self) -> list[str | None]:
        """The id of each row's subject or turn."""
        return self.names.texts_of(self.numbers)

    def add(self, entries: Iterable[Entry]) -> ActivityColumns:
        """Add a row for each of *entries* that has the fields of a row."""
        codes: dict[tuple[str, str, str], int] = {origin: code for code, origin in enumerate(self.origins)}
        is_shared = len(self.names) > 0  # other columns may use the names too
        for entry in entries:
            event = entry.event
            place = event.turn_id, event.subject_kind, event.subject_id
            row = activity_of(event.type, event.run_id, *place, event.payload)
            if row is not None:
                self.names, is_shared = (self.names.copy(), False) if is_shared else (self.names, False)
                origin, content_hash, id = row
                code = codes.setdefault(origin, len(codes))
                if code == len(self.origins):
                    self.origins.append(ActivityOrigin(*origin))
                self.put(entry.seq, code, content_hash, id)
        return self

    def put(self, seq: int, code: int, content_hash: int, id: str | None) -> None:
        """Add a row."""
        values = seq, code, content_hash, self.names.number(id)
        columns = self.seqs, self.codes, self.content_hashes, self.numbers = tuple(map(growing, self._columns()))
        for column, value in zip(columns, values, strict=True):
            column.append(value)

    def of(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return the rows of *types*, of one run or of all runs."""
        selected = [origin.type in types and run_id in (None, origin.run_id) for origin in self.origins]
        rows = rows_with(self.codes, selected)
        if rows is None:
            return self
        seqs, codes, hashes, numbers = kept(self._columns(), rows)
        return ActivityColumns(seqs, codes, hashes, numbers, self.names, self.origins)

    def _columns(self) -> tuple[Ints, ...]:
        return self.seqs, self.codes, self.content_hashes, self.numbers


def read_activity(ledger: Any, run_id: str | None = None, types: Sequence[str] = ACTIVITY_TYPES) -> ActivityColumns:
    """Return the events of *types* in *ledger*, or in one run: the ledger's own columns if it has them, else columns made from its events."""
    if not hasattr(ledger, "activity_columns"):
        return ActivityColumns().add(ledger.read(Query(run_id, tuple(types))))
    columns: ActivityColumns = ledger.activity_columns(run_id, types)
    return columns


def activity_of(
    type_: str, run_id: str, turn_id: str | None, subject_kind: str | None, subject_id: str | None, payload: Any
) -> tuple[tuple[str, str, str], int, str | None] | None:
    """Return the origin, the hash of the content, and the id of the subject or turn; None if a required field is missing from the payload.

    The values are those of the event: no caller needs an object for each.
    """
    if type_ in _MODEL:
        model = payload.get(_MODEL[type_])
        return None if model is None else ((run_id, type_, str(model)), 0, turn_id)
    content_hash = 0
    if type_ == READ:
        try:
            content_hash = int(payload["digest"][:16], 16) - 2**63
        except (KeyError, TypeError, ValueError):
            return None
    return (run_id, type_, str(subject_kind)), content_hash, subject_id
