"""The conversation around a subject of a trace: messages of the user, the system and the agent, and tool calls with their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any

import attrs
import orjson

from dicast import Subject, TraceEvent
from dicast.toolkit.gallery import Gallery
from dicast.toolkit.message_formats import message_text
from dicast.toolkit.sessions import shown_tool

from .media import placed_text, thoughts

ERROR_CHARS = 200  # shown characters of the error of a call: the error may be a whole traceback
_WORD_DIGITS = 12
_FEEDBACK = ("feedback.explicit", "feedback.implicit")
_SYSTEM = ("system", "developer")
_CONTENT = {
    "message.sent": ("text",),
    "tool.called": ("input",),
    "tool.completed": ("output",),
    "llm.call_completed": ("input", "output"),
}
"""Payload fields with the texts of messages and the data of tool calls, by type of event."""

KINDS = ("turn", "tool_cycle", "session")
"""The kinds of subject that have a conversation."""


@attrs.frozen
class TranscriptMessage:
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
        """Return the message under its *number*. Its first line begins with *word*, which no message contains."""
        line = f"{word} {number} {self.head}"
        return f"{line} {self.text}" if self.inline and self.text else f"{line}:\n{self.text}" if self.text else line


def transcript(messages: Sequence[tuple[int, TranscriptMessage]]) -> str:
    """Return the numbered *messages*, one under another; the first line of each begins with the same word.

    The word is a digest of all messages. So no message can contain it, and no message can pass off a part of its text as another message.
    """
    plain = "\0".join(f"{message.head}\0{message.text}" for _, message in messages)
    word = sha256(plain.encode(errors="replace")).hexdigest()[:_WORD_DIGITS]
    return "\n".join(message.render(number, word) for number, message in messages)


@attrs.frozen
class Conversation:
    """The context of a subject: the system's messages, earlier turns, its own messages, feedback, and its ending."""

    policy: str | None
    earlier: tuple[TranscriptMessage, ...]
    messages: tuple[TranscriptMessage, ...]
    feedback: str | None
    lifecycle: str | None


def as_text(value: object) -> str:
    """Return *value* as text: a string unchanged, None as ``""``, any other JSON value as compact JSON."""
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


def has_trace(subject: Subject) -> bool:
    """Return True if *subject* has a trace: it is a turn, or a tool call or a session with events."""
    return subject.kind == "turn" or (subject.kind in KINDS and bool(subject.events or subject.trail.stop))


def hides_content(subject: Subject, events: Sequence[TraceEvent]) -> bool:
    """Return True if tools were called in *events*, all events of :func:`log`, and the source has only their hashes and sizes."""
    subject_events = _cycle(subject) if subject.kind == "tool_cycle" else events
    if any(key in event.payload for event in subject_events for key in _CONTENT.get(event.type, ())):
        return False
    has_content = any(key in event.payload for event in events for key in _CONTENT.get(event.type, ()))
    if subject.kind == "tool_cycle" and has_content:  # the text of an error is shown if the source has contents
        return all(event.type != "tool.failed" for event in subject_events)
    return any(event.type.startswith("tool.") for event in events)


def conversation(
    subject: Subject,
    events: Sequence[TraceEvent],
    gallery: Gallery | None = None,
    *,
    answered: bool = True,
    reasoning: bool = False,
) -> Conversation:
    """Return the conversation in all *events* up to *subject*. Media are placed by *gallery*, or else shown as markers.

    The subject's answer is included only if *answered* is true, the reasoning of the model only if *reasoning* is true.
    """
    reader = _Reader(subject, events, gallery or Gallery("mark", "mark"), answered, reasoning)
    earlier, messages = reader.turns()
    feedback = [] if subject.kind == "tool_cycle" else [_feedback_line(event, subject) for event in reader.feedback]
    return Conversation(
        "\n\n".join(reader.policy) or None,
        tuple(earlier),
        tuple(messages),
        "\n".join(feedback) or None,
        "\n".join(_lifecycle(subject)) or None,
    )


def log(subject: Subject) -> list[TraceEvent]:
    """Return all events up to the subject, and the subject's later events, such as feedback."""
    events = [*subject.trail]
    event_ids = {id(event) for event in events}
    if subject.kind == "tool_cycle":
        return [*events, *(event for event in _cycle(subject) if id(event) not in event_ids)]
    return [*events, *(event for event in subject.events if id(event) not in event_ids)]


def _cycle(subject: Subject) -> list[TraceEvent]:
    """Return the events of a tool call: the call and its end."""
    return [event for event in subject.events if str(event.payload.get("tool_use_id")) == subject.id]


def _next_call(subject: Subject) -> TraceEvent | None:
    """Return the next tool call of the turn, or None."""
    later = (event for event in subject.events if event.type == "tool.called")
    return next((event for event in later if str(event.payload.get("tool_use_id")) != subject.id), None)


class _Reader:
    """Reader of the events of one subject's session, turn by turn. Messages that a model's calls repeat are taken once."""

    def __init__(
        self, subject: Subject, events: Sequence[TraceEvent], gallery: Gallery, answered: bool, reasoning: bool
    ) -> None:
        self._subject, self._events, self._gallery = subject, events, gallery
        self._answered, self._reasoning = answered, reasoning
        self.policy: dict[str, None] = {}
        self.feedback = [event for event in subject.events if event.type in _FEEDBACK]
        self._seen: set[tuple[str, str]] = set()

    def turns(self) -> tuple[list[TranscriptMessage], list[TranscriptMessage]]:
        """Return the messages of earlier turns, and the subject's messages."""
        subject = self._subject
        current = subject.id if subject.kind == "turn" else subject.parent_id
        subject_ids = {id(event) for event in (_cycle(subject) if subject.kind == "tool_cycle" else subject.events)}
        groups: dict[str | None, list[TraceEvent]] = {}
        for event in self._events:
            if event.type not in _FEEDBACK:
                turn = current if id(event) in subject_ids and subject.kind != "session" else event.turn_id
                groups.setdefault(turn, []).append(event)
        if subject.kind == "session":
            return [], [message for events in groups.values() for message in self._earlier_turn(events)]
        before = list(takewhile(lambda turn: turn != current, groups)) if current in groups else list(groups)
        if None in groups and None not in (current, *before):
            before.insert(0, None)  # what belongs to the session as a whole
        earlier = [message for turn in before for message in self._earlier_turn(groups[turn])]
        return earlier, [*self._subject_messages(groups.get(current, ()))]

    def _subject_messages(self, events: Sequence[TraceEvent]) -> Iterator[TranscriptMessage]:
        subject = self._subject
        if subject.kind == "turn":
            events = events if self._answered else _without_answer(events, as_text(subject.output))
            yield from self._turn(events, subject.input, subject.output if self._answered else None)
            return
        end_types = ("tool.completed", "tool.failed")
        end_ids = {id(event) for event in _cycle(subject) if event.type in end_types}
        yield from self._turn([event for event in events if self._answered or id(event) not in end_ids], None, None)
        if self._answered and (following := _next_call(subject)) is not None:
            yield attrs.evolve(_called(following.payload), head=f"then {_called(following.payload).head}")

    def _earlier_turn(self, events: Sequence[TraceEvent]) -> Iterator[TranscriptMessage]:
        """Yield the messages of a turn that is not the subject."""
        texts: object = next(
            (event.payload.get("signals_extra") for event in reversed(events) if event.type == "turn.completed"), None
        )
        turn_texts: Mapping[str, object] = texts if isinstance(texts, Mapping) else {}
        texts_of_answer = (turn_texts.get(key) for key in ("final_response_text", "assistant_response_text"))
        final = next((text for text in texts_of_answer if isinstance(text, str) and text.strip()), None)
        yield from self._turn(events, turn_texts.get("user_prompt_text"), final)

    def _turn(self, events: Sequence[TraceEvent], prompt_value: object, answer: object) -> Iterator[TranscriptMessage]:
        """Yield the user's message *prompt_value*, all messages in the events, and the last answer *answer*, each once."""
        sent = [event.payload for event in events if event.type == "message.sent"]
        prompt, final = as_text(prompt_value), as_text(answer)
        if prompt and not any(payload.get("role") == "user" and payload.get("text") == prompt for payload in sent):
            yield self._note("user", prompt)
        last: TranscriptMessage | None = None
        spoken: str | None = None
        for event in events:
            for message in self._messages(event):
                last = message
                spoken = message.original if message.head == "assistant" else spoken
                yield message
        stop_reasons = [event.payload.get("stop_reason") for event in events if event.type == "turn.completed"]
        is_last = last is not None and last.head == "assistant"
        if final.strip() and not (spoken == final and (is_last or "end_turn" not in stop_reasons)):
            yield self._note("assistant", final)

    def _messages(self, event: TraceEvent) -> Iterator[TranscriptMessage]:
        payload = event.payload
        match event.type:
            case "message.sent":
                if self._reasoning:
                    yield from (
                        TranscriptMessage(f"{_line(str(payload.get('role')))} (reasoning)", text)
                        for text in thoughts(event)
                    )
                yield from self._spoken(payload.get("role"), payload.get("text"), again=True, payload=payload)
            case "tool.called":
                yield _called(payload)
            case "tool.completed":
                text = as_text(payload.get("output"))
                self._seen.add(("tool", text))
                outcome = "failed" if payload.get("success") is False else "returned"
                yield TranscriptMessage(f"{_name(payload)} {outcome}", placed_text(self._gallery, payload, text))
            case "tool.failed":
                text = placed_text(self._gallery, payload, as_text(payload.get("error")))
                yield TranscriptMessage(f"{_name(payload)} failed", text)
            case "llm.call_completed":
                yield from self._input_messages(payload.get("input"))
                yield from self._answer(payload.get("output"))

    def _input_messages(self, value: object) -> Iterator[TranscriptMessage]:
        """Yield the input of a model: of a list of messages, only the new messages."""
        messages = value.get("messages") if isinstance(value, Mapping) else value
        if isinstance(messages, list) and all(isinstance(item, Mapping) for item in messages):
            for message in messages:
                yield from self._spoken(message.get("role"), message_text(message))
        elif value is not None:
            yield from self._spoken("model input", as_text(value))

    def _answer(self, value: object) -> Iterator[TranscriptMessage]:
        text = message_text(value) if isinstance(value, Mapping) else None
        yield from self._spoken("assistant", as_text(value) if text is None else text, again=True)

    def _spoken(
        self, role: object, text: object, *, again: bool = False, payload: Mapping[str, Any] | None = None
    ) -> Iterator[TranscriptMessage]:
        """Yield the message *text*. *payload* is the payload of its event, if it has one, and may have media."""
        if not isinstance(text, str) or not text:
            return
        shown_text = text if payload is None else placed_text(self._gallery, payload, text)
        if role in _SYSTEM:
            self.policy[shown_text] = None
        elif again or (str(role), text) not in self._seen:
            yield self._note(str(role), text, shown_text)

    def _note(self, role: str, text: str, shown_text: str | None = None) -> TranscriptMessage:
        self._seen.add((role, text))
        return TranscriptMessage(_line(role), text if shown_text is None else shown_text, plain=text)


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


def _called(payload: Mapping[str, object]) -> TranscriptMessage:
    arguments = orjson.dumps(payload["input"]).decode() if "input" in payload else ""
    return TranscriptMessage(f"called {_name(payload)}", arguments, inline=True)


def _name(payload: Mapping[str, object]) -> str:
    return _line(shown_tool(payload))


def _line(name: str) -> str:
    """Return *name* on one line: the name of a tool may contain any character."""
    return name if name.isprintable() else orjson.dumps(name).decode()


def _feedback_line(event: TraceEvent, subject: Subject) -> str:
    """Return one line for a user's feedback on the turn, or on a turn of the session."""
    payload = event.payload
    kind, key = ("explicit", "rating") if event.type == "feedback.explicit" else ("implicit", "type")
    about = payload.get("subject_turn_id") or (None if payload.get("scope") == "session" else event.turn_id)
    where = f" on turn {_line(str(about))}" if subject.kind == "session" and about is not None else ""
    return f"{kind}{where}: {_line(str(payload.get(key)))}"


def _lifecycle(subject: Subject) -> Iterator[str]:
    """Yield lines for the ending of the subject, the model that a router chose, and the failed calls of a model."""
    events: Iterable[TraceEvent] = subject.events
    if subject.kind == "tool_cycle":
        if all(event.type == "tool.called" for event in _cycle(subject)):
            yield "the call has no result"
        return
    for event in events:
        if (line := lifecycle_line(event.type, event.payload)) is not None:
            yield line


def lifecycle_line(type_: str, payload: Mapping[str, object]) -> str | None:
    """Return the line of the section LIFECYCLE for an event; None for an event that has no line there."""
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
    """Return `` key=value`` for each of *keys* with a value in *payload*, with true and false as in JSON."""
    pairs = ((key, payload[key]) for key in keys if payload.get(key) is not None)
    return "".join(f" {key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in pairs)
