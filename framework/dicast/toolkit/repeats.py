"""Repeated ids of a file, found without holding all ids in memory."""

from __future__ import annotations

from typing import Self

from .temporary import temporary_database

_BATCH = 5000


class Repeats:
    """Ids collected in a first pass; ``id in repeats`` is True in later passes if the first pass had *id* more than once."""

    def __init__(self) -> None:
        self.is_complete = self._any = False
        self._waiting: list[tuple[str]] = []
        self._database = temporary_database(self, "CREATE TABLE ids (id TEXT)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def note(self, id: str) -> None:
        """Count a use of *id*."""
        self._waiting.append((id,))
        if len(self._waiting) >= _BATCH:
            self._flush()

    def finish(self) -> None:
        """End the first pass."""
        self._flush()
        self._database.executescript(
            "DROP TABLE IF EXISTS repeated; CREATE TABLE repeated (id TEXT PRIMARY KEY) WITHOUT ROWID;"
            "INSERT INTO repeated SELECT id FROM ids GROUP BY id HAVING count(*) > 1; DELETE FROM ids"
        )
        self._any = self._database.execute("SELECT 1 FROM repeated").fetchone() is not None
        self.is_complete = True

    def __contains__(self, id: str) -> bool:
        return self._any and self._database.execute("SELECT 1 FROM repeated WHERE id = ?", (id,)).fetchone() is not None

    def _flush(self) -> None:
        self._database.execute("BEGIN")  # else each row is a transaction of its own
        self._database.executemany("INSERT INTO ids VALUES (?)", self._waiting)
        self._database.execute("COMMIT")
        self._waiting.clear()


class UniqueNames:
    """Names that are unique in an input: the second use of ``a`` becomes ``a#2``. *repeated* counts such uses."""

    def __init__(self) -> None:
        self.repeated = 0
        self._database = temporary_database(
            self, "CREATE TABLE names (name TEXT PRIMARY KEY, uses INTEGER) WITHOUT ROWID"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def restart(self) -> None:
        """Forget all names."""
        self.repeated = 0
        self._database.execute("DELETE FROM names")

    def take(self, name: str) -> str:
        """Return *name*, or ``name#N`` at its N-th use."""
        uses = self._use(name)
        if uses == 1:
            return name
        self.repeated += 1
        while self._use(unique := f"{name}#{uses}") > 1:
            uses = self._use(name)
        return unique

    def _use(self, name: str) -> int:
        (uses,) = self._database.execute(
            "INSERT INTO names VALUES (?, 1) ON CONFLICT DO UPDATE SET uses = uses + 1 RETURNING uses", (name,)
        ).fetchone()
        return int(uses)
