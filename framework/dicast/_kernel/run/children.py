"""Verdicts that the judge of a coarser subject gets: a turn's tool cycles, a session's turns, a workload's sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..classes import define, field
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED
from ..resume.reading import verdict
from ..values import PARENTS, RECORDED, Event, Query, Subject, Verdict


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


class RecordedChildren:
    """Verdicts of a session in the ledger. For a *live* run it reads only the run's own verdicts, and reads new ones on each call."""

    def __init__(self, ledger: Ledger, live: str | None) -> None:
        """Create the index. *live* is the id of the run if it is live, else None."""
        self._ledger, self._live = ledger, live
        self._forget(None)

    def _forget(self, session: str | None) -> None:
        self._session, self._seq, self._used_ids = session, 0, set[str]()
        self._children: dict[tuple[str, str | None], dict[tuple[str, str], Verdict]] = {}
        self._parent_ids: dict[tuple[str, str | None], str] = {}
        self._newest: dict[tuple[str, str], str] = {}

    def _read(self, session: str) -> None:
        if session == self._session and not self._live:
            return
        if session != self._session:
            self._forget(session)
        types = (EVAL_COMPLETED, EVAL_FAILED)
        for entry in self._ledger.read(Query(self._live, types, session_id=session, after=self._seq)):
            event, self._seq = entry.event, entry.seq
            self._used_ids.add(str(event.payload["eval_id"]))
            if event.type == EVAL_COMPLETED and event.payload["judge_kind"] != RECORDED:
                self._note(verdict(event), event.turn_id)

    def _note(self, verdict_: Verdict, turn: str | None) -> None:
        """Index a verdict for fast lookups, because a session may have thousands."""
        kind, id = verdict_.subject_kind, verdict_.subject_id
        self._newest[kind, id] = verdict_.eval_id
        if kind in PARENTS:
            of_turn = turn if kind == "tool_cycle" else None
            self._children.setdefault((PARENTS[kind], of_turn), {})[id, verdict_.judge] = verdict_
            if verdict_.parent_eval_id:
                self._parent_ids[kind, None] = self._parent_ids[kind, of_turn] = verdict_.parent_eval_id

    def children(self, subject: Subject) -> list[Verdict]:
        """Return the newest verdict of each judge on each part of *subject*, in the order of the first verdicts."""
        if subject.session_id is None or subject.kind not in PARENTS.values():
            return []
        self._read(subject.session_id)
        return [*self._children.get((subject.kind, subject.id if subject.kind == "turn" else None), {}).values()]

    def named(self, subject: Subject) -> str | None:
        """Return the eval_id that verdicts on *subject* and its siblings give for their parent; None if a verdict has that eval_id already."""
        if subject.session_id is None:
            return None
        self._read(subject.session_id)
        name = self._parent_ids.get((subject.kind, subject.parent_id if subject.kind == "tool_cycle" else None))
        return None if name in self._used_ids else name

    def parent(self, subject: Subject) -> str | None:
        """Return the eval_id of the newest verdict on the parent of *subject*; None without one."""
        if subject.session_id is None or subject.parent_id is None or subject.kind not in PARENTS:
            return None
        self._read(subject.session_id)
        return self._newest.get((PARENTS[subject.kind], subject.parent_id))


def children_of(events: Collection[Event]) -> list[Verdict]:
    """Return the verdicts among a subject's terminal events, except scores that another tool recorded."""
    ends = (event for event in events if event.type == EVAL_COMPLETED)
    return [verdict(event) for event in ends if event.payload["judge_kind"] != RECORDED]
