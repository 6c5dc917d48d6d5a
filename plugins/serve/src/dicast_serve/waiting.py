"""The turns of watches that are not judged yet, because what their users do next is still to come."""

from __future__ import annotations

from typing import Any

from dicast import Ledger, Query
from dicast.reading import read_verdicts

MOST = 10_000
"""So many of a watch's newest turns are looked at."""


def waiting(ledger: Ledger, run_id: str | None) -> dict[str, Any]:
    """How many completed turns no judge of their watch has judged, and when the oldest was completed.

    Watches that have ended, and those that judge something else than turns, have none. *more* says that a watch has more than
    :data:`MOST` turns, and the earlier ones were not looked at.
    """
    times: list[str] = []
    more = False
    for watch in _going_on(ledger, run_id):
        found = read_verdicts(ledger, watch)
        if found.ids and all(found.origins[code].kind != "turn" for code in set(found.codes)):
            continue
        known = set(found.ids)
        seen = 0
        for entry in ledger.read(Query(watch, ("turn.completed",), newest_first=True, limit=MOST)):
            seen += 1
            if entry.event.turn_id is not None and entry.event.turn_id not in known:
                times.append(entry.event.time)
        more = more or seen == MOST
    return {"turns": len(times), "oldest": min(times, default=None), "more": more}


def _going_on(ledger: Ledger, run_id: str | None) -> list[str]:
    """The watches that have begun and not come to their end; one that was paused goes on later."""
    begun = [entry.event for entry in ledger.read(Query(run_id, ("run.started",)))]
    ended = {entry.event.run_id for entry in ledger.read(Query(run_id, ("run.completed",)))}
    live = [event.run_id for event in begun if event.payload.get("live") and event.run_id not in ended]
    return [str(one) for one in dict.fromkeys(live)]
