"""Turns of watches that wait for judging because the user's next action is still to come."""

from __future__ import annotations

from typing import Any

from dicast import Ledger, Query
from dicast.reading import read_verdicts

MOST = 10_000
"""Most turns of a watch that are counted, the newest first."""


def waiting(ledger: Ledger, run_id: str | None) -> dict[str, Any]:
    """Return the number of completed turns that no judge of their watch has judged, and the time of the oldest.

    Ended watches, and watches that judge other subjects than turns, have none. ``more`` is true if a watch has more than :data:`MOST` turns; the
    older ones were not counted.
    """
    times: list[str] = []
    has_more = False
    for watch in _going_on(ledger, run_id):
        rows = read_verdicts(ledger, watch)
        if rows.ids and all(rows.origins[code].kind != "turn" for code in set(rows.codes)):
            continue
        judged_ids = set(rows.ids)
        seen = 0
        for entry in ledger.read(Query(watch, ("turn.completed",), newest_first=True, limit=MOST)):
            seen += 1
            if entry.event.turn_id is not None and entry.event.turn_id not in judged_ids:
                times.append(entry.event.time)
        has_more = has_more or seen == MOST
    return {"turns": len(times), "oldest": min(times, default=None), "more": has_more}


def _going_on(ledger: Ledger, run_id: str | None) -> list[str]:
    """Return the ids of started watches without an end. A paused watch counts: it may be resumed later."""
    starts = [entry.event for entry in ledger.read(Query(run_id, ("run.started",)))]
    ended_runs = {entry.event.run_id for entry in ledger.read(Query(run_id, ("run.completed",)))}
    live = [event.run_id for event in starts if event.payload.get("live") and event.run_id not in ended_runs]
    return [str(watch) for watch in dict.fromkeys(live)]
