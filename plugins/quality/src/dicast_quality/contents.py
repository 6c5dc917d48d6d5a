"""Which contents were read under the ids of subjects: verdicts about different ones are not compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from dicast.reading import ActivityColumns, Numbering, view

Place = tuple[str, str]
"""A subject's id and kind, in the order in which subjects are gone through."""


Read = tuple[str, int, int]
"""The run that read a content, the row that says so, and the content's mark."""


class Contents:
    """Which contents were read of the subjects that have more than one: *several*."""

    def __init__(self, read: Mapping[Place, Sequence[Read]]) -> None:
        self._read = read
        self.several = set(read)

    @classmethod
    def of(cls, reads: Sequence[ActivityColumns], kind: str | None) -> Contents:
        """What was read under which id, about subjects of one *kind* or of all."""
        several = set[Place]()
        first: dict[Place, int] = {}
        for found in reads:
            for place, mark in zip(_places(found), found.content_hashes, strict=True):
                if first.setdefault(place, mark) != mark and kind in (None, place[1]):
                    several.add(place)
        read: dict[Place, list[Read]] = {}
        for found in reads if several else ():
            for seq, code, mark, place in zip(
                found.seqs, found.codes, found.content_hashes, _places(found), strict=True
            ):
                if place in several:
                    read.setdefault(place, []).append((found.origins[code].run_id, seq, mark))
        return cls(read)

    @classmethod
    def of_many(cls, np: ModuleType, numbering: Numbering, found: ActivityColumns, kind: str | None) -> Contents:
        """Likewise of many that one ledger was told, a column at a time; *numbering* is that of its names."""
        kinds = list(dict.fromkeys(origin.kind_or_model for origin in found.origins))
        of_codes = np.array([kinds.index(origin.kind_or_model) for origin in found.origins], "q")
        codes, marks, names = (
            view(np, found.codes),
            view(np, found.content_hashes),
            numbering.of(found.names).astype("q"),
        )
        places = names[view(np, found.numbers)] * len(kinds) + of_codes[codes]
        first = np.zeros(numbering.size * len(kinds), "q")
        first[places[::-1]] = marks[::-1]
        several = np.zeros(len(first), bool)
        several[places[first[places] != marks]] = True
        read: dict[Place, list[Read]] = {}
        rows = np.flatnonzero(several[places])
        order, ids = numbering.sorted_texts(names[view(np, found.numbers)[rows]])
        for row, id in zip(rows[order].tolist(), ids, strict=True):
            run_id, _, what = found.origins[found.codes[row]]
            if kind in (None, what):
                read.setdefault((id, what), []).append((run_id, found.seqs[row], found.content_hashes[row]))
        return cls(read)

    def count(self, place: Place) -> int:
        """How many contents were read under an id; 0 also stands for one."""
        return len({mark for _, _, mark in self._read.get(place, ())})

    def before(self, place: Place, run_id: str, seq: int) -> int | None:
        """The mark of the content that a run had read last before the row *seq*."""
        found = [(at, mark) for run, at, mark in self._read.get(place, ()) if run == run_id and at < seq]
        return max(found)[1] if found else None


def _places(found: ActivityColumns) -> Iterator[Place]:
    """The subjects that were read."""
    kinds = [origin.kind_or_model for origin in found.origins]
    return zip(map(str, found.ids), map(kinds.__getitem__, found.codes), strict=True)
