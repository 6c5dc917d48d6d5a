"""Units that an earlier process of a run recorded in the ledger, indexed in a temporary file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...toolkit.temporary import temporary_database
from ..classes import frozen
from ..values import Failure, Subject


@frozen
class UnitState:
    """State of a unit that an earlier process started.

    *eval_id* is the newest one. *state* is ``open``, ``scored`` or ``failed``. *seq* is the ledger row of the newest end, or of the start
    if there is no end. *late* is True if any event of the unit follows a failure.
    """

    eval_id: str
    state: str
    seq: int
    late: bool


ReplyKey = tuple[str, str, str, str, int]
"""Key of a reply: subject kind, subject id, the verdict's label, the metric's or judge's label, rollout."""


class EarlierUnits:
    """Units that an earlier process of this run left in the ledger, by unit: (subject kind, subject id, label)."""

    def __init__(self) -> None:
        self._database = temporary_database(
            self,
            "CREATE TABLE units(kind, id, label, eval_id, state, seq, late, PRIMARY KEY (kind, id, label)) WITHOUT ROWID",
        )
        self._database.execute(
            "CREATE TABLE replies(kind, id, label, metric, rollout, reply, PRIMARY KEY (kind, id, label, metric, rollout))"
        )
        self._database.execute("CREATE TABLE history(kind, id, seq, PRIMARY KEY (kind, id, seq)) WITHOUT ROWID")
        self._database.execute("CREATE TABLE reads(kind, id, seq, PRIMARY KEY (kind, id)) WITHOUT ROWID")

    def note(self, unit: tuple[str, str, str], eval_id: str, state: str, seq: int) -> None:
        """Record the newest *state* of *unit*: ``open``, ``scored`` or ``failed``."""
        self._database.execute(
            "INSERT INTO units VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET "
            "late = late OR state = 'failed', eval_id = excluded.eval_id, state = excluded.state, "
            "seq = CASE excluded.state WHEN 'open' THEN seq ELSE excluded.seq END",
            (*unit, eval_id, state, seq),
        )
        self._database.execute("INSERT OR IGNORE INTO history VALUES (?, ?, ?)", (unit[0], unit[1], seq))

    def history(self, kind: str, subject_id: str) -> list[int]:
        """Return the ledger rows of the ``eval.*`` events of one subject, oldest first."""
        query = "SELECT seq FROM history WHERE kind = ? AND id = ? ORDER BY seq"
        return [seq for (seq,) in self._database.execute(query, (kind, subject_id))]

    def states(self, kind: str, subject_id: str) -> dict[str, UnitState]:
        """Return the state of every unit of one subject, by label."""
        query = "SELECT label, eval_id, state, seq, late FROM units WHERE kind = ? AND id = ?"
        rows = self._database.execute(query, (kind, subject_id))
        return {row[0]: UnitState(row[1], row[2], row[3], bool(row[4])) for row in rows}

    def moved(self, *, retry: bool) -> Iterator[tuple[str, str]]:
        """Yield kind and id of each subject with a retried failure, or on *retry* with a failure that is to be retried, in the order of reading.

        SQLite sorts all subjects at the first step, so the caller may forget subjects in between.
        """
        query = (
            "SELECT DISTINCT kind, id FROM units JOIN reads USING (kind, id) "
            "WHERE late OR (? AND state = 'failed') ORDER BY reads.seq"
        )
        return self._database.execute(query, (retry,))

    def note_read(self, kind: str, subject_id: str, seq: int) -> None:
        """Record the ledger row *seq* of a subject's ``subject.read``."""
        self._database.execute("INSERT OR IGNORE INTO reads VALUES (?, ?, ?)", (kind, subject_id, seq))

    def read_at(self, kind: str, subject_id: str) -> int | None:
        """Return the ledger row of a subject's ``subject.read``, or None."""
        row = self._database.execute("SELECT seq FROM reads WHERE kind = ? AND id = ?", (kind, subject_id)).fetchone()
        return None if row is None else int(row[0])

    def forget(self, kind: str, subject_id: str) -> None:
        """Remove a subject's units and paid replies: they have ended, and may start again."""
        self._database.execute("DELETE FROM units WHERE kind = ? AND id = ?", (kind, subject_id))
        self._database.execute("DELETE FROM replies WHERE kind = ? AND id = ?", (kind, subject_id))

    def forget_empty(self, kind: str, subject_id: str, label: str) -> None:
        """Remove the empty replies for a verdict or a record of one subject."""
        self._database.execute(
            "DELETE FROM replies WHERE kind = ? AND id = ? AND label = ? "
            "AND trim(json_extract(CAST(reply AS TEXT), '$.text'), char(9, 10, 13, 32)) = ''",
            (kind, subject_id, label),
        )

    def note_reply(self, key: ReplyKey, reply: bytes) -> None:
        """Record a paid reply under *key*."""
        self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", (*key, reply))

    def note_outputs(self, subject: Subject, outputs: Sequence[Subject | Failure]) -> None:
        """Do nothing: the paid replies of this run are about the outputs of this run."""

    def reply(self, key: ReplyKey) -> bytes | None:
        """Return the paid reply under *key*, or None."""
        query = "SELECT reply FROM replies WHERE kind = ? AND id = ? AND label = ? AND metric = ? AND rollout = ?"
        row = self._database.execute(query, key).fetchone()
        return None if row is None else bytes(row[0])
