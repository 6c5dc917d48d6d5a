"""The subjects of a run, compared with the ids that metrics and judges have data for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from typing import Any

from ..asking.call import Call
from ..contract.protocols import Source
from ..plan.sections import Slot
from ..values import Due, Subject

_SHOWN = 5
"""The number of ids in a warning."""


def named_subjects(subjects: AsyncIterator[Due], calls: Iterable[Call], source: Source | None) -> NamedSubjects | None:
    """Return *subjects* of *source*, compared with the ``subject_ids`` of the live components of *calls*; None if no component has such ids."""
    named = [(call, getattr(getattr(call.function, "__self__", None), "subject_ids", ())) for call in calls]
    unused = [(call.slot, dict.fromkeys(map(str, ids))) for call, ids in named if ids]
    return NamedSubjects(subjects, unused, getattr(source, "undrawn", None)) if unused else None


class NamedSubjects:
    """The subjects of a run. It removes the id of each subject, and of its session, from the ids of each slot in *unused*.

    The id of a session with several turns names no turn: only the session itself removes the id.
    Ids that remain after the last subject are reported: the user's data about them is not used. Ids that a sample left out, which *undrawn*
    returns, are not reported.
    """

    def __init__(
        self,
        subjects: AsyncIterator[Due],
        unused: Sequence[tuple[Slot, dict[str, None]]],
        undrawn: Callable[[Collection[str]], Collection[str]] | None = None,
    ) -> None:
        self._subjects, self._unused, self._is_complete = subjects, unused, False
        self._undrawn = undrawn

    def __aiter__(self) -> NamedSubjects:
        return self

    async def __anext__(self) -> Due:
        try:
            due = await anext(self._subjects)
        except StopAsyncIteration:
            self._is_complete = True
            raise
        for slot, ids in self._unused:
            if slot.accepts(due.subject.kind):
                ids.pop(due.subject.id, None)
                session_id = str(due.subject.session_id)
                if session_id in ids and not _is_one_of_several(due.subject):
                    del ids[session_id]
        return due

    def warnings(self) -> list[dict[str, Any]]:
        """Return a warning for each component with ids that no subject has; none if not all subjects were read."""
        if not self._is_complete:
            return []
        remaining = ((slot.label, self._without_undrawn([*ids])) for slot, ids in self._unused)
        return [_warning(label, ids) for label, ids in remaining if ids]

    def _without_undrawn(self, ids: list[str]) -> list[str]:
        undrawn = () if self._undrawn is None or not ids else frozenset(self._undrawn(ids))
        return [id_ for id_ in ids if id_ not in undrawn]


def _is_one_of_several(subject: Subject) -> bool:
    """Return whether *subject* is a turn of a session with other turns."""
    return subject.kind == "turn" and any(event.turn_id not in (None, subject.id) for event in subject.trail.events)


def _warning(label: str, ids: list[str]) -> dict[str, Any]:
    lines = "1 line of references fits" if len(ids) == 1 else f"{len(ids):,} lines of references fit"
    shown = ", ".join(f"{id_!r:.60}" for id_ in ids[:_SHOWN]) + ", …" * (len(ids) > _SHOWN)
    message = f"{label}: {lines} no subject that it judges: {shown}; compare the ids with dicast verdicts"
    return {"kind": "unused_references", "label": label, "message": message, "count": len(ids), "ids": ids[:_SHOWN]}
