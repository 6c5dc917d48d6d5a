"""Verdicts that the judge of a coarser subject gets: a turn's tool cycles, a session's turns, a workload's sessions."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson

from ...toolkit.temporary import temporary_database
from ..classes import define, field
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, VERDICT_ENDS
from ..resume.queries import verdict
from ..values import PARENTS, RECORDED, Event, Query, Subject, Verdict

MOST = 20_000
"""The most verdicts of recorded sessions in memory, beyond the session in use."""


@define
class Family:
    """Verdicts on one parent's children, in their order, and the eval_id of the parent's next verdict."""

    eval_id: str
    children: list[Verdict] = field(factory=list)


def _nothing() -> None:
    return None


class ChildVerdicts:
    """Families whose parent is not read yet. A source yields children before their parent.

    *pending* has the families by the parent's kind and id.

    :param kinds: the parent kinds that are judged and that the source yields.
    :param mint: makes a new eval_id.
    """

    def __init__(self, kinds: Collection[str], mint: Callable[[], str]) -> None:
        self._kinds, self._mint = kinds, mint
        self.pending: dict[tuple[str, str], Family] = {}

    def of_child(self, subject: Subject, known_id: Callable[[], str | None] = _nothing) -> Family | None:
        """Return the family of *subject* as a child; a new family gets the eval_id that *known_id* returns, or a new id.

        None if no parent is judged.
        """
        if not self.tracks(subject):
            return None
        key = (PARENTS[subject.kind], str(subject.parent_id))
        if key not in self.pending:
            self.pending[key] = Family(known_id() or self._mint())
        return self.pending[key]

    def tracks(self, subject: Subject) -> bool:
        """Return True if *subject* has a parent that will be judged."""
        return subject.parent_id is not None and PARENTS.get(subject.kind) in self._kinds

    def awaits(self, subject: Subject) -> bool:
        """Return True if verdicts on parts of *subject* were started."""
        return (subject.kind, subject.id) in self.pending

    def take(self, subject: Subject) -> Family | None:
        """Remove and return the family of *subject* as a parent. It is complete now."""
        return self.pending.pop((subject.kind, subject.id), None)


class SessionVerdicts:
    """Index of the verdicts on the subjects of one session, which may be thousands. *size* is their number."""

    def __init__(self) -> None:
        self.size = 0
        self._used_ids: set[str] = set()
        self._children: dict[tuple[str, str | None], dict[tuple[str, str], bytes | Event]] = {}
        self._parent_ids: dict[tuple[str, str | None], str] = {}
        self._newest: dict[tuple[str, str], str] = {}

    def note(self, event: Event) -> None:
        """Add the verdict or the failure in *event*."""
        payload: Mapping[str, Any] = event.payload
        self._used_ids.add(str(payload["eval_id"]))
        self.size += 1
        if event.type != EVAL_COMPLETED or payload["judge_kind"] == RECORDED:
            return
        kind, id_ = str(event.subject_kind), str(event.subject_id)
        self._newest[kind, id_] = str(payload["eval_id"])
        if kind in PARENTS:
            of_turn = event.turn_id if kind == "tool_cycle" else None
            self._children.setdefault((PARENTS[kind], of_turn), {})[id_, str(payload["judge"])] = _packed(event)
            if parent := payload.get("parent_eval_id"):
                self._parent_ids[kind, None] = self._parent_ids[kind, of_turn] = str(parent)

    def children(self, subject: Subject) -> list[Verdict]:
        """Return the newest verdict of each judge on each part of *subject*, in the order of the first verdicts."""
        children = self._children.get((subject.kind, subject.id if subject.kind == "turn" else None), {})
        return [verdict(_unpacked(child)) for child in children.values()]

    def named(self, subject: Subject) -> str | None:
        """Return the eval_id that verdicts on *subject* and its siblings give for their parent; None if a verdict has that eval_id already."""
        name = self._parent_ids.get((subject.kind, subject.parent_id if subject.kind == "tool_cycle" else None))
        return None if name in self._used_ids else name

    def newest(self, kind: str, subject_id: str) -> str | None:
        """Return the eval_id of the newest verdict on a subject; None without a verdict."""
        return self._newest.get((kind, subject_id))


def _packed(event: Event) -> bytes | Event:
    """Return a verdict in a small part of its memory; unchanged if only the ledger can write it as JSON."""
    try:
        return zlib.compress(orjson.dumps((event.id, event.time, event.run_id, event.payload)), 1)
    except TypeError:
        return event


def _unpacked(packed: bytes | Event) -> Event:
    if isinstance(packed, Event):
        return packed
    id_, time, run_id, payload = orjson.loads(zlib.decompress(packed))
    return Event(id_, EVAL_COMPLETED, time, run_id, payload)


class RecordedChildren:
    """Verdicts of sessions in the ledger. Sessions with at most :data:`MOST` verdicts together stay in memory.

    :param run_id: the run whose verdicts are read; None for the verdicts of all runs.
    :param commit: writes the emitted events to the ledger.
    :param is_new: whether the ledger has no verdict of *run_id* that was not emitted by this process.
    """

    def __init__(
        self, ledger: Ledger, run_id: str | None, commit: Callable[[], object] = _nothing, *, is_new: bool = False
    ) -> None:
        self._ledger, self._run_id, self._commit, self._is_new = ledger, run_id, commit, is_new
        self._sessions: dict[str, SessionVerdicts] = {}  # the session that was used last at the end
        self._size = 0
        self._left: sqlite3.Connection | None = None  # the sessions that are no longer in memory

    def note(self, events: Collection[Event]) -> None:
        """Add the verdicts and failures among the *events* of a subject, which were just emitted, if its session is in memory."""
        for event in events:
            session = None if event.session_id is None else self._sessions.get(event.session_id)
            if session is not None and event.type in VERDICT_ENDS:
                session.note(event)
                self._size += 1

    def children(self, subject: Subject) -> list[Verdict]:
        """Return the newest verdict of each judge on each part of *subject*, in the order of the first verdicts."""
        if subject.session_id is None or subject.kind not in PARENTS.values():
            return []
        return self._of(subject.session_id).children(subject)

    def named(self, subject: Subject) -> str | None:
        """Return the eval_id that verdicts on *subject* and its siblings give for their parent; None if a verdict has that eval_id already."""
        return None if subject.session_id is None else self._of(subject.session_id).named(subject)

    def parent(self, subject: Subject) -> str | None:
        """Return the eval_id of the newest verdict on the parent of *subject*; None without one."""
        if subject.session_id is None or subject.parent_id is None or subject.kind not in PARENTS:
            return None
        return self._of(subject.session_id).newest(PARENTS[subject.kind], subject.parent_id)

    def _of(self, session_id: str) -> SessionVerdicts:
        """Return the verdicts of a session, from memory or from the ledger."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            session = SessionVerdicts()
            if has_left := self._has_left(session_id):
                self._commit()
            if has_left or not self._is_new:
                for entry in self._ledger.read(Query(self._run_id, VERDICT_ENDS, session_id=session_id)):
                    session.note(entry.event)
            self._size += session.size
        self._sessions[session_id] = session
        while self._size > MOST and len(self._sessions) > 1:
            self._leave(next(iter(self._sessions)))
        return session

    def _has_left(self, session_id: str) -> bool:
        """Return whether the session was in memory before. All its verdicts of this process were noted or are in the ledger."""
        if self._left is None:
            return False
        return self._left.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None

    def _leave(self, session_id: str) -> None:
        """Remove a session from memory."""
        self._size -= self._sessions.pop(session_id).size
        if self._left is None:
            self._left = temporary_database(self, "CREATE TABLE sessions(id PRIMARY KEY) WITHOUT ROWID")
        self._left.execute("INSERT OR IGNORE INTO sessions VALUES (?)", (session_id,))


def children_of(events: Collection[Event], verdict_of: Callable[[Event], Verdict] = verdict) -> list[Verdict]:
    """Return the verdicts among a subject's terminal events, except scores that another tool recorded."""
    ends = (event for event in events if event.type == EVAL_COMPLETED)
    return [verdict_of(event) for event in ends if event.payload["judge_kind"] != RECORDED]
