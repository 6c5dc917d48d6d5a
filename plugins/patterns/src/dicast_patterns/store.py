"""The SQLite file of outcomes: a row for each turn and a running mean for each model."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError
from dicast.toolkit.files import check_regular, error_reason

APPLICATION_ID = 0x64696F75  # "diou": the mark of this kind of SQLite file
FORMAT = 2
WAIT = 30.0
"""Maximum wait in seconds for another process that writes to the file."""

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
    """A verdict of a turn. *eval_id* is a ULID, so newer verdicts have greater ids."""

    turn_id: str
    eval_id: str
    score: float
    confidence: float


@attrs.frozen
class Outcome:
    """Number of turns of a *model* and the *mean* of their newest scores."""

    model: str
    count: int
    mean: float


class Store:
    """An open file of outcomes; see :meth:`opened`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._database, self._path = connection, path

    @classmethod
    def opened(cls, path: Path) -> Store:
        """Open the file at *path*; a missing file is created with its folders.

        :raises ConfigError: if the file cannot be written or is of another kind.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            check_regular(path)
            connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"cannot write {path}: {error_reason(error)}") from error
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction that an error rolls back. Other writers wait for its end."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise type(error)(f"cannot write {self._path}: {error}") from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._database.in_transaction:  # a full disk has ended it
            self._database.execute("ROLLBACK")

    def note_route(self, turn_id: str, event_id: str, model: str) -> None:
        """Store the *model* of *turn_id*, unless the file has a newer event. *event_id* is a ULID, so newer events have greater ids."""
        self._database.execute(
            "INSERT INTO routes VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
            "SET event_id = excluded.event_id, model = excluded.model WHERE excluded.event_id > routes.event_id",
            (turn_id, event_id, model),
        )

    def has_route(self, turn_id: str) -> bool:
        """Return whether the file has the model of the turn."""
        return self._model(turn_id) is not None

    def observe(self, observation: Observation, min_confidence: float) -> bool:
        """Store a verdict of a turn with a model. It counts if it is confident enough and newer than the counting verdict.

        :returns: False if the verdict is stored already or older than the turn's verdicts.
        """
        row = self._database.execute(
            "SELECT eval_id, model, folded_eval_id, folded_score FROM turns WHERE turn_id = ?", (observation.turn_id,)
        ).fetchone()
        stored: tuple[Any, ...] = row or ("", None, None, None)
        newest, model, counted_id, score = stored
        counts = observation.confidence >= min_confidence and observation.eval_id > (counted_id or "")
        if observation.eval_id <= newest and not counts:
            return False
        if counts:
            if counted_id is not None:
                self._unfold(model, score)
            model, counted_id, score = self._model(observation.turn_id), observation.eval_id, observation.score
            self._fold(model, observation.score)
        self._store_turn(observation, newest, (model, counted_id, score))
        return True

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of every model with turns, by name."""
        rows = self._database.execute("SELECT model, count, mean FROM models WHERE count ORDER BY model")
        return [Outcome(*row) for row in rows]

    def _model(self, turn_id: str) -> str | None:
        row = self._database.execute("SELECT model FROM routes WHERE turn_id = ?", (turn_id,)).fetchone()
        return None if row is None else str(row[0])

    def _store_turn(
        self, observation: Observation, newest: str, counting: tuple[str | None, str | None, float | None]
    ) -> None:
        """Write the turn's row: its newest verdict and its counting verdict."""
        if observation.eval_id > newest:
            row = (observation.turn_id, observation.eval_id, observation.score, observation.confidence, *counting)
            self._database.execute("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        else:
            update = "UPDATE turns SET model = ?, folded_eval_id = ?, folded_score = ? WHERE turn_id = ?"
            self._database.execute(update, (*counting, observation.turn_id))

    def _fold(self, model: str | None, score: float) -> None:
        """Add *score* to the model's mean by Welford's update."""
        self._database.execute(
            "INSERT INTO models VALUES (:model, 1, :score) ON CONFLICT DO UPDATE "
            "SET count = count + 1, mean = mean + (:score - mean) / (count + 1)",
            {"model": model, "score": score},
        )

    def _unfold(self, model: str, score: float) -> None:
        """Remove *score* from the model's mean. The mean of no scores is 0, so no rounding error remains."""
        self._database.execute(
            "UPDATE models SET count = count - 1, "
            "mean = CASE WHEN count > 1 THEN mean + (mean - :score) / (count - 1) ELSE 0.0 END WHERE model = :model",
            {"model": model, "score": score},
        )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file, and refuse a file of another kind.

    :raises ConfigError: if the file is of another kind or cannot be written.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")  # of two processes, only one creates the tables
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise ConfigError(f"cannot write {path}: {error}") from error
    if application_id != APPLICATION_ID:
        raise ConfigError(f"{path} is a SQLite file of another program; give patterns/outcomes a separate file")
    if version != FORMAT:
        advice = "upgrade dicast-patterns" if version > FORMAT else "give patterns/outcomes a new file"
        raise ConfigError(f"{path} has format {version}, this version reads {FORMAT}; {advice}")
