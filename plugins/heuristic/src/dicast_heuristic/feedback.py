"""Feedback of users on a turn or a session: thumbs, and implicit feedback by their next action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs

from dicast import Subject, TraceEvent

from .reading import Section
from .signs import Pair, Sign, pair

UP, DOWN = "explicit_thumbs_up", "explicit_thumbs_down"
THUMBS = {"thumbs_up": UP, "thumbs_down": DOWN}
IMPLICIT = {"retry": "no_retry_implicit", "manual_swap": "no_manual_swap_after", "edit_followup": "no_edit_followup"}
"""Next actions of a user, and the signals of their absence."""

_NEGATIVE = {
    "no_retry_implicit": "retry_implicit",
    "no_manual_swap_after": "manual_swap_after",
    "no_edit_followup": "edit_followup",
}
_TYPES = ("feedback.explicit", "feedback.implicit")


@attrs.frozen
class Bounds:
    """Bounds of a score with feedback: at least *up* after a thumb up, at most *down* after a thumb down."""

    up: float
    down: float

    @classmethod
    def read(cls, content: Section) -> Bounds:
        """Read the two figures of the section *content*."""
        return cls(content.side(UP, above=True), content.side(DOWN, above=False))

    def hold(self, score: float, thumb: str | None) -> float:
        """Return the *score* within the bound of the *thumb*."""
        if thumb is None:
            return score
        return max(score, self.up) if thumb == UP else min(score, self.down)


@attrs.frozen
class Opinion:
    """Feedback of a turn's user: the last *thumb*, and the *implicit* signals that did not fire."""

    thumb: str | None = None
    implicit: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there is any feedback."""
        return self.thumb is not None or bool(self.implicit)


@attrs.frozen
class Weighing:
    """Weights of feedback in a turn's score: *pairs* of signs by name, the *bounds*, and the bound of *implicit* feedback."""

    pairs: Mapping[str, Pair]
    bounds: Bounds
    implicit: float

    @classmethod
    def read(cls, content: Section) -> Weighing:
        """Read the figures of the section *content*, with ``weights`` and ``bounds``."""
        weights = content.section("weights", (*_NEGATIVE, UP, DOWN))
        bounds = content.section("bounds", (UP, DOWN, "implicit"))
        pairs = {name: pair(name, negative, weights.number(name)) for name, negative in _NEGATIVE.items()}
        pairs |= {thumb: pair(thumb, thumb, weights.number(thumb)) for thumb in (UP, DOWN)}
        return cls(pairs, Bounds.read(bounds), bounds.side("implicit", above=False))

    def signs(self, opinion: Opinion) -> list[Sign]:
        """Return the signs of *opinion*. With any feedback, an action that did not happen is a good flag without a weight."""
        if not opinion:
            return []
        implicit = [
            self.pairs[name][0] if name in opinion.implicit else Sign(name, True, 0.0) for name in IMPLICIT.values()
        ]
        return implicit if opinion.thumb is None else [*implicit, self.pairs[opinion.thumb][opinion.thumb == UP]]

    def hold(self, score: float, opinion: Opinion) -> float:
        """Return the *score* within the bound of the thumb, else of the implicit feedback."""
        if opinion.thumb is None and opinion.implicit:
            return min(score, self.implicit)
        return self.bounds.hold(score, opinion.thumb)


def of_turn(subject: Subject, lookahead: int) -> Opinion:
    """Return the feedback on the turn *subject*; a retry counts within the next *lookahead* user messages.

    ``feedback_after_messages`` in the context has the number of later messages before each feedback event. Without it, all events
    count.
    """
    events = [event for event in subject.events if event.type in _TYPES]
    if not events:
        return Opinion()
    after = subject.context.get("feedback_after_messages")
    distances = after if isinstance(after, list) and len(after) == len(events) else [0] * len(events)
    thumb, implicit = None, set[str]()
    for event in _in_time(events):
        if turn_of(event) in (None, subject.id):
            thumb = _thumb(event, "turn") or thumb
    for event, distance in zip(events, distances, strict=True):
        if turn_of(event) not in (None, subject.id) or event.type != "feedback.implicit":
            continue
        action = str(event.payload.get("type"))
        if action in IMPLICIT and (action != "retry" or distance <= lookahead):
            implicit.add(IMPLICIT[action])
    return Opinion(thumb, frozenset(implicit))


def of_session(events: Sequence[TraceEvent]) -> tuple[str | None, int]:
    """Return the last thumb of the session as a whole, and the number of turns whose last thumb is down."""
    session, turns = None, dict[str | None, str]()
    for event in _in_time(events):
        session = _thumb(event, "session") or session
        if thumb := _thumb(event, "turn"):
            turns[turn_of(event)] = thumb
    return session, sum(thumb == DOWN for thumb in turns.values())


def _in_time(events: Sequence[TraceEvent]) -> Sequence[TraceEvent]:
    """Return the explicit feedback among *events*, sorted by time if all events have times, else unsorted."""
    feedback = [event for event in events if event.type == "feedback.explicit"]
    if len(feedback) < 2 or not all(event.time for event in feedback):
        return feedback
    return sorted(feedback, key=lambda event: _instant(str(event.time)))


def _instant(time: str) -> datetime:
    """Return an ISO 8601 time; without an offset it is UTC."""
    moment = datetime.fromisoformat(time)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def turn_of(event: TraceEvent) -> str | None:
    """Return the turn of a feedback event: the turn that it names, else the turn in which it occurred."""
    about = event.payload.get("subject_turn_id")
    return event.turn_id if about is None else str(about)


def _thumb(event: TraceEvent, scope: str) -> str | None:
    """Return the thumb of *event* in *scope*, or None; feedback without a scope is about a turn."""
    if (event.payload.get("scope") or "turn") != scope:
        return None
    return THUMBS.get(str(event.payload.get("rating")))
