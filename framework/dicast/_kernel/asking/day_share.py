"""Share of the day's caps that a part of a run has."""

from __future__ import annotations

from collections.abc import Sequence

from ..classes import frozen
from ..values import Cost


@frozen
class DayShare:
    """Share of a cap of the day, which a part of a run may spend. The name of the part is in the *scope* of the share.

    *is_daily* is True if the part may spend it on each day, and False if once.
    """

    scope: str
    limits: Sequence[Cost]
    is_daily: bool = True

    def scope_on(self, day: str) -> str:
        """Return the scope of the share on *day*, the scope of all spending of a day."""
        return f"{day if self.is_daily else 'day:'} {self.scope}"
