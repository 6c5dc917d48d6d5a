"""Counts of a source's input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ..classes import field, frozen
from .errors import PluginError


@frozen
class ReadCounts:
    """Counts of one pass over a source's input, so far: the result of the optional member ``read_counts``.

    *records* are the records of the input: records that gave subjects, records in *dropped*, and the *failed* ones. *marked* counts by kind the
    parts that a visible marker replaced, such as ``image/png``. *dropped* counts by reason the records that gave no subject. *failed* counts
    the records that gave a :class:`Due` with a ``failure``. Parts that were read as the format documents them are not counted here.

    *details* are further counts by name, such as the ``formats`` of the records; they are members of the document's ``read``. *notes* are
    short phrases for the summary of the run.

    :raises PluginError: if a count is not an integer from 0 on, or more records were dropped and failed than there are.
    """

    records: int
    marked: Mapping[str, int] = field(factory=dict)
    dropped: Mapping[str, int] = field(factory=dict)
    failed: int = 0
    details: Mapping[str, Mapping[str, int]] = field(factory=dict)
    notes: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        counts = chain((self.records, self.failed), self.marked.values(), self.dropped.values())
        if not all(type(count) is int and count >= 0 for count in counts):
            raise PluginError(f"counts of a source are integers from 0 on: {self!r:.200}")
        if sum(self.dropped.values()) + self.failed > self.records:
            raise PluginError(f"more records were dropped and failed than read: {self!r:.200}")


def sum_counts(parts: Sequence[ReadCounts]) -> ReadCounts:
    """Return the counts of an input whose *parts* were counted one by one; each note once."""
    details = dict.fromkeys(name for part in parts for name in part.details)
    return ReadCounts(
        sum(part.records for part in parts),
        _sum(part.marked for part in parts),
        _sum(part.dropped for part in parts),
        sum(part.failed for part in parts),
        {name: _sum(part.details.get(name, {}) for part in parts) for name in details},
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for part in counts:
        total.update(part)
    return dict(total)
