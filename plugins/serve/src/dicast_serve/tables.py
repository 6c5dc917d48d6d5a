"""Tables of runs: one row for each subject, filtered and sorted by the server."""

from __future__ import annotations

import zlib
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any

import attrs

from dicast import Ledger, Query
from dicast.reading import Reader, Spending
from dicast.toolkit.expressions import Expression

from .reading import reader

ROWS_KEPT = 250_000
"""Rows of the tables that are kept in memory, in total; a larger table is kept alone."""

PIECES = 500
"""Texts that are compressed together."""

Values = Mapping[str, Any]
Key = tuple[str, str]
FLIPS = {"fixed": ("gained",), "regressed": ("lost",), "any": ("gained", "lost")}
"""Values of the parameter ``change``, with the flips that it selects."""


class Tables:
    """Tables of the runs of a ledger, which grow with their runs. The least recently used table is dropped first."""

    def __init__(self) -> None:
        self.spending: dict[str, Spending] = {}
        self._tables: OrderedDict[tuple[str, str | None], tuple[object, Table]] = OrderedDict()
        self._lock = Lock()

    def get(self, ledger: Ledger, run_id: str, baseline_id: str | None) -> Table:
        """Return the table of a run next to its baseline. Of a run that has grown only the new events are read; with a baseline, all."""
        key, head = (run_id, baseline_id), [_newest(ledger, run) for run in (run_id, baseline_id) if run is not None]
        with self._lock:
            kept = self._tables.pop(key, None)
            if kept is None or kept[0] != head:
                kept = head, Table.of(ledger, run_id, baseline_id, None if kept is None else kept[1])
            self._tables[key] = kept
            while len(self._tables) > 1 and sum(len(table.ids) for _, table in self._tables.values()) > ROWS_KEPT:
                self._tables.popitem(last=False)
        return kept[1]


def run_spending(ledger: Ledger, run_id: str) -> Spending:
    """Return the spending of a run. With cached tables, only the events after the cached spending are read."""
    tables: Tables | None = getattr(ledger, "tables", None)
    if tables is None:
        return Spending().grow(ledger, run_id)
    spending = tables.spending[run_id] = tables.spending.get(run_id, Spending()).grow(ledger, run_id)
    return spending


@attrs.define(eq=False, slots=False)
class Table:
    """Rows of a run from *document*, the result of the reader ``run_table``. Rows have numbers in the order of the run."""

    document: Mapping[str, Any]
    search_texts: Texts
    results: dict[object, Any] = attrs.field(factory=dict)
    """Results that answers computed from this table, kept with it."""

    @classmethod
    def of(cls, ledger: Ledger, run_id: str, baseline_id: str | None, known: Table | None = None) -> Table:
        """Read the table of a run next to its baseline. The columns of *known*, an earlier table of the same runs, may change and belong to the new table."""
        earlier = None if known is None else known.document
        document = reader("run_table")(ledger, run_id=run_id, baseline_id=baseline_id, known=earlier)
        is_grown = known is not None and document["reading"] is known.document["reading"]
        return cls(document, known.search_texts if known is not None and is_grown else Texts())

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the subjects."""
        return self.column("ids")

    @cached_property
    def keys(self) -> list[Key]:
        """The kind and the id of each subject."""
        return list(self.numbers)

    @property
    def numbers(self) -> Mapping[Key, int]:
        """The number of the row of each subject, in the order of the rows."""
        return self.document["numbers"]  # type: ignore[no-any-return]

    @property
    def baseline(self) -> Mapping[str, Any] | None:
        """The columns of the baseline."""
        return self.document["baseline"]  # type: ignore[no-any-return]

    @property
    def labels(self) -> list[str]:
        """The labels with values."""
        return list(self.document["values"])

    def column(self, name: str) -> Sequence[Any]:
        """Return a column: ``kinds``, ``ids``, ``sessions``, ``outcomes``, ``bases``, ``scores``, ``worst``, ``odds`` or ``places``."""
        return self.document["columns"][name]  # type: ignore[no-any-return]

    def outcomes(self, label: str | None) -> Sequence[str]:
        """Return the outcomes under a label alone: "open" if it has not judged the subject, "none" if nothing could; for None, the outcomes of the run."""
        overall = self.column("outcomes")
        if label is None:
            return overall
        column = self.document["label_outcomes"].get(label) or [None] * len(overall)
        return [
            (outcome if outcome == "none" else "open") if own is None else own
            for own, outcome in zip(column, overall, strict=True)
        ]

    def bases(self, label: str | None) -> Sequence[str | None]:
        """Return the bases of the scores of a label; for None, of the scores of the run."""
        empty = [None] * len(self.ids)
        return self.column("bases") if label is None else self.document["label_bases"].get(label, empty)

    def values(self, label: str | None) -> Sequence[float | None]:
        """Return the values of a label; the scores for None."""
        empty = [None] * len(self.ids)
        return self.column("scores") if label is None else self.document["values"].get(label, empty)

    def old_values(self, label: str | None) -> Sequence[float | None]:
        """Return the baseline's values of a label; its scores for None. They are all None without a baseline."""
        empty = [None] * len(self.ids)
        if self.baseline is None:
            return empty
        column: Sequence[float | None] = (
            self.baseline["scores"] if label is None else self.baseline["values"].get(label, empty)
        )
        return column

    def flips(self, label: str | None) -> Sequence[str]:
        """Return the flips of a label, "" without a baseline."""
        flips = {} if self.baseline is None else self.baseline["flips"]
        return flips.get(label) or [""] * len(self.ids)

    def change(self, label: str | None, row: int) -> float | None:
        """Return the difference of a row's value to the baseline's; None if a value is missing."""
        new, old = self.values(label)[row], self.old_values(label)[row]
        return None if new is None or old is None else new - old

    def texts(self, ledger: Ledger) -> Texts:
        """Return the texts of all rows. They are read on the first search, and later texts on later searches."""
        texts, upto = self.search_texts, self.document["upto"]
        if texts.upto < upto:
            texts_of: Reader = reader("run_texts")
            run_id = self.document["run_id"]
            new = texts_of(ledger, run_id=run_id, after=texts.upto, upto=upto)["texts"]
            texts.add_all((((kind, id), text) for kind, id, text in new), self.numbers)
            texts.upto = upto
        return texts


class Texts:
    """Texts of rows in lower case, compressed, for searches. A row may have several texts.

    *upto* is the newest row of the ledger that was read.
    """

    def __init__(self) -> None:
        self.upto = 0
        self._waiting: list[tuple[Key, str]] = []
        self._packs: list[tuple[array[int], bytes]] = []
        self._rows: array[int] = array("l")
        self._pieces: list[str] = []

    def add(self, row: int, text: str) -> None:
        """Add a text of a row."""
        self._rows.append(row)
        self._pieces.append(text.lower().replace("\0", " "))
        if len(self._pieces) == PIECES:
            self._packs.append((self._rows, zlib.compress(self._joined(), 1)))
            self._rows, self._pieces = array("l"), []

    def add_all(self, texts: Iterable[tuple[Key, str]], numbers: Mapping[Key, int]) -> None:
        """Add texts of subjects by the *numbers* of their rows. The texts of a subject without a row, which is not judged yet, wait for a later call."""
        waiting, self._waiting = self._waiting, []
        for key, text in chain(waiting, texts):
            if (row := numbers.get(key)) is None:
                self._waiting.append((key, text))
            else:
                self.add(row, text)

    def rows_with_words(self, words: Sequence[str]) -> set[int]:
        """Return the rows that have all *words*, which are in lower case, in any of their texts."""
        rows_by_word: dict[str, set[int]] = {word: set() for word in words}
        for row, text in self._all():
            for word, rows in rows_by_word.items():
                if word in text:
                    rows.add(row)
        return set.intersection(*rows_by_word.values())

    def rows_matching(self, expression: Expression) -> set[int]:
        """Return the rows with a text in which *expression* matches."""
        return {row for row, text in self._all() if expression.search(text)}

    def _joined(self) -> bytes:
        return "\0".join(self._pieces).encode("utf-8", "surrogatepass")

    def _all(self) -> Iterator[tuple[int, str]]:
        for rows, packed in self._packs:
            pieces = zlib.decompress(packed).decode("utf-8", "surrogatepass").split("\0")
            yield from zip(rows, pieces, strict=True)
        yield from zip(self._rows, self._pieces, strict=True)


def counts_of(table: Table, rows: Sequence[int], label: str | None, chosen: str | None) -> dict[str, int]:
    """Return the numbers of *rows* by outcome under *chosen*, by change under *label*, and of rows whose labels disagree."""
    outcomes, flips, odds = table.outcomes(chosen), table.flips(label), table.column("odds")
    by_outcome, by_flip = Counter(outcomes[row] for row in rows), Counter(flips[row] for row in rows)
    return {
        **{name: by_outcome[name] for name in ("pass", "fail", "none", "open")},
        "fixed": by_flip["gained"],
        "regressed": by_flip["lost"],
        "odds": sum(bool(odds[row]) for row in rows),
    }


def _newest(ledger: Ledger, run_id: str) -> int:
    return next((entry.seq for entry in ledger.read(Query(run_id, newest_first=True, limit=1))), 0)
