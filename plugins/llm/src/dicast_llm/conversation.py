"""The conversation that a subject of a trace stands in: who said what, which tools were called with what, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any

import attrs
import orjson

from dicast import Subject, TraceEvent
from dicast.toolkit.dialects import message_text
from dicast.toolkit.gallery import Gallery

from .media import placed_text, thoughts

ERROR_CHARS = 200  # of each error of a call: what came of it, not its whole traceback
_WORD_DIGITS = 12
_FEEDBACK = ("feedback.explicit", "feedback.implicit")
_SYSTEM = ("system", "developer")
_CONTENT = {
    "message.sent": ("text",),
    "tool.called": ("input",),
    "tool.completed": ("output",),
    "llm.call_completed": ("input", "output"),
}
"""Which events carry what was said and done, and in which fields of their payloads."""

KINDS = ("turn", "tool_cycle", "session")
"""The kinds of subject that have a conversation."""


@attrs.frozen
class Said:
    """One message: its *head*, who speaks or which tool was called or answered, and its *text*. All of it is judged data.

    An *inline* text, such as a call's arguments, follows the head on its line. *plain* is the text as the trace has it, with markers
    for media.
    """

    head: str
    text: str = ""
    inline: bool = False
    plain: str | None = None

    @property
    def original(self) -> str:
        """The text as the trace has it."""
        return self.text if self.plain is None else self.plain

    def render(self, number: int, word: str) -> str:
        """The message under its *number*; its first line begins with *word*, which nobody else could have written."""
        line = f"{word} {number} {self.head}"
        return f"{line} {self.text}" if self.inline and self.text else f"{line}:\n{self.text}" if self.text else line


def transcript(messages: Sequence[tuple[int, Said]]) -> str:
    """The numbered *messages*, one under the other; the first line of each begins with the same word.

    The word is a digest of all of them, so that none of them can hold it and pass a part of itself off as another message.
    """
    plain = "\0".join(f"{said.head}\0{said.text}" for _, said in messages)
    word = sha256(plain.encode(errors="replace")).hexdigest()[:_WORD_DIGITS]
    return "\n".join(said.render(number, word) for number, said in messages)


@attrs.frozen
class Conversation:
    """What is known around a subject: the system's messages, the turns before, its own messages, feedback, and how it ended."""

    policy: str | None
    earlier: tuple[Said, ...]
    own: tuple[Said, ...]
    feedback: str | None
    lifecycle: str | None


def as_text(value: object) -> str:
    """*value* as text: a string as it is, nothing as ``""``, any other JSON value as compact JSON."""
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


def has_trace(subject: Subject) -> bool:
    """Whether *subject* is one of a trace: a turn, or a tool call or a session with events."""
    return subject.kind == "turn" or (subject.kind in KINDS and bool(subject.events or subject.trail.stop))


def hides_content(subject: Subject, events: Sequence[TraceEvent]) -> bool:
    """Whether tools were called, in all *events* of :func:`log`, of which the source has hashes and sizes alone."""
    own = _cycle(subject) if subject.kind == "tool_cycle" else events
    if any(key in event.payload for event in own for key in _CONTENT.get(event.type, ())):
        return False
    shown = any(key in event.payload for event in events for key in _CONTENT.get(event.type, ()))
    if subject.kind == "tool_cycle" and shown:  # what an error says is shown where the source has contents
        return all(event.type != "tool.failed" for event in own)
    return any(event.type.startswith("tool.") for event in events)


def conversation(
    subject: Subject,
    events: Sequence[TraceEvent],
    gallery: Gallery | None = None,
    *,
    answered: bool = True,
    reasoning: bool = False,
) -> Conversation:
    """Return the conversation in all *events* up to *subject*; the places of media in it are those of *gallery*, or else markers.

    Its answer is left out unless it is *answered*, and the reasoning of the model unless *reasoning* is true.
    """
    reader = _Reader(subject, events, gallery or Gallery("mark", "mark"), answered, reasoning)
    earlier, own = reader.turns()
    feedback = [] if subject.kind == "tool_cycle" else [_opinion(each, subject) for each in reader.feedback]
    return Conversation(
        "\n\n".join(reader.policy) or None,
        tuple(earlier),
        tuple(own),
        "\n".join(feedback) or None,
        "\n".join(_lifecycle(subject)) or None,
    )


def log(subject: Subject) -> list[TraceEvent]:
    """All that had happened, and the subject's own events that came later, such as feedback."""
    events = [*subject.trail]
    known = {id(event) for event in events}
    if subject.kind == "tool_cycle":
        return [*events, *(event for event in _cycle(subject) if id(event) not in known)]
    return [*events, *(event for event in subject.events if id(event) not in known)]


def _cycle(subject: Subject) -> list[TraceEvent]:
    """A tool call, and its end."""
    return [event for event in subject.events if str(event.payload.get("tool_use_id")) == subject.id]


def _next_call(subject: Subject) -> TraceEvent | None:
    """The call that follows in the turn."""
    later = (event for event in subject.events if event.type == "tool.called")
    return next((event for event in later if str(event.payload.get("tool_use_id")) != subject.id), None)


class _Reader:
    """Reads the events of one subject's session, turn by turn. What a model's calls repeat of it is taken once."""

    def __init__(
        self, subject: Subject, events: Sequence[TraceEvent], gallery: Gallery, answered: bool, reasoning: bool
    ) -> None:
        self._subject, self._events, self._gallery = subject, events, gallery
        self._answered, self._reasoning = answered, reasoning
        self.policy: dict[str, None] = {}
        self.feedback = [event for event in subject.events if event.type in _FEEDBACK]
        self._seen: set[tuple[str, str]] = set()

    def turns(self) -> tuple[list[Said], list[Said]]:
        """The messages of earlier turns, and the subject's own."""
        subject = self._subject
        current = subject.id if subject.kind == "turn" else subject.parent_id
        own = {id(event) for event in (_cycle(subject) if subject.kind == "tool_cycle" else subject.events)}
        groups: dict[str | None, list[TraceEvent]] = {}
        for event in self._events:
            if event.type not in _FEEDBACK:
                turn = current if id(event) in own and subject.kind != "session" else event.turn_id
                groups.setdefault(turn, []).append(event)
        if subject.kind == "session":
            return [], [message for events in groups.values() for message in self._said_in(events)]
        before = list(takewhile(lambda turn: turn != current, groups)) if current in groups else list(groups)
        if None in groups and None not in (current, *before):
            before.insert(0, None)  # what belongs to the session as a whole
        earlier = [message for turn in before for message in self._said_in(groups[turn])]
        return earlier, [*self._own(groups.get(current, ()))]

    def _own(self, events: Sequence[TraceEvent]) -> Iterator[Said]:
        subject = self._subject
        if subject.kind == "turn":
            events = events if self._answered else _without_answer(events, as_text(subject.output))
            yield from self._turn(events, subject.input, subject.output if self._answered else None)
            return
        ended = ("tool.completed", "tool.failed")
        own = {id(event) for event in _cycle(subject) if event.type in ended}
        yield from self._turn([event for event in events if self._answered or id(event) not in own], None, None)
        if self._answered and (following := _next_call(subject)) is not None:
            yield attrs.evolve(_called(following.payload), head=f"then {_called(following.payload).head}")

    def _said_in(self, events: Sequence[TraceEvent]) -> Iterator[Said]:
        """The messages of a turn that is not the subject."""
        texts: object = next(
            (event.payload.get("signals_extra") for event in reversed(events) if event.type == "turn.completed"), None
        )
        known: Mapping[str, object] = texts if isinstance(texts, Mapping) else {}
        said = (known.get(key) for key in ("final_response_text", "assistant_response_text"))
        final = next((text for text in said if isinstance(text, str) and text.strip()), None)
        yield from self._turn(events, known.get("user_prompt_text"), final)

    def _turn(self, events: Sequence[TraceEvent], asked: object, said: object) -> Iterator[Said]:
        """What the user *asked*, all that the events have, and what was *said* last, each once."""
        sent = [event.payload for event in events if event.type == "message.sent"]
        prompt, final = as_text(asked), as_text(said)
        if prompt and not any(each.get("role") == "user" and each.get("text") == prompt for each in sent):
            yield self._note("user", prompt)
        last: Said | None = None
        spoken: str | None = None
        for event in events:
            for message in self._messages(event):
                last = message
                spoken = message.original if message.head == "assistant" else spoken
                yield message
        ended = [event.payload.get("stop_reason") for event in events if event.type == "turn.completed"]
        is_last = last is not None and last.head == "assistant"
        if final.strip() and not (spoken == final and (is_last or "end_turn" not in ended)):
            yield self._note("assistant", final)

    def _messages(self, event: TraceEvent) -> Iterator[Said]:
        payload = event.payload
        match event.type:
            case "message.sent":
                if self._reasoning:
                    yield from (
                        Said(f"{_line(str(payload.get('role')))} (reasoning)", text) for text in thoughts(event)
                    )
                yield from self._spoken(payload.get("role"), payload.get("text"), again=True, payload=payload)
            case "tool.called":
                yield _called(payload)
            case "tool.completed":
                text = as_text(payload.get("output"))
                self._seen.add(("tool", text))
                came = "failed" if payload.get("success") is False else "returned"
                yield Said(f"{_name(payload)} {came}", placed_text(self._gallery, payload, text))
            case "tool.failed":
                text = placed_text(self._gallery, payload, as_text(payload.get("error")))
                yield Said(f"{_name(payload)} failed", text)
            case "llm.call_completed":
                yield from self._given(payload.get("input"))
                yield from self._answer(payload.get("output"))

    def _given(self, value: object) -> Iterator[Said]:
        """What a model was given: of a list of messages those that are not known yet."""
        messages = value.get("messages") if isinstance(value, Mapping) else value
        if isinstance(messages, list) and all(isinstance(each, Mapping) for each in messages):
            for message in messages:
                yield from self._spoken(message.get("role"), message_text(message))
        elif value is not None:
            yield from self._spoken("model input", as_text(value))

    def _answer(self, value: object) -> Iterator[Said]:
        text = message_text(value) if isinstance(value, Mapping) else None
        yield from self._spoken("assistant", as_text(value) if text is None else text, again=True)

    def _spoken(
        self, role: object, text: object, *, again: bool = False, payload: Mapping[str, Any] | None = None
    ) -> Iterator[Said]:
        """Yield the message *text*; *payload* is that of its event, if it has one, and may have media."""
        if not isinstance(text, str) or not text:
            return
        shown = text if payload is None else placed_text(self._gallery, payload, text)
        if role in _SYSTEM:
            self.policy[shown] = None
        elif again or (str(role), text) not in self._seen:
            yield self._note(str(role), text, shown)

    def _note(self, role: str, text: str, shown: str | None = None) -> Said:
        self._seen.add((role, text))
        return Said(_line(role), text if shown is None else shown, plain=text)


def _without_answer(events: Sequence[TraceEvent], answer: str) -> Sequence[TraceEvent]:
    """Return the *events* of a turn without the message that is its *answer*, if the turn ends with one."""
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if event.type == "message.sent":
            is_answer = event.payload.get("role") == "assistant" and event.payload.get("text") == answer
            return [*events[:place], *events[place + 1 :]] if is_answer else events
        if event.type.startswith("tool."):
            break
    return events


def _called(payload: Mapping[str, object]) -> Said:
    arguments = orjson.dumps(payload["input"]).decode() if "input" in payload else ""
    return Said(f"called {_name(payload)}", arguments, inline=True)


def _name(payload: Mapping[str, object]) -> str:
    return _line(str(payload.get("tool_name")))


def _line(name: str) -> str:
    """*name* on one line: a tool may be called anything."""
    return name if name.isprintable() else orjson.dumps(name).decode()


def _opinion(event: TraceEvent, subject: Subject) -> str:
    """One line for what a user said of the turn, or of a turn of the session."""
    payload = event.payload
    kind, said = ("explicit", "rating") if event.type == "feedback.explicit" else ("implicit", "type")
    about = payload.get("subject_turn_id") or (None if payload.get("scope") == "session" else event.turn_id)
    where = f" on turn {_line(str(about))}" if subject.kind == "session" and about is not None else ""
    return f"{kind}{where}: {_line(str(payload.get(said)))}"


def _lifecycle(subject: Subject) -> Iterator[str]:
    """How the subject ended, which model a router chose, and which calls of a model did not end well."""
    events: Iterable[TraceEvent] = subject.events
    if subject.kind == "tool_cycle":
        if all(event.type == "tool.called" for event in _cycle(subject)):
            yield "the call has no result"
        return
    for event in events:
        if (line := lived(event.type, event.payload)) is not None:
            yield line


def lived(type_: str, payload: Mapping[str, object]) -> str | None:
    """The line of LIFECYCLE for an event; None for one that says nothing of how a subject went and ended."""
    match type_:
        case "turn.completed":
            return f"turn completed{details(payload, 'stop_reason', 'tool_call_count')}"
        case "session.ended":
            return f"session ended{details(payload, 'disposition')}"
        case "route.decided":
            return f"routed to {_line(str(payload.get('chosen_model')))}"
        case "llm.call_failed":
            return f"model call failed: {str(payload.get('error'))[:ERROR_CHARS]}"
        case "llm.call_completed" if payload.get("stop_reason") == "max_tokens":
            return "model call stopped at its limit of tokens"
    return None


def details(payload: Mapping[str, object], *keys: str) -> str:
    """`` key=value`` for each of *keys* that is there, true and false as in JSON."""
    told = ((key, payload[key]) for key in keys if payload.get(key) is not None)
    return "".join(f" {key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in told)
