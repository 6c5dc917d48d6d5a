"""Bodies of requests to the Messages API."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from dicast import ChatRequest, Media, Message

from .accepted import Accepted, ChatOptions

TOOL = "reply"
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF = "application/pdf"
_UNSUPPORTED = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems", "uniqueItems",
})  # fmt: skip
"""Keywords of JSON Schema that ``output_config.format`` refuses. The reply is checked against the whole schema in any case."""
_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_OF_VALUES = ("enum", "const", "default", "required", "examples")


class RequestOptions(ChatOptions, Protocol):
    """The options that decide the body of a request."""

    @property
    def stop(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def extra_body(self) -> Mapping[str, Any]: ...  # noqa: D102


def body(chat: RequestOptions, request: ChatRequest, accepted: Accepted) -> dict[str, Any]:
    """Return the body for *request*, with the parameters that the model accepts."""
    room = accepted.room(chat, request)
    data: dict[str, Any] = {
        "model": chat.model,
        "max_tokens": room.total,
        "messages": _turns(chat, request.messages, accepted),
    }
    if system := _system(chat, request.messages, accepted):
        data["system"] = system
    if chat.stop:
        data["stop_sequences"] = list(chat.stop)
    data |= accepted.sampling(chat, request)
    if thinking := accepted.thinking(chat, room):
        data["thinking"] = thinking
    output: dict[str, Any] = {}
    if chat.reasoning_effort is not None and "reasoning_effort" not in accepted.refused:
        output["effort"] = chat.reasoning_effort
    form = accepted.form(chat, request)
    if form == "json_schema":
        output["format"] = {"type": "json_schema", "schema": _plain(request.schema)}
    elif form == "tool":
        data["tools"] = [{"name": TOOL, "description": "Gives the reply.", "input_schema": request.schema}]
        data["tool_choice"] = {"type": "tool", "name": TOOL}
    if output:
        data["output_config"] = output
    return _merged(data, chat.extra_body)


def _merged(data: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *data* with the members of *fields*; of two objects, with the members of both."""
    for name, value in fields.items():
        if isinstance(value, Mapping) and isinstance(data.get(name), dict):
            data[name] = {**data[name], **value}
        else:
            data[name] = value
    return data


def _system(chat: RequestOptions, messages: Iterable[Message], accepted: Accepted) -> list[dict[str, Any]]:
    return [
        block
        for message in messages
        if message.role == "system"
        for block in _blocks(chat, message, accepted, media=False)
    ]


def _turns(chat: RequestOptions, messages: Iterable[Message], accepted: Accepted) -> list[dict[str, Any]]:
    """Return the messages of user and assistant; neighbors of one role are one message, since roles have to alternate."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        blocks = _blocks(chat, message, accepted)
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": message.role, "content": blocks})
    return [turn if turn["content"] else {**turn, "content": ""} for turn in turns]


def _blocks(chat: RequestOptions, message: Message, accepted: Accepted, *, media: bool = True) -> list[dict[str, Any]]:
    """Return the content blocks of *message*; the API refuses blocks without a visible character."""
    has_parts = bool(media and message.parts)
    blocks: list[dict[str, Any]] = []
    for part in message.parts if has_parts else (message.content,):
        block = part if isinstance(part, str) else media_block(part) or part.marker
        if isinstance(block, str):
            if block.strip():
                blocks.append({"type": "text", "text": _unicode(block)})
        else:
            blocks.append(block)
    if blocks and message.cache and chat.cache_control and "cache_control" not in accepted.refused:
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return blocks


def media_block(media: Media) -> dict[str, Any] | None:
    """Return the content block of *media*; None if the API has none for its type."""
    kind = "image" if media.media_type in IMAGES else "document" if _is_document(media) else None
    if kind is None:
        return None
    titled: dict[str, Any] = {"title": media.name} if kind == "document" and media.name else {}
    if media.data is None:
        source: dict[str, Any] = {"type": "url", "url": media.url}
        return {"type": kind, "source": source, **titled}
    if media.media_type == "text/plain":
        text = b64decode(media.data).decode(errors="replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": kind, "source": source, **titled}
    source = {"type": "base64", "media_type": media.media_type, "data": media.data}
    return {"type": kind, "source": source, **titled}


def _is_document(media: Media) -> bool:
    return media.media_type == _PDF or (media.media_type == "text/plain" and media.data is not None)


def _plain(schema: Any) -> Any:
    """Return *schema* without the keywords that the API refuses."""
    if not isinstance(schema, Mapping):
        return [_plain(value) for value in schema] if isinstance(schema, list | tuple) else schema
    plain: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _OF_SCHEMAS and isinstance(value, Mapping):
            plain[name] = {key: _plain(inner) for key, inner in value.items()}
        elif name in _OF_VALUES:
            plain[name] = value
        elif name not in _UNSUPPORTED:
            plain[name] = _plain(value)
    return plain


def _unicode(text: str) -> str:
    """Return *text* without lone surrogates, which JSON cannot have and judged text may have."""
    return text if text.isascii() else text.encode(errors="replace").decode()
