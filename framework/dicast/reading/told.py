"""What runs have read, and which models traces tell of, as columns: who said it, about what, and where it stands."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from .._kernel.events import RECORD_COMPLETED, RECORD_FAILED, SUBJECT_READ
from .._kernel.values import Entry, Event, Query
from .columns import code_of, growing
from .names import Names

if TYPE_CHECKING:
    from .columns import Ints

READ, ROUTED, CALLED, RECORDED, UNRECORDED = TOLD = (
    SUBJECT_READ,
    "route.decided",
    "llm.call_completed",
    RECORD_COMPLETED,
    RECORD_FAILED,
)
"""The events that :func:`told` is about."""

_MODEL = {ROUTED: "chosen_model", CALLED: "model"}
"""What a trace calls the model."""


class Teller(NamedTuple):
    """What many events have in common. *what* is the kind of a subject that was read, or the model that a trace tells of."""

    run_id: str
    type: str
    what: str


@attrs.define
class Told:
    """Events of :data:`TOLD`, one a row, in the order of the ledger.

    *tellers* go by the numbers in *codes*; *marks* tell contents that were read apart (8 bytes of the digest), and are 0 elsewhere;
    *numbers* are those of subjects among *names*, and of turns where a trace speaks.
    """

    seqs: Ints = attrs.field(factory=lambda: array("q"))
    codes: Ints = attrs.field(factory=lambda: array("i"))
    marks: Ints = attrs.field(factory=lambda: array("q"))
    numbers: Ints = attrs.field(factory=lambda: array("i"))
    names: Names = attrs.field(factory=Names)
    tellers: list[Teller] = attrs.field(factory=list)

    @property
    def ids(self) -> list[str | None]:
        """The id of each row's subject or turn."""
        return self.names.texts_of(self.numbers)

    def add(self, entries: Iterable[Entry]) -> Told:
        """Add the rows of *entries*; what says nothing is left out."""
        codes: dict[tuple[str, str, str], int] = {teller: code for code, teller in enumerate(self.tellers)}
        shared = bool(self.numbers)  # names that are not only its own
        for entry in entries:
            found = teller_of(entry.event)
            if found is not None:
                self.names, shared = (self.names.copied(), False) if shared else (self.names, False)
                teller, mark, id = found
                code = codes.setdefault(teller, len(codes))
                if code == len(self.tellers):
                    self.tellers.append(Teller(*teller))
                self.put(entry.seq, code, mark, id)
        return self

    def put(self, seq: int, code: int, mark: int, id: str | None) -> None:
        """Add a row."""
        values = seq, code, mark, self.names.number(id)
        columns = self.seqs, self.codes, self.marks, self.numbers = tuple(map(growing, self._columns()))
        for column, value in zip(columns, values, strict=True):
            column.append(value)

    def of(self, run_id: str | None, types: Sequence[str]) -> Told:
        """The rows of *types*, of one run or of all."""
        wanted = [teller.type in types and run_id in (None, teller.run_id) for teller in self.tellers]
        if all(wanted) or all(wanted[code] for code in set(self.codes)):
            return self
        chosen = [wanted[code] for code in self.codes]
        seqs, codes, marks, numbers = (array(code_of(one), compress(one, chosen)) for one in self._columns())
        return Told(seqs, codes, marks, numbers, self.names, self.tellers)

    def _columns(self) -> tuple[Ints, ...]:
        return self.seqs, self.codes, self.marks, self.numbers


def told(ledger: Any, run_id: str | None = None, types: Sequence[str] = TOLD) -> Told:
    """What *ledger*, or one run in it, has of the events of *types*: as it keeps them, else out of the events."""
    if not hasattr(ledger, "told"):
        return Told().add(ledger.read(Query(run_id, tuple(types))))
    kept: Told = ledger.told(run_id, types)
    return kept


def teller_of(event: Event) -> tuple[tuple[str, str, str], int, str | None] | None:
    """Who tells, the mark of the content, and about what; None of an event that says nothing."""
    payload: Any = event.payload
    if event.type in _MODEL:
        model = payload.get(_MODEL[event.type])
        return None if model is None else ((event.run_id, event.type, str(model)), 0, event.turn_id)
    mark = 0
    if event.type == READ:
        try:
            mark = int(payload["digest"][:16], 16) - 2**63
        except (KeyError, TypeError, ValueError):
            return None
    return (event.run_id, event.type, str(event.subject_kind)), mark, event.subject_id
