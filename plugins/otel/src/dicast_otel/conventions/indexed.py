"""Messages in numbered attributes: ``gen_ai.prompt.0.content``, ``llm.input_messages.0.message.content``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..span import Attributes
from .message import Collector
from .values import parsed, read_message

_NUMBER = re.compile(r"\d+", re.ASCII)


def tree(attributes: Attributes, prefix: str) -> list[dict[str, Any]]:
    """Return the attributes below *prefix* as a list of nested objects, in the order of their numbers."""
    items: dict[int, dict[str, Any]] = {}
    start = f"{prefix}."
    for key, value in attributes.items():
        if key.startswith(start):
            number, _, rest = key[len(start) :].partition(".")
            if _NUMBER.fullmatch(number) and rest:
                _put(items.setdefault(int(number), {}), rest.split("."), value)
    return [items[number] for number in sorted(items)]


def _put(target: dict[str, Any], names: list[str], value: object) -> None:
    for name in names[:-1]:
        inner = target.get(name)
        if not isinstance(inner, dict):
            inner = target[name] = {}
        target = inner
    target[names[-1]] = value


def _listed(value: object) -> list[Any]:
    """Return an object whose keys are numbers as a list; other values that are no list as an empty list."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else []
    return [value[key] for key in sorted(value, key=lambda key: int(key) if key.isdigit() else 0)]


def read_openllmetry(attributes: Attributes, prefix: str, role: str, collector: Collector) -> None:
    """Collect the messages of ``gen_ai.prompt.N`` or ``gen_ai.completion.N``."""
    for number, item in enumerate(tree(attributes, prefix)):
        message: dict[str, Any] = {"role": item.get("role") or role, "content": parsed_content(item.get("content"))}
        if "tool_calls" in item:
            message["tool_calls"] = [
                {key: value for key, value in call.items() if key in ("id", "name", "arguments")}
                for call in _listed(item["tool_calls"])
                if isinstance(call, dict)
            ]
        call = item.get("function_call")
        if isinstance(call, dict):
            message["function_call"] = call
        if isinstance(item.get("reasoning"), str) and item["reasoning"]:
            message["reasoning"] = item["reasoning"]
        for name in ("tool_call_id", "finish_reason", "refusal"):
            if isinstance(item.get(name), str) and item[name]:
                message[name] = item[name]
        if isinstance(item.get("name"), str):
            message["name"] = item["name"]
        read_message(message, f"{prefix}.{number}", collector)


def parsed_content(content: object) -> object:
    """Return the parts of a content that is a JSON text of parts, else *content* unchanged."""
    value = parsed(content)
    if isinstance(value, list) and value and all(isinstance(block, dict) and "type" in block for block in value):
        return value
    return content


def read_openinference(attributes: Attributes, prefix: str, role: str, collector: Collector) -> None:
    """Collect the messages of ``llm.input_messages.N`` or ``llm.output_messages.N``."""
    for number, item in enumerate(tree(attributes, prefix)):
        inner = item.get("message")
        fields: Mapping[str, Any] = inner if isinstance(inner, dict) else item
        message: dict[str, Any] = {"role": fields.get("role") or role}
        contents = [_content(content) for content in _listed(fields.get("contents"))]
        message["content"] = contents or fields.get("content")
        calls = [_call(call) for call in _listed(fields.get("tool_calls"))]
        if calls:
            message["tool_calls"] = calls
        elif fields.get("function_call_name"):
            call = {"name": fields["function_call_name"], "arguments": fields.get("function_call_arguments_json")}
            message["function_call"] = call
        for name in ("tool_call_id", "name"):
            if isinstance(fields.get(name), str) and fields[name]:
                message[name] = fields[name]
        read_message(message, f"{prefix}.{number}", collector)


def _content(value: object) -> object:
    inner = value.get("message_content") if isinstance(value, dict) else None
    if not isinstance(inner, dict):
        return value
    image = inner.get("image")
    if isinstance(image, dict):
        nested = image.get("image")
        url = image.get("url") or (nested.get("url") if isinstance(nested, dict) else None)
        return {"type": "image_url", "image_url": {"url": url}}
    if inner.get("type") == "image":
        return {"type": "image_url", "image_url": {"url": image}}
    return dict(inner)


def _call(value: object) -> dict[str, Any]:
    inner = value.get("tool_call") if isinstance(value, dict) else None
    call: Mapping[str, Any] = inner if isinstance(inner, dict) else value if isinstance(value, dict) else {}
    function = call.get("function")
    fields: Mapping[str, Any] = function if isinstance(function, dict) else call
    id_ = call.get("id")
    return {
        "id": id_ if isinstance(id_, str) else None,
        "type": "function",
        "function": {"name": str(fields.get("name") or ""), "arguments": fields.get("arguments")},
    }
