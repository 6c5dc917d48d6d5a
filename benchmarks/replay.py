"""Recorded conversations as a live trace: ``uv run python benchmarks/replay.py CONVERSATIONS [--rate N] [--out FILE]``.

The conversations of a file in the OpenAI chat format become trace events in the order of their times, many conversations at
once, with feedback put in: thumbs and retries, some of them long after what they are about.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
SPREAD = 3600.0
"""Seconds within which the conversations begin."""

Event = dict[str, Any]


def events(path: Path, seed: int = 4, *, limit: int | None = None) -> list[Event]:
    """The events of the conversations in *path*, in the order of their times."""
    from dicast_traces import Messages

    drawn = random.Random(seed)
    source = Messages(path, id="{{ task_id }}-{{ trial }}", tool_error="^Error", subjects=["tool_cycle", "session"])
    sessions = [subject for subject in source.subjects() if subject.kind == "session"][:limit]
    timed = [each for session in sessions for each in _timed(_with_feedback(session, drawn), drawn)]
    timed.sort(key=lambda each: each[0])
    return [{**event, "time": (START + timedelta(seconds=at)).isoformat()} for at, event in timed]


def _with_feedback(session: Any, drawn: random.Random) -> list[Event]:
    """Return the session's events as they are in the log; each turn's label by its user follows the turn."""
    lines = [
        {"type": event.type, "session_id": event.session_id, "turn_id": event.turn_id, "payload": dict(event.payload)}
        for event in session.events
    ]
    turns = [line["turn_id"] for line in lines if line["type"] == "turn.completed"]
    for number, turn in enumerate(turns):
        chance = drawn.random()
        if chance < 0.2:
            rating = drawn.choice(("thumbs_up", "thumbs_down"))
            said = {"scope": "turn", "subject_turn_id": turn, "rating": rating}
            _say(lines, turns, number + drawn.randrange(9), "feedback.explicit", said)
        elif chance < 0.3:
            said = {"type": drawn.choice(("retry", "manual_swap", "edit_followup")), "subject_turn_id": turn}
            _say(lines, turns, number + drawn.randrange(9), "feedback.implicit", said)
    if drawn.random() < 0.2:
        said = {"scope": "session", "rating": drawn.choice(("thumbs_up", "thumbs_down"))}
        _say(lines, turns, len(turns), "feedback.explicit", said)
    return lines


def _say(lines: list[Event], turns: list[str], after: int, type: str, payload: Event) -> None:
    """Put feedback behind the end of a turn, by its number; behind all where there is no such turn."""
    line = {"type": type, "session_id": lines[0]["session_id"], "turn_id": None, "payload": payload}
    place = len(lines)
    if after < len(turns):
        ends = (
            at for at, each in enumerate(lines) if each["type"] == "turn.completed" and each["turn_id"] == turns[after]
        )
        place = next(ends) + 1
    lines.insert(place, line)


def _timed(lines: Iterable[Event], drawn: random.Random) -> Iterator[tuple[float, Event]]:
    at = drawn.uniform(0, SPREAD)
    for line in lines:
        at += drawn.expovariate(0.2)
        yield at, line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("conversations", type=Path, help="JSON lines, one conversation a line, gzip or not")
    parser.add_argument("--rate", type=float, default=0.0, help="events a second; all at once by default")
    parser.add_argument("--seed", type=int, default=4, help="of the times and the feedback")
    parser.add_argument("--limit", type=int, help="so many conversations at most")
    parser.add_argument("--out", type=Path, help="the file to append to, in place of standard output")
    given = parser.parse_args()
    target = sys.stdout if given.out is None else given.out.open("a", encoding="utf-8")
    for event in events(given.conversations, given.seed, limit=given.limit):
        target.write(json.dumps(event) + "\n")
        target.flush()
        if given.rate:
            time.sleep(1 / given.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
