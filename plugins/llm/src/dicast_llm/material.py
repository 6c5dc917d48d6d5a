"""What a judge is shown of a subject, as the sections of its question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import orjson

from dicast import Subject, TraceEvent

from .asking import Section

_TURN_CHARS = 2000
_ERROR_CHARS = 200  # of each tool's error: what came of a call, not its whole traceback
_TURNS = ("turn", "workload")


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
    """Whether subjects of *kind* are judged as work of an agent, by the turn rubric: turns and workloads."""
    return kind in _TURNS


def sections(subject: Subject, hints: Hints, max_chars: int | None) -> tuple[Section, ...]:
    """All of *subject* that the judge sees; *max_chars* limits each text, by default those of turns and workloads to 2000."""
    both = _with_context(hints, subject)
    if is_turn(subject.kind):
        return _turn(subject, both, _TURN_CHARS if max_chars is None else max_chars)
    return tuple(section for section in _row(subject, both, max_chars) if section is not None)


def _turn(subject: Subject, hints: Hints, limit: int) -> tuple[Section, ...]:
    return (
        _text("USER PROMPT", subject.input, limit),
        _text("ASSISTANT FINAL RESPONSE", subject.text.strip() and subject.output, limit),
        Section("TOOL ACTIVITY", _activity(subject.events)),
        Section("TURN LIFECYCLE", _lifecycle(subject.events)),
        Section("GROUNDING HINTS", hints.render()),
    )


def _row(subject: Subject, hints: Hints, limit: int | None) -> Iterator[Section | None]:
    yield _text("INPUT", subject.input, limit)
    yield _text("OUTPUT", subject.output, limit)
    yield None if subject.reference is None else _text("REFERENCE", subject.reference, limit)
    for section in (Section("TOOL ACTIVITY", _activity(subject.events)), Section("GROUNDING HINTS", hints.render())):
        yield section if section.text is not None else None


def _text(title: str, value: object, limit: int | None) -> Section:
    """A section of any JSON value; what *limit* cuts off is told in its title, outside of the fence."""
    if value is None or (value == "" and title != "OUTPUT"):
        return Section(title, None)
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if limit is None or len(text) <= limit:
        return Section(title, text)
    return Section(f"{title} (cut: the first {limit} of {len(text)} characters)", text[:limit])


def _with_context(hints: Hints, subject: Subject) -> Hints:
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


def _activity(events: Sequence[TraceEvent]) -> str | None:
    """One line for each tool call, for its end, and for the model that a router chose; None when there was nothing."""
    return "\n".join(line for event in events if (line := _acted(event.type, event.payload))) or None


def _acted(type_: str, payload: Mapping[str, object]) -> str | None:
    name = payload.get("tool_name")
    match type_:
        case "tool.called":
            return f"called {name}{_details(payload, 'input_hash', 'side_effect')}"
        case "tool.completed":
            return f"completed {name}{_details(payload, 'success', 'output_size')}"
        case "tool.failed":
            return f"failed {name}: {str(payload.get('error'))[:_ERROR_CHARS]}"
        case "route.decided":
            return f"routed to {payload.get('chosen_model')}"
    return None


def _lifecycle(events: Sequence[TraceEvent]) -> str | None:
    """How the turn ended, and which calls of its model did not end well; None when that is not known."""
    return "\n".join(line for event in events if (line := _lived(event.type, event.payload))) or None


def _lived(type_: str, payload: Mapping[str, object]) -> str | None:
    match type_:
        case "turn.completed":
            return f"completed{_details(payload, 'stop_reason', 'tool_call_count')}"
        case "llm.call_failed":
            return f"model call failed: {str(payload.get('error'))[:_ERROR_CHARS]}"
        case "llm.call_completed" if payload.get("stop_reason") == "max_tokens":
            return "model call stopped at its limit of tokens"
    return None


def _details(payload: Mapping[str, object], *keys: str) -> str:
    """`` key=value`` for each of *keys* that is there, true and false as in JSON."""
    told = ((key, payload[key]) for key in keys if payload.get(key) is not None)
    return "".join(f" {key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in told)
