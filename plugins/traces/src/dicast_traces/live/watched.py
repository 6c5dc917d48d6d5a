"""A session while it is watched, and what is decided of it."""

from __future__ import annotations

import attrs

from ..assembly import Assembly

BUS, FEEDBACK_ARRIVED = "bus", "feedback_arrived"
"""Why a subject is judged: because its time has come, or again, because of what its user said."""


@attrs.frozen
class Decision:
    """That a subject is to be judged now, and by what *trigger*.

    A turn that is due for the first time comes with its tool cycles. Those are due by themselves, as ``tool_cycle`` with the
    *id* of their turn, where some of it came after they were judged.
    """

    kind: str
    session_id: str
    id: str
    trigger: str


@attrs.define(eq=False)
class Watched:
    """A session in memory: what is known of it, what of it was judged, and what is to be judged again.

    *progress* is when it last went on, *arrived* when its last event came, *ended* when its end did, and *check* when it has
    to be looked at. *waiting* are the completed turns that were not judged yet; *late* are judged ones that had a tool call or
    the end of one since; *due* is by what trigger it will itself be judged; *open* counts its subjects that are being judged.
    """

    assembly: Assembly
    progress: float = 0.0
    arrived: float = 0.0
    ended: float | None = None
    check: float | None = None
    seen: set[bytes] = attrs.field(factory=set)
    waiting: dict[str, None] = attrs.field(factory=dict)
    again: dict[str, None] = attrs.field(factory=dict)
    judged: set[str] = attrs.field(factory=set)
    late: set[str] = attrs.field(factory=set)
    due: str | None = None
    is_judged: bool = False
    open: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it waits to be judged, or is being judged."""
        return not (self.waiting or self.again or self.open or (self.due and self.ended is not None))
