"""The sources keep the contract."""

from __future__ import annotations

import json

from dicast.testing import ReaderConformance


def _span(number: int, text: str) -> dict[str, object]:
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": [
            {"role": "user", "parts": [{"type": "text", "content": text}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "seen"}]},
        ],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "It is there."}]}],
    }
    ids = {"traceId": f"{number:032x}", "spanId": f"{number:016x}"}
    return {"name": "chat", "spanContext": ids, "startTime": [number, 0], "endTime": [number, 9], "attributes": chat}


class TestSpans(ReaderConformance):
    source = "otel/spans"
    files = {
        "spans.jsonl": "".join(json.dumps(_span(number, text)) + "\n" for number, text in enumerate(("A", "B"), 1))
    }
    options = {"path": "spans.jsonl", "subjects": ["turn", "tool_cycle", "session"]}
    unknown = files["spans.jsonl"].replace('"type": "text"', '"type": "hologram"')
