"""What users said of a turn or a session: thumbs, and what they did next that says it without words."""

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
"""What a user may do next, and the signal that it did not happen."""

_NEGATIVE = {
    "no_retry_implicit": "retry_implicit",
    "no_manual_swap_after": "manual_swap_after",
    "no_edit_followup": "edit_followup",
}
_TYPES = ("feedback.explicit", "feedback.implicit")


@attrs.frozen
class Bounds:
    """Where feedback puts a score, whatever the rest says: *up* at least, *down* at most."""

    up: float
    down: float

    @classmethod
    def read(cls, content: Section) -> Bounds:
        """Read the two figures of the section *content*."""
        return cls(content.side(UP, above=True), content.side(DOWN, above=False))

    def hold(self, score: float, thumb: str | None) -> float:
        """The *score* on the side that the *thumb* gave."""
        if thumb is None:
            return score
        return max(score, self.up) if thumb == UP else min(score, self.down)


@attrs.frozen
class Opinion:
    """What is known of a turn from its user: the *thumb* given last, and the *implicit* signals that did not fire."""

    thumb: str | None = None
    implicit: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether there is any feedback."""
        return self.thumb is not None or bool(self.implicit)


@attrs.frozen
class Weighing:
    """How feedback enters a turn's score: *pairs* of signs by name, and the *bounds*; *implicit* is the one without a thumb."""

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
        """The signs of *opinion*: where there is feedback, what was not done is a good flag, without a weight."""
        if not opinion:
            return []
        implicit = [
            self.pairs[name][0] if name in opinion.implicit else Sign(name, True, 0.0) for name in IMPLICIT.values()
        ]
        return implicit if opinion.thumb is None else [*implicit, self.pairs[opinion.thumb][opinion.thumb == UP]]

    def hold(self, score: float, opinion: Opinion) -> float:
        """The *score* within its bounds: a thumb decides, else what was done next."""
        if opinion.thumb is None and opinion.implicit:
            return min(score, self.implicit)
        return self.bounds.hold(score, opinion.thumb)


def of_turn(subject: Subject, lookahead: int) -> Opinion:
    """The feedback on the turn *subject*; a retry counts within the next *lookahead* user messages.

    Its context says by ``feedback_after_messages`` how many later messages there were before each feedback event; without
    that all of them count.
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
        if (done := str(event.payload.get("type"))) in IMPLICIT and (done != "retry" or distance <= lookahead):
            implicit.add(IMPLICIT[done])
    return Opinion(thumb, frozenset(implicit))


def of_session(events: Sequence[TraceEvent]) -> tuple[str | None, int]:
    """The thumb given last to the session as a whole, and how many of its turns have a thumb down as their last one."""
    session, turns = None, dict[str | None, str]()
    for event in _in_time(events):
        session = _thumb(event, "session") or session
        if thumb := _thumb(event, "turn"):
            turns[turn_of(event)] = thumb
    return session, sum(thumb == DOWN for thumb in turns.values())


def _in_time(events: Sequence[TraceEvent]) -> Sequence[TraceEvent]:
    """The explicit feedback among *events*, the latest last: by their times where all have one, else as they stand."""
    given = [event for event in events if event.type == "feedback.explicit"]
    if len(given) < 2 or not all(event.time for event in given):
        return given
    return sorted(given, key=lambda event: _instant(str(event.time)))


def _instant(time: str) -> datetime:
    """An ISO 8601 time; one without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def turn_of(event: TraceEvent) -> str | None:
    """The turn that a feedback event is about: the one it names, else the one it was given in."""
    about = event.payload.get("subject_turn_id")
    return event.turn_id if about is None else str(about)


def _thumb(event: TraceEvent, scope: str) -> str | None:
    """The thumb that *event* gives in *scope*; feedback without a scope is about a turn."""
    if (event.payload.get("scope") or "turn") != scope:
        return None
    return THUMBS.get(str(event.payload.get("rating")))
