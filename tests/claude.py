"""Anthropic's Messages API for tests, which refuses the requests that the real one refuses, in its words.

    def test_it(chat_server, claude):               # fixtures of the conftest.py next to pyproject.toml
        claude.texts = ["Yes."]                     # one reply a request; the last is repeated
        chat_server.answer = claude
        Chat("claude-haiku-4-5", base_url=claude.url(chat_server), api_key=Secret(claude.key))

The rules of the models are in :data:`MODELS`, by the beginning of a model's name. A model that thinks spends
``thinking_tokens`` before it answers, and its answer is cut where they leave no room.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

VERSION = "2023-06-01"
FIELDS = {
    "model", "messages", "max_tokens", "system", "temperature", "top_p", "top_k", "stop_sequences", "stream", "metadata", "tools",
    "tool_choice", "cache_control", "thinking", "output_config", "service_tier", "container", "inference_geo", "context_management",
}  # fmt: skip
EFFORTS = ("low", "medium", "high", "xhigh", "max")
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_SEAL = re.compile(r"^seal: ([0-9a-f]{12})\s*$", re.MULTILINE)
_ANSWER_TOKENS = 20
_DOCS = "Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"


@attrs.frozen
class Model:
    """The parameters that a model takes.

    :param sampling: whether it takes ``temperature`` and ``top_p``.
    :param kinds: the kinds of ``thinking``.
    :param thinks: whether it thinks without being asked.
    :param formats: whether it takes ``output_config.format``.
    :param forced: whether ``tool_choice`` may force a tool.
    """

    sampling: bool = True
    kinds: tuple[str, ...] = ("disabled", "enabled")
    thinks: bool = False
    efforts: tuple[str, ...] = ()
    formats: bool = True
    forced: bool = True
    prefill: bool = True
    most: int = 64_000


MODELS: Mapping[str, Model] = {
    "claude-3-haiku": Model(kinds=(), formats=False, most=4096),
    "claude-haiku-4-5": Model(),
    "claude-sonnet-4-6": Model(kinds=("disabled", "enabled", "adaptive"), efforts=("low", "medium", "high", "max"), prefill=False),
    "claude-opus-4-7": Model(False, ("disabled", "adaptive"), efforts=EFFORTS, prefill=False, most=128_000),
    "claude-opus-5-5": Model(False, ("adaptive",), True, EFFORTS, forced=False, prefill=False, most=128_000),
    "claude-opus-5": Model(False, ("disabled", "adaptive"), True, EFFORTS, prefill=False, most=128_000),
}  # fmt: skip


class Refused(Exception):
    """An error of the API: its status, type and message."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error", **details: Any) -> None:
        super().__init__(message)
        self.status, self.kind, self.details = status, kind, details


class Claude:
    """The API, as an answer of a chat server.

    :ivar texts: the texts of the replies; ``$SEAL`` becomes the seal of the prompt. The last is repeated.
    :ivar usage: further members of ``usage``.
    :ivar reply_members: further members of each reply, such as ``stop_reason``.
    :ivar broken: gives an answer in place of a reply, or None; it is asked after the checks of the request.
    """

    def __init__(self, make: Callable[..., Any], key: str = "sk-ant-test-0123456789") -> None:
        """Take the class of the server's answers."""
        self._make, self.key = make, key
        self.texts = ["Yes."]
        self.thinking_tokens = 600
        self.usage: dict[str, Any] = {}
        self.reply_members: dict[str, Any] = {}
        self.broken: Callable[[Any], Any] = lambda asked: None
        self.refusals: list[str] = []

    @staticmethod
    def url(server: Any) -> str:
        """Return the ``base_url`` for *server*."""
        return f"http://127.0.0.1:{server.port}"

    def __call__(self, asked: Any) -> Any:
        """Return the answer to a request."""
        try:
            model = _check(asked, self.key)
        except Refused as error:
            self.refusals.append(str(error))
            return self.error(str(error), error.status, error.kind, **error.details)
        broken = self.broken(asked)
        return self._make(body=self._message(asked.body, model)) if broken is None else broken

    def error(
        self, message: str, status: int, kind: str, headers: Mapping[str, str] | None = None, **details: Any
    ) -> Any:
        """Return an error in the form of the API."""
        error = {"type": kind, "message": message, **({"details": details} if details else {})}
        body = {"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
        return self._make(status=status, headers=headers or {}, body=body)

    def _message(self, body: Mapping[str, Any], model: Model) -> dict[str, Any]:
        kind = body.get("thinking", {}).get("type", "adaptive" if model.thinks else "disabled")
        thought = 0 if kind == "disabled" else self.thinking_tokens
        text = self._text(body)
        room = body["max_tokens"] - thought
        content = [{"type": "thinking", "thinking": "", "signature": "EqQB"}] if thought else []
        forced = body.get("tool_choice", {}).get("type") == "tool"
        if room >= _ANSWER_TOKENS:
            content.append({"type": "tool_use", "id": "toolu_01", "name": body["tools"][0]["name"], "input": json.loads(text)} if forced else {"type": "text", "text": text})  # fmt: skip
        written = min(body["max_tokens"], thought + _ANSWER_TOKENS)
        reason = "tool_use" if forced else "end_turn"
        return {
            "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
            "type": "message",
            "role": "assistant",
            "model": f"{body['model']}-20260101",
            "content": content,
            "stop_reason": reason if room >= _ANSWER_TOKENS else "max_tokens",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 100,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"thinking_tokens": min(thought, body["max_tokens"])},
                "service_tier": "standard",
                **self.usage,
            },
            **self.reply_members,
        }

    def _text(self, body: Mapping[str, Any]) -> str:
        text = self.texts[0] if len(self.texts) == 1 else self.texts.pop(0)
        prompt = "\n".join(str(block.get("text", "")) for block in _blocks(body["messages"][-1]["content"]))
        return text.replace("$SEAL", (_SEAL.findall(prompt) or [""])[-1])


def _check(asked: Any, key: str) -> Model:
    """Return the rules of the model.

    :raises Refused: as the API refuses the request.
    """
    body = asked.body
    _check_headers(asked, key)
    for name in ("model", "messages", "max_tokens"):
        _unless(name in body, f"{name}: Field required")
    for name in body:
        _unless(name in FIELDS, f"{name}: Extra inputs are not permitted")
    model = next((rules for name, rules in MODELS.items() if body["model"].startswith(name)), None)
    if model is None:
        raise Refused(f"model: {body['model']}", 404, "not_found_error")
    _check_size(body, model)
    _check_messages(body, model)
    _check_sampling(body, model)
    _check_thinking(body, model)
    _check_output(body, model)
    return model


def _unless(fine: bool, message: str) -> None:
    if not fine:
        raise Refused(message)


def _check_headers(asked: Any, key: str) -> None:
    if asked.path != "/v1/messages":
        raise Refused("Not found", 404, "not_found_error")
    if "x-api-key" not in asked.headers:
        raise Refused("x-api-key header is required", 401, "authentication_error")
    if asked.headers["x-api-key"] != key:
        raise Refused("invalid x-api-key", 401, "authentication_error")
    _unless("anthropic-version" in asked.headers, "anthropic-version: header is required")
    given = asked.headers["anthropic-version"]
    _unless(given == VERSION, f'anthropic-version: "{given}" is not a valid version for this route')
    _unless(asked.headers.get("content-type", "").startswith("application/json"), "content-type: application/json is required")  # fmt: skip


def _check_size(body: Mapping[str, Any], model: Model) -> None:
    most = body["max_tokens"]
    _unless(type(most) is int and most >= 1, "max_tokens: Input should be greater than or equal to 1")
    _unless(most <= model.most, f"max_tokens: {most} > {model.most}, which is the maximum allowed number of output tokens for {body['model']}")  # fmt: skip


def _check_messages(body: Mapping[str, Any], model: Model) -> None:
    messages = body["messages"]
    _unless(bool(messages), "messages: at least one message is required")
    before = ""
    for number, message in enumerate(messages):
        role = message["role"]
        _unless(set(message) == {"role", "content"}, f"messages.{number}: Extra inputs are not permitted")
        _unless(role in ("user", "assistant"), f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.')  # fmt: skip
        _unless(number > 0 or role == "user", 'messages: first message must use the "user" role')
        _unless(role != before, f'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles in a row')  # fmt: skip
        before = role
        for place, block in enumerate(_blocks(message["content"])):
            _check_block(block, f"messages.{number}.content.{place}")
    for block in _blocks(body.get("system", [])):
        _unless(block["type"] == "text" and bool(block["text"]), "system: text content blocks must be non-empty")
    _unless(before == "user" or model.prefill, "This model does not support assistant message prefill. The conversation must end with a user message.")  # fmt: skip
    marked = sum("cache_control" in block for block in _all_blocks(body))
    _unless(marked <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marked}.")


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _all_blocks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from _blocks(body.get("system", []))
    for message in body["messages"]:
        yield from _blocks(message["content"])


def _check_block(block: Mapping[str, Any], place: str) -> None:
    kind = block.get("type")
    allowed = {"text": {"text"}, "image": {"source"}, "document": {"source", "title", "context"}}
    _unless(kind in allowed, f"{place}: Input tag {kind!r} found using 'type' does not match any of the expected tags: 'document', 'image', 'text'")  # fmt: skip
    for name in set(block) - allowed[str(kind)] - {"type", "cache_control"}:
        raise Refused(f"{place}.{kind}.{name}: Extra inputs are not permitted")
    if kind == "text":
        _unless(bool(block["text"]), "messages: text content blocks must be non-empty")
        _unless(bool(block["text"].strip()), "messages: text content blocks must contain non-whitespace text")
        return
    source = block["source"]
    if source["type"] == "url":
        _unless(set(source) == {"type", "url"}, f"{place}.{kind}.source.url: Extra inputs are not permitted")
        return
    where = f"{place}.{kind}.source.{source['type']}.media_type"
    types = IMAGES if kind == "image" else ("application/pdf",) if source["type"] == "base64" else ("text/plain",)
    _unless(source["media_type"] in types, f"{where}: Input should be {' or '.join(map(repr, types))}")


def _check_sampling(body: Mapping[str, Any], model: Model) -> None:
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if value is None:
            continue
        _unless(0 <= value <= 1, f"{name}: Input should be less than or equal to 1")
        _unless(model.sampling or value == 1, f"`{name}` is deprecated for this model.")
    _unless(not {"temperature", "top_p"} <= set(body), "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")  # fmt: skip
    for text in body.get("stop_sequences", []):
        _unless(bool(text.strip()), "stop_sequences: each stop sequence must contain non-whitespace")


def _check_thinking(body: Mapping[str, Any], model: Model) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind, budget = thinking["type"], thinking.get("budget_tokens")
    if kind not in model.kinds:
        raise Refused(
            "adaptive thinking is not supported on this model"
            if kind == "adaptive"
            else f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    if kind == "enabled":
        _unless(budget is not None, "thinking.enabled.budget_tokens: Field required")
        _unless(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        _unless(budget < body["max_tokens"], f"`max_tokens` must be greater than `thinking.budget_tokens`. {_DOCS}")
    else:
        _unless(budget is None, f"thinking.{kind}.budget_tokens: Extra inputs are not permitted")
    if kind != "disabled":
        warm = body.get("temperature", 1) == 1
        _unless(warm, f"`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. {_DOCS}")
        forced = body.get("tool_choice", {}).get("type") in ("tool", "any")
        _unless(not forced, "Thinking may not be enabled when tool_choice forces tool use.")


def _check_output(body: Mapping[str, Any], model: Model) -> None:
    config = body.get("output_config", {})
    for name in set(config) - {"effort", "format", "task_budget"}:
        raise Refused(f"output_config.{name}: Extra inputs are not permitted")
    if (effort := config.get("effort")) is not None:
        _unless(bool(model.efforts), "This model does not support the effort parameter.")
        _unless(effort in model.efforts, f"output_config.effort: This model does not support effort level '{effort}'. Supported levels: {', '.join(model.efforts)}.")  # fmt: skip
    if "format" in config:
        _unless(model.formats, f"'{body['model']}' does not support output format.")
        _check_schema(config["format"]["schema"])
    if body.get("tool_choice", {}).get("type") in ("tool", "any"):
        _unless(model.forced, "tool_choice: forcing a tool is not supported for this model.")


def _check_schema(schema: Any, place: str = "output_config.format.schema") -> None:
    kind = schema.get("type")
    if kind == "object":
        _unless(schema.get("additionalProperties") is False, f"{place}: For 'object' type, 'additionalProperties' must be explicitly set to false")  # fmt: skip
    refused = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"} & set(schema)  # fmt: skip
    _unless(not refused, f"{place}: For '{kind}' type, properties {', '.join(sorted(refused))} are not supported")
    for inner in schema.get("properties", {}).values():
        _check_schema(inner, place)
    if "items" in schema:
        _check_schema(schema["items"], place)
