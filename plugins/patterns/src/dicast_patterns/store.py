"""The SQLite file of outcomes: a row for each turn, and a running mean for each model."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError

APPLICATION_ID = 0x64696F75  # "diou": tells this file from every other SQLite file
FORMAT = 2
WAIT = 30.0
"""Seconds to wait for another process that writes to the file."""

_SCHEMA = f"""
CREATE TABLE routes (turn_id TEXT PRIMARY KEY, event_id TEXT NOT NULL, model TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE turns (
    turn_id TEXT PRIMARY KEY, eval_id TEXT NOT NULL, score REAL NOT NULL, confidence REAL NOT NULL,
    model TEXT, folded_eval_id TEXT, folded_score REAL) WITHOUT ROWID;
CREATE TABLE models (model TEXT PRIMARY KEY, count INTEGER NOT NULL, mean REAL NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT}
"""


@attrs.frozen
class Observation:
    """One verdict on one turn; *eval_id* is a ULID, so a later verdict has a greater one."""

    turn_id: str
    eval_id: str
    score: float
    confidence: float


@attrs.frozen
class Outcome:
    """What is known of a *model*: the *mean* score of its turns, each by the newest verdict that counts, and their *count*."""

    model: str
    count: int
    mean: float


class Store:
    """An open file of outcomes; make it with :meth:`opened`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._database = connection

    @classmethod
    def opened(cls, path: Path) -> Store:
        """Open the file at *path*, made with the folders above it where it is not there.

        :raises ConfigError: when that is not possible, or it is another kind of file.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"cannot write {path}: {error}") from error
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written in the block is written whole or, when an error leaves it, not at all; other writers wait."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def note_route(self, turn_id: str, event_id: str, model: str) -> None:
        """Note that *turn_id* was routed to *model*, unless a later event is known; *event_id* is a ULID, so it has a greater one."""
        self._database.execute(
            "INSERT INTO routes VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
            "SET event_id = excluded.event_id, model = excluded.model WHERE excluded.event_id > routes.event_id",
            (turn_id, event_id, model),
        )

    def has_route(self, turn_id: str) -> bool:
        """Whether it is known which model the turn was routed to."""
        return self._model(turn_id) is not None

    def observe(self, seen: Observation, min_confidence: float) -> bool:
        """Keep a verdict on a routed turn, and let it count if it is sure enough and newer than the one that counts.

        False for a verdict that was kept before, or that is older than all that is known of the turn.
        """
        row = self._database.execute(
            "SELECT eval_id, model, folded_eval_id, folded_score FROM turns WHERE turn_id = ?", (seen.turn_id,)
        ).fetchone()
        before: tuple[Any, ...] = row or ("", None, None, None)
        newest, model, folded, old = before
        counts = seen.confidence >= min_confidence and seen.eval_id > (folded or "")
        if seen.eval_id <= newest and not counts:
            return False
        if counts:
            if folded is not None:
                self._unfold(model, old)
            model, folded, old = self._model(seen.turn_id), seen.eval_id, seen.score
            self._fold(model, seen.score)
        self._keep(seen, newest, (model, folded, old))
        return True

    def outcomes(self) -> list[Outcome]:
        """What is known of every model that a turn counts for, by name."""
        rows = self._database.execute("SELECT model, count, mean FROM models WHERE count ORDER BY model")
        return [Outcome(*row) for row in rows]

    def _model(self, turn_id: str) -> str | None:
        row = self._database.execute("SELECT model FROM routes WHERE turn_id = ?", (turn_id,)).fetchone()
        return None if row is None else str(row[0])

    def _keep(self, seen: Observation, newest: str, folded: tuple[str | None, str | None, float | None]) -> None:
        """Write the turn's row: its newest verdict, and the one that counts."""
        if seen.eval_id > newest:
            row = (seen.turn_id, seen.eval_id, seen.score, seen.confidence, *folded)
            self._database.execute("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        else:
            update = "UPDATE turns SET model = ?, folded_eval_id = ?, folded_score = ? WHERE turn_id = ?"
            self._database.execute(update, (*folded, seen.turn_id))

    def _fold(self, model: str | None, score: float) -> None:
        """Welford: the mean moves by the new score's distance from it, over the new count."""
        self._database.execute(
            "INSERT INTO models VALUES (:model, 1, :score) ON CONFLICT DO UPDATE "
            "SET count = count + 1, mean = mean + (:score - mean) / (count + 1)",
            {"model": model, "score": score},
        )

    def _unfold(self, model: str, score: float) -> None:
        """The reverse; the mean of nothing is 0, so that no rounding is left over."""
        self._database.execute(
            "UPDATE models SET count = count - 1, "
            "mean = CASE WHEN count > 1 THEN mean + (mean - :score) / (count - 1) ELSE 0.0 END WHERE model = :model",
            {"model": model, "score": score},
        )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in a new file, and refuse one of another kind.

    :raises ConfigError: saying what is wrong with it.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")  # of two processes that find no tables, one makes them
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        named = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise ConfigError(f"cannot write {path}: {error}") from error
    if named != APPLICATION_ID:
        raise ConfigError(f"{path} is a SQLite file of something else; give patterns/outcomes a file of its own")
    if version != FORMAT:
        advice = "upgrade dicast-patterns" if version > FORMAT else "give patterns/outcomes a new file"
        raise ConfigError(f"{path} has format {version}, this version reads {FORMAT}; {advice}")
