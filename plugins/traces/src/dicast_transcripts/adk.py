"""Evaluation sets of Google's Agent Development Kit (ADK)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dicast import DataError
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import split_documents
from dicast.toolkit.message_formats.gemini import read_part
from dicast.toolkit.parts import Part, TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .values import Record, list_of, mapping_of, objects_of, text_of


@attrs.frozen
class Adk(SessionSource):
    """Evaluation sets of Google's Agent Development Kit: ``.evalset.json`` and ``.test.json``, old and new.

    A case becomes a session, an invocation a turn: the user's content, the calls with their responses, and the final response.
    """

    title = "an evaluation set of Google ADK"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of an evaluation set."""
        for record in beginning.objects:
            if _has(record, "eval_set_id") and _has(record, "eval_cases"):
                return Detection(cls.title)
            if "query" in record and ("expected_tool_use" in record or "reference" in record):
                return Detection(cls.title, "before 1.0") if "expected_tool_use" in record else None
            if any("expected_tool_use" in item for item in objects_of(record, "data")):
                return Detection(cls.title, "before 1.0")
        return None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield a session for each case; the queries of an old test file are one session."""
        queries: list[Record] = []
        for line, place, record in _records(reading):
            if "query" in record:
                queries.append(record)
            elif isinstance(record.get("data"), list):
                yield _queries(objects_of(record, "data"), text_of(record, "name"), reading)
            elif _has(record, "eval_cases"):
                for number, case in enumerate(_list(record, "eval_cases"), place):
                    yield _case(case, f"eval_cases[{number}]", text_of(record, "eval_set_id", "evalSetId"), reading)
            elif _has(record, "conversation"):
                yield _case(record, "", None, reading)
            else:
                reading.refuse("an evaluation set has 'eval_cases'", line)
        if queries:
            yield _queries(queries, None, reading)


def _records(reading: SessionReading) -> Iterator[tuple[int, int, Record]]:
    """Yield the records of a file with their lines; a document is yielded once for each of its cases, with the number of the case."""
    if reading.layout == "documents":
        yield from split_documents(reading, [("eval_cases",), ("evalCases",)])
    else:
        yield from ((line, 0, record) for _, line, record in reading.records())


def _case(case: Record, path: str, set_id: str | None, reading: SessionReading) -> Session:
    reading.totals.kinds["eval case"] += 1
    conversation = reading.conversation(text_of(case, "eval_id", "evalId") or set_id or reading.stem)
    for number, invocation in enumerate(_list(case, "conversation")):
        _add_invocation(invocation, f"{path}.conversation[{number}]".lstrip("."), conversation, reading)
    fields = ("session_input", "sessionInput", "rubrics", "creation_timestamp", "creationTimestamp")
    return reading.end(conversation, {key: case[key] for key in fields if case.get(key)})


def _add_invocation(invocation: Record, path: str, conversation: Conversation, reading: SessionReading) -> None:
    reading.totals.kinds["invocation"] += 1
    user = _parts(_mapping(invocation, "user_content"), f"{path}.user_content", reading)
    conversation.add("user", user)
    data = _mapping(invocation, "intermediate_data")
    for event in _list(data, "invocation_events"):
        _add_event(event, path, conversation, reading)
    for response in list_of(data, "intermediate_responses") or list_of(data, "intermediateResponses"):
        parts = response[1] if isinstance(response, list) and len(response) > 1 else []
        conversation.add("assistant", _parts({"parts": parts}, f"{path}.intermediate_responses", reading))
    calls: list[Part] = [_call(call, path, reading) for call in _list(data, "tool_uses")]
    if calls:
        conversation.add("assistant", calls)
    for item in _list(data, "tool_responses"):
        response = item.get("response")
        is_error = isinstance(response, dict) and bool(response.get("error"))
        conversation.add("tool", [ToolResult(text_of(item, "id"), response, text_of(item, "name"), is_error)])
    final = _parts(_mapping(invocation, "final_response"), f"{path}.final_response", reading)
    if final:
        conversation.add("assistant", final)


def _add_event(event: Record, path: str, conversation: Conversation, reading: SessionReading) -> None:
    parts = _parts(mapping_of(event, "content"), f"{path}.invocation_events", reading)
    if parts:
        conversation.add("user" if event.get("author") == "user" else "assistant", parts)


def _call(call: Record, path: str, reading: SessionReading) -> Part:
    name = text_of(call, "name", "tool_name")
    if name is None:
        return reading.unknown("tool use", ", ".join(call)[:60], f"{path}.intermediate_data.tool_uses")
    return ToolCall(text_of(call, "id"), name, call.get("args", call.get("tool_input")))


def _parts(content: Record, path: str, reading: SessionReading) -> list[Part]:
    try:
        return [
            read_part(part, f"{path}.parts", reading.shapes)
            for part in list_of(content, "parts")
            if not _is_empty(part)
        ]
    except DataError as error:
        return [reading.malformed(error, "content")]


def _is_empty(part: object) -> bool:
    """Return whether all fields of a part are null, which is the case in a response without a text."""
    return isinstance(part, dict) and all(value is None for value in part.values())


def _queries(queries: Sequence[Record], name: str | None, reading: SessionReading) -> Session:
    """Return the session of an old test file, or of a case of an old evaluation set."""
    conversation = reading.conversation(name or reading.stem)
    for number, query in enumerate(queries):
        reading.totals.kinds["query"] += 1
        conversation.add("user", [TextPart(text_of(query, "query") or "")])
        for response in objects_of(query, "expected_intermediate_agent_responses"):
            conversation.add("assistant", [TextPart(text_of(response, "text") or "")])
        for use in objects_of(query, "expected_tool_use"):
            conversation.add("assistant", [_call(use, f"[{number}]", reading)])
            if "mock_tool_output" in use:
                conversation.add("tool", [ToolResult(None, use["mock_tool_output"], text_of(use, "tool_name"))])
        if reference := text_of(query, "reference"):
            conversation.add("assistant", [TextPart(reference)])
    return reading.end(conversation)


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.title() for word in rest)


def _has(record: Record, key: str) -> bool:
    return key in record or _camel(key) in record


def _mapping(record: Record, key: str) -> Record:
    """Return the object at *key*, in snake case or in camel case."""
    return mapping_of(record, key) or mapping_of(record, _camel(key))


def _list(record: Record, key: str) -> list[Record]:
    """Return the objects in the list at *key*, in snake case or in camel case."""
    return objects_of(record, key) or objects_of(record, _camel(key))
