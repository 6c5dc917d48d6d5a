"""The parameters that a model accepts, as its refusals of this run show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from dicast import ChatRequest
from dicast.toolkit.endpoint import Complaint

DEFAULT_ROOM = 4_096
"""The tokens for reasoning, where the options name no number."""

LEAST_BUDGET = 1_024
"""The least ``budget_tokens`` that the API takes."""

_THINKS = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(?:[5-9]|[1-9]\d)(?:\b|-)")
"""Models that think by default: generation 5 and later."""

_FORMS = {"auto": ("json_schema", "tool", "text")}
_MOST = re.compile(r"max_tokens: \d+ > ([1-9]\d{0,8})(?!\d)")
_DROPPED = (
    ("reasoning_effort", re.compile(r"\beffort\b")),
    ("top_p", re.compile(r"\btop_p\b")),
    ("temperature", re.compile(r"\btemperature\b")),
    ("cache_control", re.compile(r"\bcache_control\b")),
)
"""Parameters that are left out where a refusal names them; the first that matches and was sent."""
_FORMAT = re.compile(
    r"output_config|output format|output_format|structured output|tool_choice|\btools?\b|json_schema|schema"
)


class ChatOptions(Protocol):
    """The options that a refusal may change."""

    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def temperature(self) -> float | None: ...  # noqa: D102
    @property
    def top_p(self) -> float | None: ...  # noqa: D102
    @property
    def thinking(self) -> str: ...  # noqa: D102
    @property
    def reasoning_effort(self) -> str | None: ...  # noqa: D102
    @property
    def max_reasoning_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def response_format(self) -> str: ...  # noqa: D102
    @property
    def cache_control(self) -> bool: ...  # noqa: D102


@attrs.frozen
class Room:
    """The tokens of one request: *answer* for the answer, *reasoning* for the reasoning before it."""

    answer: int
    reasoning: int
    most: int | None = None

    @property
    def total(self) -> int:
        """The limit that is sent."""
        total = self.answer + self.reasoning
        return total if self.most is None else min(total, self.most)


@attrs.frozen
class Accepted:
    """The parameters that the model accepts, as this run has learned them.

    :param refused: the names of parameters that are left out.
    :param translated: the kind of ``thinking`` that is sent in place of the option's.
    :param forms: how many forms of a schema were refused.
    :param most: the most output tokens of the model.
    :param thinks: whether a reply reported reasoning.
    :param doublings: how often the room for reasoning was doubled.
    """

    refused: frozenset[str] = frozenset()
    translated: str | None = None
    forms: int = 0
    most: int | None = None
    thinks: bool = False
    doublings: int = 0

    def adapted_for(self, chat: ChatOptions, request: ChatRequest) -> tuple[str, ...]:
        """Return the names of the options that are left out of *request*, or sent in another way."""
        names = set(self.refused)
        temperature = chat.temperature if request.temperature is None else request.temperature
        if temperature not in (None, 1) and self.kind(chat) in ("adaptive", "enabled"):
            names.add("temperature")
        if self.translated is not None:
            names.add("thinking")
        if self.forms:
            names.add("response_format")
        room = self.room(chat, request)
        if room.total < room.answer + room.reasoning:
            names.add("max_tokens")
        return tuple(sorted(names))

    def kind(self, chat: ChatOptions) -> str:
        """Return the kind of ``thinking`` that is sent; ``auto`` sends none."""
        kind = self.translated or chat.thinking
        return "auto" if "thinking" in self.refused else kind

    def is_thinking(self, chat: ChatOptions) -> bool:
        """Return whether the model spends tokens on reasoning."""
        kind = self.kind(chat)
        return kind in ("adaptive", "enabled") or (kind == "auto" and (self.thinks or does_think(chat.model)))

    def room(self, chat: ChatOptions, request: ChatRequest) -> Room:
        """Return the tokens for *request*."""
        if not self.is_thinking(chat):
            return Room(request.max_output_tokens, 0, self.most)
        room = chat.max_reasoning_tokens if chat.max_reasoning_tokens is not None else DEFAULT_ROOM
        if self.kind(chat) == "enabled":
            room = max(room, LEAST_BUDGET)
        if self.doublings:
            room = room << self.doublings or request.max_output_tokens
        return Room(request.max_output_tokens, room, self.most)

    def sampling(self, chat: ChatOptions, request: ChatRequest) -> Mapping[str, float]:
        """Return ``temperature`` and ``top_p``; a model that was asked to think takes no temperature."""
        temperature = chat.temperature if request.temperature is None else request.temperature
        is_free = self.kind(chat) in ("auto", "disabled")
        values = {"temperature": temperature if is_free else None, "top_p": chat.top_p}
        return {name: value for name, value in values.items() if value is not None and name not in self.refused}

    def thinking(self, chat: ChatOptions, room: Room) -> Mapping[str, Any] | None:
        """Return ``thinking``."""
        match self.kind(chat):
            case "auto":
                return None
            case "enabled":
                return {"type": "enabled", "budget_tokens": max(LEAST_BUDGET, room.total - room.answer)}
            case kind:
                return {"type": kind}

    def form(self, chat: ChatOptions, request: ChatRequest) -> str:
        """Return the form in which the schema is sent; ``text`` sends none."""
        if request.schema is None:
            return "text"
        forms = _FORMS.get(chat.response_format, (chat.response_format,))
        return forms[min(self.forms, len(forms) - 1)]

    def merged(self, other: Accepted) -> Accepted:
        """Return the union of this and *other*, without the doublings of a single call."""
        most = [limit for limit in (self.most, other.most) if limit is not None]
        return Accepted(
            self.refused | other.refused,
            self.translated or other.translated,
            max(self.forms, other.forms),
            min(most, default=None),
            self.thinks or other.thinks,
        )

    def without(self, complaint: Complaint, chat: ChatOptions, request: ChatRequest) -> Accepted | None:
        """Return this without the parameter that *complaint* names; None if it names none that can be left out."""
        message = complaint.message
        if match := _MOST.search(message):
            most = int(match[1])
            return attrs.evolve(self, most=most) if self.most is None or most < self.most else None
        if (changed := self._other_thinking(message, chat)) is not None:
            return changed
        sent = self._sent(chat, request)
        for name, pattern in _DROPPED:
            if name in sent and pattern.search(message):
                return attrs.evolve(self, refused=self.refused | {name})
        if self.form(chat, request) != "text" and _FORMAT.search(message):
            return self._next_form(chat, is_sealed(request))
        return None

    def _sent(self, chat: ChatOptions, request: ChatRequest) -> set[str]:
        sent = set(self.sampling(chat, request))
        if chat.reasoning_effort is not None:
            sent.add("reasoning_effort")
        if chat.cache_control and any(message.cache for message in request.messages):
            sent.add("cache_control")
        return sent - self.refused

    def _other_thinking(self, message: str, chat: ChatOptions) -> Accepted | None:
        """Return this with the kind of thinking that *message* asks for, by the words of the API."""
        kind = self.kind(chat)
        words = "adaptive thinking is not supported" if kind == "adaptive" else f"thinking.type.{kind}"
        if kind == "auto" or words not in message:
            return None
        other = {"adaptive": "enabled", "enabled": "adaptive"}.get(kind)
        if self.translated is None and other is not None:
            return attrs.evolve(self, translated=other)
        return attrs.evolve(self, refused=self.refused | {"thinking"})

    def _next_form(self, chat: ChatOptions, sealed: bool) -> Accepted | None:
        forms = _FORMS.get(chat.response_format, (chat.response_format,))[self.forms + 1 :]
        return attrs.evolve(self, forms=self.forms + 1) if forms and (sealed or forms[0] != "text") else None


def is_sealed(request: ChatRequest) -> bool:
    """Return whether the reply to *request* has to show a seal; else its form depends on the schema."""
    return any(f"seal: {nonce}" in request.messages[-1].content for nonce in request.nonces)


def is_about_form(complaint: Complaint, chat: ChatOptions, request: ChatRequest, accepted: Accepted) -> bool:
    """Return whether *complaint* refuses the form in which the schema of *request* was sent."""
    return accepted.form(chat, request) != "text" and _FORMAT.search(complaint.message) is not None


def does_think(model: str) -> bool:
    """Return whether *model* thinks by default, by its name."""
    return _THINKS.search(model.lower()) is not None
