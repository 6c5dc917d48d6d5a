"""Chat sessions of Copilot in VS Code: documents with requests and the parts of their responses."""

from __future__ import annotations

from dicast.toolkit.parts import Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from .values import Record, list_of, mapping_of, objects_of, text_of

_SILENT = frozenset(
    ("progressMessage", "progressTaskSerialized", "progressTask", "undoStop", "codeblockUri", "mcpServersStarting", "prepareToolInvocation",
     "inlineReference", "confirmation", "command", "elicitation", "elicitationSerialized", "textEditGroup", "notebookEditGroup", "extensions",
     "treeData", "multiDiffData", "pullRequest", "warning", "references", "usedContext", "questionCarousel", "hook")
)  # fmt: skip
"""Kinds of response parts that the model did not write."""


def is_chat(record: Record) -> bool:
    """Return whether *record* is a chat session."""
    requests = objects_of(record, "requests")
    return "requests" in record and ("responderUsername" in record or any("response" in item for item in requests))


def read_chat(record: Record, reading: SessionReading) -> Session:
    """Return the session of a chat."""
    conversation = reading.conversation(text_of(record, "sessionId") or reading.stem)
    for index, request in enumerate(objects_of(record, "requests")):
        reading.totals.kinds["request"] += 1
        message = request.get("message")
        text = message if isinstance(message, str) else text_of(mapping_of(request, "message"), "text")
        conversation.add("user", [TextPart(text or "")])
        conversation.model_call(model=text_of(request, "modelId"))
        parts = _response(request, f"requests[{index}].response", reading)
        if parts:
            conversation.add("assistant", parts)
        error = text_of(mapping_of(mapping_of(request, "result"), "errorDetails"), "message")
        if request.get("isCanceled") is True:
            conversation.interruption("interrupted")
        elif error is not None:
            conversation.model_failure(error, model=text_of(request, "modelId"))
    fields = ("creationDate", "customTitle", "responderUsername", "initialLocation")
    return reading.end(conversation, {key: record[key] for key in fields if record.get(key)})


def _response(request: Record, path: str, reading: SessionReading) -> list[Part]:
    parts: list[Part] = []
    texts: list[str] = []
    for number, part in enumerate(list_of(request, "response")):
        value = part.get("value") if isinstance(part, dict) else part
        value = text_of(value, "value") or "" if isinstance(value, dict) else value
        kind = part.get("kind") if isinstance(part, dict) else None
        if kind in (None, "markdownContent") and isinstance(value, str):
            texts.append(value)
            continue
        if texts:
            parts.append(TextPart("".join(texts)))
            texts = []
        if kind == "thinking":
            parts.append(ReasoningPart(value if isinstance(value, str) else ""))
        elif kind == "toolInvocationSerialized":
            parts += _tool(part)
        elif isinstance(kind, str) and kind in _SILENT:
            reading.totals.kinds[str(kind)] += 1
        else:
            parts.append(reading.unknown("part", kind, f"{path}[{number}]"))
    error = mapping_of(mapping_of(request, "result"), "errorDetails")
    if message := text_of(error, "message"):
        texts.append(message)
    return [*parts, TextPart("".join(texts))] if texts else parts


def _tool(part: Record) -> list[Part]:
    id_, name = text_of(part, "toolCallId"), text_of(part, "toolId", "toolName") or "unknown"
    data = mapping_of(part, "toolSpecificData")
    message = part.get("invocationMessage")
    shown = text_of(message, "value") if isinstance(message, dict) else message
    arguments = data.get("rawInput", data or ({"message": shown} if shown else None))
    call = ToolCall(id_, name, arguments)
    details = part.get("resultDetails")
    if details is None and part.get("isComplete") is not True:
        return [call]
    past = part.get("pastTenseMessage")
    text = text_of(past, "value") if isinstance(past, dict) else past
    is_error = isinstance(details, dict) and details.get("isError") is True
    return [call, ToolResult(id_, text if details is None else details, is_error=is_error)]
