"""Identity of trace events, to recognize an event that is sent twice."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import orjson

from dicast import TraceEvent

from ..recording import own_type


def identity(event: TraceEvent) -> bytes | None:
    """Return a digest that is equal for repeats of one event in a session; None if equal events may be two events.

    The end of a turn and the events of a tool call are identified by the ids that they name, at any time. The end of a
    session and all other events are identified by their times too; an event without a time may happen twice.
    """
    payload: Mapping[str, object] = {**event.payload, "extra": event.extra} if event.extra else event.payload
    time = event.time
    if event.type == "turn.completed" or payload.get("tool_use_id") is not None:
        time = None
    elif time is None and event.type != "session.ended":
        return None
    parts = [own_type(event.type), time, event.turn_id, payload]
    return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
