"""Sources that offer slices to the shards of a run."""

from __future__ import annotations

import pytest

from dicast.testing import SourceConformance

from .conftest import settled

SOURCE = '''
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import attrs

from dicast import DataError, ReadCounts, Subject, hookimpl


@attrs.frozen
class Table:
    """Rows of a file; each slice is read alone.

    :param path: the file, a JSON object a line.
    """

    kinds = ("row",)

    path: Path
    _read: list[int] = attrs.field(factory=list, init=False, eq=False, repr=False)

    @property
    def total(self) -> int:
        return len(self._rows())

    def check(self) -> str:
        return sha256(self._content()).hexdigest()

    def subjects(self) -> Iterator[Subject]:
        for _, subject in self._slice(range(self.total)):
            yield subject

    def shards(self, of: int) -> Sequence[Iterable[tuple[int, Subject]]]:
        sizes = [len(range(number, self.total, of)) for number in range(of)]
        starts = [sum(sizes[:number]) for number in range(of)]
        return [self._slice(range(start, start + size)) for start, size in zip(starts, sizes)]

    def read_counts(self) -> ReadCounts:
        return ReadCounts(len(self._read), details={"parities": {str(n % 2): 0 for n in self._read}}, notes=("a note",))

    def _slice(self, places: Iterable[int]) -> Iterator[tuple[int, Subject]]:
        self._read.clear()
        rows = self._rows()
        for place in places:
            self._read.append(place)
            row = rows[place]
            yield place, Subject("row", row["id"], output=row["output"])

    def _rows(self) -> list[dict]:
        return [json.loads(line) for line in self._content().splitlines()]

    def _content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise DataError(f"{self.path}: {error.strerror}; correct path") from error


@hookimpl
def dicast_sources():
    return [Table]
'''
TEXT = "source: {cut/table: {path: data.jsonl}}\nmetrics: [fake/act: {}]\ngate: {on: metrics, min_score: 0.1}\n"


@pytest.fixture(autouse=True)
def cut(install, monkeypatch):
    info = install("dicast-cut", "1.0", {"dicast": {"cut": "dicast_cut"}}, dicast_cut=SOURCE)
    monkeypatch.setenv("PYTHONPATH", str(info.parent))  # of the kit's fresh processes


@pytest.mark.slow
@pytest.mark.parametrize("of", [3, 20])
def test_a_run_in_slices_equals_the_whole_run(shop, of):
    """Also with more shards than subjects: empty slices are complete."""
    shop.rows("0.9", "0.1", "0.5", "0.25", "1", "0.7", "0.3")
    whole = shop.run(TEXT, "--ledger", "w.db")
    parts = [shop.run(TEXT, "--shard", f"{number}/{of}", "--ledger", f"s{number}.db") for number in range(1, of + 1)]
    assert [part.code for part in parts] == [0] * of
    assert all(part.json["shard"]["is_slice"] for part in parts)
    assert [part.json["read"]["records"] for part in parts[:3]] == ([3, 2, 2] if of == 3 else [1, 1, 1])
    merged = shop.dicast("merge", *(f"s{number}.db" for number in range(1, of + 1)), "--ledger", "m.db", "--json")
    assert (settled(merged.json), merged.code) == (settled(whole.json), whole.code)
    ids = [
        [verdict["subject_id"] for verdict in shop.dicast("verdicts", "--ledger", place, "--json").json["verdicts"]]
        for place in ("w.db", "m.db")
    ]
    assert ids[0] == ids[1]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["shuffle", "limit", "filter"])
def test_another_order_or_a_selection_uses_no_slices(shop, change):
    shop.rows("0.9", "0.1", "0.5", "0.25")
    text = TEXT.replace("data.jsonl", "data.jsonl, shuffle: 1") if change == "shuffle" else TEXT
    options = {"limit": ["--limit", "3"], "filter": ["--filter", "output!=1"]}.get(change, [])
    for number in (1, 2):
        done = shop.run(text, "--shard", f"{number}/2", "--ledger", f"s{number}.db", *options)
        assert "is_slice" not in done.json["shard"]
    merged = shop.dicast("merge", "s1.db", "s2.db", "--ledger", "m.db", "--json")
    assert merged.json["subjects"] == (3 if change == "limit" else 4)


def test_another_number_of_slices_is_refused(shop, install):
    wrong = SOURCE.replace(
        "return [self._slice",
        "return [(), *self._slices(of)]\n\n    def _slices(self, of: int):\n        sizes = starts = [0] * of\n        return [self._slice",
    )
    install("dicast-bad", "1.0", {"dicast": {"bad": "dicast_bad"}}, dicast_bad=wrong)
    shop.rows("0.9", "0.1")
    done = shop.run(TEXT.replace("cut/table", "bad/table"), "--shard", "1/2")
    assert done.code != 0
    assert "shards(2) returned 3 slices; return one for each shard" in done.out


class TestTable(SourceConformance):
    source = "cut/table"
    files = {"data.jsonl": "".join(f'{{"id": "{number}", "output": "{number}"}}\n' for number in range(7))}
    options = {"path": "data.jsonl"}
