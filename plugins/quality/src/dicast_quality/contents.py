"""Which contents were read under the ids of subjects: verdicts about different ones are not compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dicast.reading import Told

Place = tuple[str, str]
"""A subject's id and kind, in the order in which subjects are gone through."""


class Contents:
    """What was read under which id, about subjects of one *kind* or of all: *several* are the subjects with more contents than one."""

    def __init__(self, reads: Sequence[Told], kind: str | None) -> None:
        self._read: dict[Place, list[tuple[str, int, int]]] = {}
        self.several = set[Place]()
        first: dict[Place, int] = {}
        for found in reads:
            for place, mark in zip(_places(found), found.marks, strict=True):
                if first.setdefault(place, mark) != mark:
                    self.several.add(place)
        if kind is not None:
            self.several = {place for place in self.several if place[1] == kind}
        for found in reads if self.several else ():
            for seq, code, mark, place in zip(found.seqs, found.codes, found.marks, _places(found), strict=True):
                if place in self.several:
                    self._read.setdefault(place, []).append((found.tellers[code].run_id, seq, mark))

    def count(self, place: Place) -> int:
        """How many contents were read under an id; 0 also stands for one."""
        return len({mark for _, _, mark in self._read.get(place, ())})

    def before(self, place: Place, run_id: str, seq: int) -> int | None:
        """The mark of the content that a run had read last before the row *seq*."""
        found = [(at, mark) for run, at, mark in self._read.get(place, ()) if run == run_id and at < seq]
        return max(found)[1] if found else None


def _places(found: Told) -> Iterator[Place]:
    """The subjects that were read."""
    kinds = [teller.what for teller in found.tellers]
    return zip(map(str, found.ids), map(kinds.__getitem__, found.codes), strict=True)
