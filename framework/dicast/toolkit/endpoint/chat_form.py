"""Requests in the OpenAI chat format, in the form that the endpoint accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol, Self

import attrs

from ..._kernel.values import ChatRequest, Cost, Message, Usage
from .chat_parts import content_of
from .parameters import SYSTEM_ROLE

FORMATS = ("json_schema", "json_object", "text")
"""The forms of ``response_format: auto``, the most exact first."""

MOST_TOP_LOGPROBS = 20


class ChatOptions(Protocol):
    """The options of a chat model that speaks the format; they decide the first form and the costs."""

    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def temperature(self) -> float | None: ...  # noqa: D102
    @property
    def top_p(self) -> float | None: ...  # noqa: D102
    @property
    def seed(self) -> int | None: ...  # noqa: D102
    @property
    def stop(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def system_role(self) -> str: ...  # noqa: D102
    @property
    def reasoning_effort(self) -> str | None: ...  # noqa: D102
    @property
    def max_reasoning_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def response_format(self) -> str: ...  # noqa: D102
    @property
    def cache_control(self) -> bool: ...  # noqa: D102
    @property
    def extra_body(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def tokens_per_minute(self) -> float | None: ...  # noqa: D102
    @property
    def is_assumed_free(self) -> bool: ...  # noqa: D102

    def estimate(self, request: ChatRequest, room: int | None = None) -> Cost: ...  # noqa: D102
    def cost(self, usage: Usage) -> Cost: ...  # noqa: D102
    def most_input_tokens(self, request: ChatRequest) -> int: ...  # noqa: D102
    def reasoning_room(self, *, has_reasoned: bool = False) -> int: ...  # noqa: D102
    def identity(self) -> dict[str, object]: ...  # noqa: D102


@attrs.frozen
class RequestForm:
    """The names and forms of parameters that the endpoint accepts, as far as they are known.

    :param limit: the name of the limit of output tokens.
    :param response_format: the form in which a schema is sent.
    :param role: the role of system messages; ``user`` puts them in front of the first user message.
    :param omitted: the parameters that are left out.
    :param top_logprobs: the most alternatives that a request may ask for at each token.
    """

    limit: str
    response_format: str
    role: str
    omitted: frozenset[str] = frozenset()
    top_logprobs: int = MOST_TOP_LOGPROBS

    @classmethod
    def of(cls, options: ChatOptions) -> Self:
        """Return the form that *options* ask for."""
        form = FORMATS[0] if options.response_format == "auto" else options.response_format
        return cls("max_tokens", form, "system" if options.system_role == "auto" else options.system_role)

    def value(self, name: str) -> object:
        """Return the state of the parameter *name*, to compare two forms."""
        states: dict[str, object] = {
            "max_tokens": self.limit,
            "max_completion_tokens": self.limit,
            "response_format": self.response_format,
            SYSTEM_ROLE: self.role,
            "top_logprobs": self.top_logprobs,
        }
        return states.get(name, name in self.omitted)

    def without(self, name: str, options: ChatOptions, message: str = "") -> Self | None:
        """Return the next form after the endpoint refused *name* with *message*; None if there is none."""
        if name in ("max_tokens", "max_completion_tokens"):
            return attrs.evolve(self, limit="max_completion_tokens") if self.limit == "max_tokens" else None
        if name == "response_format":
            place = FORMATS.index(self.response_format)
            if options.response_format != "auto" or place == len(FORMATS) - 1:
                return None
            return attrs.evolve(self, response_format=FORMATS[place + 1])
        if name == SYSTEM_ROLE:
            wants_developer = (
                self.role == "system" and "'developer'" in message and "support 'developer'" not in message
            )
            role = "developer" if wants_developer else "user"
            return None if options.system_role != "auto" or role == self.role else attrs.evolve(self, role=role)
        if name in ("logprobs", "top_logprobs"):  # a confidence or a score depends on them
            fewer = [number for number in map(int, re.findall(r"\d{1,2}", message)) if 0 < number < self.top_logprobs]
            return attrs.evolve(self, top_logprobs=max(fewer)) if fewer else None
        return None if name in self.omitted else attrs.evolve(self, omitted=self.omitted | {name})


def parameters(options: ChatOptions, request: ChatRequest, form: RequestForm, room: int) -> dict[str, Any]:
    """Return the body of *request* without its messages.

    :param room: the tokens for reasoning, which are added to the limit of the output.
    """
    temperature = options.temperature if request.temperature is None else request.temperature
    values: dict[str, Any] = {
        "temperature": temperature,
        "top_p": options.top_p,
        "seed": options.seed,
        "stop": list(options.stop) or None,
        "reasoning_effort": options.reasoning_effort,
        "logprobs": request.logprobs or None,
        "top_logprobs": min(request.top_logprobs, form.top_logprobs) or None if request.logprobs else None,
        "response_format": _response_format(request, form.response_format),
    }
    limit = {form.limit: request.max_output_tokens + room}
    return limit | {name: value for name, value in values.items() if value is not None and name not in form.omitted}


def request_body(options: ChatOptions, request: ChatRequest, form: RequestForm, room: int) -> dict[str, Any]:
    """Return the body of *request*."""
    marked = options.cache_control and "cache_control" not in form.omitted
    return {
        "model": options.model,
        "messages": messages(request.messages, form.role, marked=marked),
        **parameters(options, request, form, room),
        **options.extra_body,
    }


def adapted(options: ChatOptions, request: ChatRequest, form: RequestForm) -> tuple[str, ...]:
    """Return the names of the parameters of *request* that *form* translates or leaves out, sorted."""
    first = RequestForm.of(options)
    if form == first:
        return ()
    needed = {*parameters(options, request, first, 0), *(("cache_control",) if options.cache_control else ())}
    names = {name for name in form.omitted if name in needed}
    names |= {"max_tokens"} if form.limit != first.limit else set()
    if request.schema is not None and form.response_format != first.response_format:
        names.add("response_format")
    if form.top_logprobs < min(request.top_logprobs, first.top_logprobs):
        names.add("top_logprobs")
    if form.role != first.role and any(message.role == "system" for message in request.messages):
        names.add(SYSTEM_ROLE)
    return tuple(sorted(names))


def _response_format(request: ChatRequest, form: str) -> dict[str, Any] | None:
    if request.schema is None or form == "text":
        return None
    if form == "json_object":
        return {"type": form}
    return {"type": form, "json_schema": {"name": "reply", "schema": request.schema, "strict": True}}


def messages(turns: tuple[Message, ...], role: str, *, marked: bool) -> list[dict[str, Any]]:
    """Return *turns* in the chat format; system messages get *role*."""
    if role == "user":
        turns = _without_system(turns)
    return [_message(message, role if message.role == "system" else message.role, marked) for message in turns]


def _without_system(turns: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return *turns* with the texts of system messages in front of the first user message."""
    texts = [message.content for message in turns if message.role == "system"]
    rest = [message for message in turns if message.role != "system"]
    if not texts:
        return turns
    first = next((place for place, message in enumerate(rest) if message.role == "user"), None)
    if first is None:
        return (Message("user", "\n\n".join(texts)), *rest)
    front, user = "\n\n".join((*texts, "")), rest[first]
    parts = (front, *user.parts) if user.parts else ()
    rest[first] = attrs.evolve(user, content=front + user.content, parts=parts)
    return tuple(rest)


def _message(message: Message, role: str, marked: bool) -> dict[str, Any]:
    content = content_of(message)
    if message.cache and marked:
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        content = [*parts[:-1], {**parts[-1], "cache_control": {"type": "ephemeral"}}]
    return {"role": role, "content": content}
