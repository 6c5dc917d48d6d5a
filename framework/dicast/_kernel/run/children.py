"""Which verdicts a coarser subject's judge is given: a turn's tool cycles, a session's turns, a workload's sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..classes import define, field
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED
from ..resume.reading import verdict
from ..values import PARENTS, Event, Query, Subject, Verdict


@define
class Family:
    """The verdicts on one parent's children, in their order, and the eval_id that the parent's next verdict will have."""

    eval_id: str
    children: list[Verdict] = field(factory=list)


def _nothing() -> None:
    return None


class ChildVerdicts:
    """The families whose parent is still to come. A source yields children before their parent.

    *begun* has them by the parent's kind and id.

    :param kinds: the parent kinds that are judged and that the source yields.
    :param mint: makes a new eval_id.
    """

    def __init__(self, kinds: Collection[str], mint: Callable[[], str]) -> None:
        self._kinds, self._mint = kinds, mint
        self.begun: dict[tuple[str, str], Family] = {}

    def of_child(self, subject: Subject, named: Callable[[], str | None] = _nothing) -> Family | None:
        """The family that *subject* is a child of; a new one has the eval_id that is *named*, or a new one.

        None where no parent is judged.
        """
        if not self.tracks(subject):
            return None
        key = (PARENTS[subject.kind], str(subject.parent_id))
        if key not in self.begun:
            self.begun[key] = Family(named() or self._mint())
        return self.begun[key]

    def tracks(self, subject: Subject) -> bool:
        """Whether *subject* has a parent that will be judged."""
        return subject.parent_id is not None and PARENTS.get(subject.kind) in self._kinds

    def awaits(self, subject: Subject) -> bool:
        """Whether verdicts on what *subject* is made of were begun."""
        return (subject.kind, subject.id) in self.begun

    def take(self, subject: Subject) -> Family | None:
        """The family that *subject* is the parent of, which is complete now."""
        return self.begun.pop((subject.kind, subject.id), None)


class RecordedChildren:
    """What the ledger has of a session's verdicts; of a *live* run its own alone, read on each time they are asked for."""

    def __init__(self, ledger: Ledger, live: str | None) -> None:
        """*live* is the id of the run where it is a live one, None where it is not."""
        self._ledger, self._live = ledger, live
        self._forget(None)

    def _forget(self, session: str | None) -> None:
        self._session, self._seq, self._ended = session, 0, set[str]()
        self._children: dict[tuple[str, str | None], dict[tuple[str, str], Verdict]] = {}
        self._names: dict[tuple[str, str | None], str] = {}
        self._newest: dict[tuple[str, str], str] = {}

    def _read(self, session: str) -> None:
        if session == self._session and not self._live:
            return
        if session != self._session:
            self._forget(session)
        types = (EVAL_COMPLETED, EVAL_FAILED)
        for entry in self._ledger.read(Query(self._live, types, session_id=session, after=self._seq)):
            event, self._seq = entry.event, entry.seq
            self._ended.add(str(event.payload["eval_id"]))
            if event.type == EVAL_COMPLETED:
                self._note(verdict(event), event.turn_id)

    def _note(self, found: Verdict, turn: str | None) -> None:
        """Keep a verdict where each question finds it at once: a session may have thousands."""
        kind, id = found.subject_kind, found.subject_id
        self._newest[kind, id] = found.eval_id
        if kind in PARENTS:
            of_turn = turn if kind == "tool_cycle" else None
            self._children.setdefault((PARENTS[kind], of_turn), {})[id, found.judge] = found
            if found.parent_eval_id:
                self._names[kind, None] = self._names[kind, of_turn] = found.parent_eval_id

    def children(self, subject: Subject) -> list[Verdict]:
        """The newest verdict of each judge on each subject that *subject* is made of, in the order of the first ones."""
        if subject.session_id is None or subject.kind not in PARENTS.values():
            return []
        self._read(subject.session_id)
        return [*self._children.get((subject.kind, subject.id if subject.kind == "turn" else None), {}).values()]

    def named(self, subject: Subject) -> str | None:
        """The parent's eval_id that verdicts on *subject* and its like have named, and no verdict has borne yet."""
        if subject.session_id is None:
            return None
        self._read(subject.session_id)
        name = self._names.get((subject.kind, subject.parent_id if subject.kind == "tool_cycle" else None))
        return None if name in self._ended else name

    def parent(self, subject: Subject) -> str | None:
        """The eval_id of the newest verdict on what *subject* is a part of; None where there is none."""
        if subject.session_id is None or subject.parent_id is None or subject.kind not in PARENTS:
            return None
        self._read(subject.session_id)
        return self._newest.get((PARENTS[subject.kind], subject.parent_id))


def children_of(events: Collection[Event]) -> list[Verdict]:
    """The verdicts among a subject's terminal events."""
    return [verdict(event) for event in events if event.type == EVAL_COMPLETED]
