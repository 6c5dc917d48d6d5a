"""Which verdicts a coarser subject's judge is given: a turn's tool cycles, a session's turns, a workload's sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from ..ledgers import verdict
from ..model import Event, Subject, Verdict

PARENTS = {"tool_cycle": "turn", "turn": "session", "session": "workload"}
"""The next coarser kind: a subject's ``parent_id`` is the id of one of these."""


@attrs.define
class Family:
    """The verdicts on one parent's children, in their order, and the eval_id that the parent's next verdict will have."""

    eval_id: str
    children: list[Verdict] = attrs.field(factory=list)


class Families:
    """The families whose parent is still to come. A source yields children before their parent.

    :param kinds: the parent kinds that are judged and that the source yields.
    :param mint: makes a new eval_id.
    """

    def __init__(self, kinds: Collection[str], mint: Callable[[], str]) -> None:
        self._kinds, self._mint = kinds, mint
        self._families: dict[tuple[str, str], Family] = {}

    def of_child(self, subject: Subject, eval_id: str | None = None) -> Family | None:
        """The family that *subject* is a child of, begun with *eval_id* or a new one; None where no parent is judged."""
        if not self.tracks(subject):
            return None
        key = (PARENTS[subject.kind], str(subject.parent_id))
        if key not in self._families:
            self._families[key] = Family(eval_id or self._mint())
        return self._families[key]

    def tracks(self, subject: Subject) -> bool:
        """Whether *subject* has a parent that will be judged."""
        return subject.parent_id is not None and PARENTS.get(subject.kind) in self._kinds

    def take(self, subject: Subject) -> Family | None:
        """The family that *subject* is the parent of, which is complete now."""
        return self._families.pop((subject.kind, subject.id), None)


def children_of(events: Collection[Event]) -> list[Verdict]:
    """The verdicts among a subject's terminal events."""
    return [verdict(event) for event in events if event.type == "eval.completed"]
