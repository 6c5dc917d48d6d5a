"""The summary of a turn or a workload, and the hints that a judge is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import Subject, TraceEvent
from dicast.toolkit.gallery import Gallery

from .conversation import ERROR_CHARS, KINDS, details, lived
from .room import Shown
from .section import Section

_TURN_CHARS = 2000
_LIFE = ("turn.completed", "llm.call_failed", "llm.call_completed")
_AGENTS = (*KINDS, "workload")


@attrs.frozen
class Hints:
    """Words that a grounded answer uses (*tokens*), and words that show it was made up (*forbidden*)."""

    tokens: tuple[str, ...]
    forbidden: tuple[str, ...]

    def render(self) -> str | None:
        """The hints as lines; None when there are none."""
        lines = [f"expected: {word}" for word in self.tokens] + [f"made up: {word}" for word in self.forbidden]
        return "\n".join(lines) or None


def is_turn(kind: str) -> bool:
    """Whether subjects of *kind* are judged as work of an agent, by the turn rubric."""
    return kind in _AGENTS


def summary(subject: Subject, hints: Hints, max_chars: int | None, gallery: Gallery) -> tuple[Shown, ...]:
    """Return the summary of a turn or a workload: tools by name, success and size; texts of *max_chars*, by default 2000."""
    limit = _TURN_CHARS if max_chars is None else max_chars
    texts = (
        ("TOOL ACTIVITY", activity(subject.events)),
        ("TURN LIFECYCLE", _lifecycle(subject.events)),
        ("GROUNDING HINTS", hints.render()),
    )
    return (
        _text("USER PROMPT", subject.input, limit, gallery),
        _text("ASSISTANT FINAL RESPONSE", subject.text.strip() and subject.output, limit, gallery),
        *(Shown(Section(title, text), len(text or ""), len(text or "")) for title, text in texts),
    )


def _text(title: str, value: object, limit: int, gallery: Gallery) -> Shown:
    """A section of any JSON value; what *limit* cuts off is told in its title, outside of the fence."""
    if value is None or value == "":
        return Shown(Section(title, None), 0, 0)
    text = gallery.text(value)
    if len(text) <= limit:
        return Shown(Section(title, text), len(text), len(text))
    return Shown(Section(title, text[:limit], (f"the first {limit} of {len(text)} characters",)), limit, len(text))


def with_context(hints: Hints, subject: Subject) -> Hints:
    """The *hints*, and those that came with the subject: in its ``evaluate`` block, and with a workload also beside it."""
    block = subject.context.get("evaluate")
    brought = [block] if isinstance(block, Mapping) else []
    brought += [subject.context] if subject.kind == "workload" else []
    if not brought:
        return hints
    tokens = [word for one in brought for word in _words(one.get("grounding_tokens"))]
    forbidden = [word for one in brought for word in _words(one.get("forbidden_grounding"))]
    return Hints(_once((*hints.tokens, *tokens)), _once((*hints.forbidden, *forbidden)))


def _once(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ()


def activity(events: Sequence[TraceEvent]) -> str | None:
    """One line for each tool call, for its end, and for the model that a router chose; None when there was nothing."""
    return "\n".join(line for event in events if (line := _acted(event.type, event.payload))) or None


def _acted(type_: str, payload: Mapping[str, object]) -> str | None:
    name = payload.get("tool_name")
    match type_:
        case "tool.called":
            return f"called {name}{details(payload, 'input_hash', 'side_effect')}"
        case "tool.completed":
            return f"completed {name}{details(payload, 'success', 'output_size')}"
        case "tool.failed":
            return f"failed {name}: {str(payload.get('error'))[:ERROR_CHARS]}"
        case "route.decided":
            return f"routed to {payload.get('chosen_model')}"
    return None


def _lifecycle(events: Sequence[TraceEvent]) -> str | None:
    """How the turn ended, and which calls of its model did not end well; None when that is not known."""
    lines = (lived(event.type, event.payload) for event in events if event.type in _LIFE)
    return "\n".join(line.removeprefix("turn ") for line in lines if line is not None) or None
