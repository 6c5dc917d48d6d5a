"""The summary of a turn or a workload, and the hints for a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import Subject, TraceEvent
from dicast.toolkit.gallery import Gallery
from dicast.toolkit.sessions import shown_tool

from .conversation import ERROR_CHARS, KINDS, details, lifecycle_line
from .room import ShownSection
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
        """Return the hints as lines; None without hints."""
        lines = [f"expected: {word}" for word in self.tokens] + [f"made up: {word}" for word in self.forbidden]
        return "\n".join(lines) or None


def is_turn(kind: str) -> bool:
    """Return True if subjects of *kind* are judged as work of an agent, by the turn rubric."""
    return kind in _AGENTS


def summary(subject: Subject, hints: Hints, max_chars: int | None, gallery: Gallery) -> tuple[ShownSection, ...]:
    """Return a turn or a workload as a summary: tools by name, success and size; texts of at most *max_chars*, by default 2000."""
    limit = _TURN_CHARS if max_chars is None else max_chars
    texts = (
        ("TOOL ACTIVITY", activity(subject.events)),
        ("TURN LIFECYCLE", _lifecycle(subject.events)),
        ("GROUNDING HINTS", hints.render()),
    )
    return (
        _text("USER PROMPT", subject.input, limit, gallery),
        _text("ASSISTANT FINAL RESPONSE", subject.text.strip() and subject.output, limit, gallery),
        *(ShownSection(Section(title, text), len(text or ""), len(text or "")) for title, text in texts),
    )


def _text(title: str, value: object, limit: int, gallery: Gallery) -> ShownSection:
    """Return a section of any JSON value. Its title, outside of the fence, reports a cut by *limit*."""
    if value is None or value == "":
        return ShownSection(Section(title, None), 0, 0)
    text = gallery.text(value)
    if len(text) <= limit:
        return ShownSection(Section(title, text), len(text), len(text))
    return ShownSection(
        Section(title, text[:limit], (f"the first {limit} of {len(text)} characters",)), limit, len(text)
    )


def with_context(hints: Hints, subject: Subject) -> Hints:
    """Return the *hints* with the subject's hints: from its ``evaluate`` block, and from the context of a workload."""
    block = subject.context.get("evaluate")
    sources = [block] if isinstance(block, Mapping) else []
    sources += [subject.context] if subject.kind == "workload" else []
    if not sources:
        return hints
    tokens = [word for source in sources for word in _words(source.get("grounding_tokens"))]
    forbidden = [word for source in sources for word in _words(source.get("forbidden_grounding"))]
    return Hints(_without_repeats((*hints.tokens, *tokens)), _without_repeats((*hints.forbidden, *forbidden)))


def _without_repeats(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ()


def activity(events: Sequence[TraceEvent]) -> str | None:
    """Return one line for each tool call, for its end, and for the model that a router chose; None without such events."""
    return "\n".join(line for event in events if (line := _activity_line(event.type, event.payload))) or None


def _activity_line(type_: str, payload: Mapping[str, object]) -> str | None:
    name = shown_tool(payload)
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
    """Return lines for the ending of the turn, and for the failed calls of its model; None if they are unknown."""
    lines = (lifecycle_line(event.type, event.payload) for event in events if event.type in _LIFE)
    return "\n".join(line.removeprefix("turn ") for line in lines if line is not None) or None
