"""Contents read under the ids of subjects. Verdicts about different contents are not compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from dicast.reading import ActivityColumns, Numbering, view

Place = tuple[str, str]
"""A subject's id and kind, in the order of iteration."""


Read = tuple[str, int, int]
"""The run that read a content, the row that records it, and the content's hash."""


class Contents:
    """Contents of subjects that were read with more than one: *several*."""

    def __init__(self, read: Mapping[Place, Sequence[Read]]) -> None:
        self._read = read
        self.several = set(read)

    @classmethod
    def of(cls, reads: Sequence[ActivityColumns], kind: str | None) -> Contents:
        """Return the contents in *reads*, for subjects of one *kind* or of all kinds."""
        several = set[Place]()
        first: dict[Place, int] = {}
        for rows in reads:
            for place, mark in zip(_places(rows), rows.content_hashes, strict=True):
                if first.setdefault(place, mark) != mark and kind in (None, place[1]):
                    several.add(place)
        read: dict[Place, list[Read]] = {}
        for rows in reads if several else ():
            for seq, code, mark, place in zip(rows.seqs, rows.codes, rows.content_hashes, _places(rows), strict=True):
                if place in several:
                    read.setdefault(place, []).append((rows.origins[code].run_id, seq, mark))
        return cls(read)

    @classmethod
    def of_many(cls, np: ModuleType, numbering: Numbering, reads: ActivityColumns, kind: str | None) -> Contents:
        """Return the contents in the many rows *reads* of one ledger, by column. *numbering* numbers its names."""
        kinds = list(dict.fromkeys(origin.kind_or_model for origin in reads.origins))
        of_codes = np.array([kinds.index(origin.kind_or_model) for origin in reads.origins], "q")
        codes, marks, names = (
            view(np, reads.codes),
            view(np, reads.content_hashes),
            numbering.of(reads.names).astype("q"),
        )
        places = names[view(np, reads.numbers)] * len(kinds) + of_codes[codes]
        first = np.zeros(numbering.size * len(kinds), "q")
        first[places[::-1]] = marks[::-1]
        several = np.zeros(len(first), bool)
        several[places[first[places] != marks]] = True
        read: dict[Place, list[Read]] = {}
        rows = np.flatnonzero(several[places])
        order, ids = numbering.sorted_texts(names[view(np, reads.numbers)[rows]])
        for row, id in zip(rows[order].tolist(), ids, strict=True):
            run_id, _, subject_kind = reads.origins[reads.codes[row]]
            if kind in (None, subject_kind):
                read.setdefault((id, subject_kind), []).append((run_id, reads.seqs[row], reads.content_hashes[row]))
        return cls(read)

    def count(self, place: Place) -> int:
        """Return the number of contents read under an id; 0 may also mean one."""
        return len({mark for _, _, mark in self._read.get(place, ())})

    def before(self, place: Place, run_id: str, seq: int) -> int | None:
        """Return the hash of the content that a run read last before the row *seq*."""
        earlier = [(at, mark) for run, at, mark in self._read.get(place, ()) if run == run_id and at < seq]
        return max(earlier)[1] if earlier else None


def _places(rows: ActivityColumns) -> Iterator[Place]:
    """Yield the subjects of the rows."""
    kinds = [origin.kind_or_model for origin in rows.origins]
    return zip(map(str, rows.ids), map(kinds.__getitem__, rows.codes), strict=True)
