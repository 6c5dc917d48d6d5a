"""Kinds of spans, by the attributes of each convention."""

from __future__ import annotations

import re
from typing import Literal

from ..span import Attributes, Span
from .events import has_messages

Kind = Literal[
    "model", "tool", "agent", "chain", "retriever", "embedding", "reranker", "guardrail", "evaluator", "prompt"
]

_OPERATIONS: dict[str, Kind] = {
    "chat": "model",
    "text_completion": "model",
    "completion": "model",
    "generate_content": "model",
    "embeddings": "embedding",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "chain",
    "invoke_workflow": "chain",
    "retrieval": "retriever",
}
_WORDS: dict[str, Kind] = {
    "llm": "model",
    "chat_model": "model",
    "generation": "model",
    "chat": "model",
    "completion": "model",
    "tool": "tool",
    "agent": "agent",
    "chain": "chain",
    "workflow": "chain",
    "task": "chain",
    "span": "chain",
    "retriever": "retriever",
    "embedding": "embedding",
    "reranker": "reranker",
    "rerank": "reranker",
    "guardrail": "guardrail",
    "evaluator": "evaluator",
    "prompt": "prompt",
}
_NAMES = (
    "openinference.span.kind",
    "langfuse.observation.type",
    "mlflow.spanType",
    "llm.request.type",
    "traceloop.span.kind",
)
_MODEL_KEYS = re.compile(
    r"gen_ai\.(input\.messages|output\.messages|(prompt|completion)(\.\d+\..*)?)|llm\.(input|output)_messages\.\d+\..*"
    r"|llm\.(prompts|completions)\.\d+\..*|ai\.prompt\.messages"
)
_PREFIXES = ("gen_ai.", "llm.", "openinference.", "traceloop.", "ai.", "mlflow.", "langfuse.", "gcp.vertex.agent.", "input.", "output.",
             "pydantic_ai.", "all_messages_events", "request_data")  # fmt: skip
_IO_KEYS = ("input.value", "output.value", "traceloop.entity.input", "traceloop.entity.output", "mlflow.spanInputs", "mlflow.spanOutputs",
            "langfuse.observation.input", "langfuse.observation.output")  # fmt: skip


def kind_of(span: Span) -> Kind | None:
    """Return the kind of *span*, None for a span of other work, such as a database query."""
    attributes = span.attributes
    if not attributes and not span.events:
        return None
    if not span.events and not any(key.startswith(_PREFIXES) for key in attributes):  # as spans of other work
        return None
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation in _OPERATIONS:
        return _OPERATIONS[operation]
    if (kind := _vercel(attributes)) is not None:
        return kind
    for name in _NAMES:
        word = attributes.get(name)
        if isinstance(word, str) and (kind := _WORDS.get(word.strip('"').lower())) is not None:
            return kind
    return _by_shape(span)


def _vercel(attributes: Attributes) -> Kind | None:
    operation = attributes.get("ai.operationId")
    if not isinstance(operation, str) or not operation.startswith("ai."):
        return None
    if operation == "ai.toolCall":
        return "tool"
    return (
        "embedding"
        if operation.startswith("ai.embed")
        else "reranker"
        if operation.startswith("ai.rerank")
        else "model"
    )


def _by_shape(span: Span) -> Kind | None:
    attributes = span.attributes
    if attributes.get("gcp.vertex.agent.llm_request") not in (None, "", "{}"):
        return "model"
    if "pydantic_ai.all_messages" in attributes or "all_messages_events" in attributes:
        return "agent"
    if "gen_ai.tool.call.id" in attributes or (
        "gen_ai.tool.name" in attributes and "gen_ai.request.model" not in attributes
    ):
        return "tool"
    if any(_MODEL_KEYS.fullmatch(key) for key in attributes) or has_messages(span.events):
        return "model"
    if "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes:
        return "model"
    if "request_data" in attributes and "response_data" in attributes:
        return "model"
    if "gen_ai.agent.name" in attributes and "gen_ai.conversation.id" not in attributes:
        return "agent"
    return "chain" if any(key in attributes for key in _IO_KEYS) else None
