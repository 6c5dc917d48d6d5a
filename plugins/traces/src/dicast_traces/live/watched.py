"""A session while it is watched, and what is decided of it."""

from __future__ import annotations

import attrs

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
