"""When two trace events are the same one, sent twice."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import orjson

from dicast import TraceEvent

from ..recording import own_type


def identity(event: TraceEvent) -> bytes | None:
    """A digest that equal events of one session share; None where equal ones may be two.

    The end of a turn and the events of a tool call are told apart by what they name, whenever they were sent; the end of a
    session and all others by their times, and what has no time may well happen twice.
    """
    payload: Mapping[str, object] = {**event.payload, "extra": event.extra} if event.extra else event.payload
    time = event.time
    if event.type == "turn.completed" or payload.get("tool_use_id") is not None:
        time = None
    elif time is None and event.type != "session.ended":
        return None
    parts = [own_type(event.type), time, event.turn_id, payload]
    return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
