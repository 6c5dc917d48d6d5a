"""Files of other tools: the counts of the source equal an independent count."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "traces")
FILES = sorted([*FOLDER.glob("otlp/*.json"), *FOLDER.glob("openinference/*.json")])
MISSING = f"there are no traces in {FOLDER}; DICAST_OUTSIDE_DATA names the folder that has them"

pytestmark = [pytest.mark.outside_data, pytest.mark.skipif(not FILES, reason=MISSING)]


def _flat_spans(document):
    """Yield the trace id and the attributes of each span of any of these files."""
    if isinstance(document, list):
        for item in document:
            yield from _flat_spans(item)
    elif "data" in document and isinstance(document["data"], list):
        for trace in document["data"]:
            for span in trace["spans"]:
                yield trace["traceID"], {tag["key"]: tag["value"] for tag in span["tags"]}
    elif "batches" in document:
        for batch in document["batches"]:
            for scoped in batch["instrumentationLibrarySpans"]:
                for span in scoped["spans"]:
                    yield (
                        span["traceId"],
                        {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]},
                    )
    elif "spanContext" in document:
        yield document["spanContext"]["traceId"], document["attributes"]
    elif all(isinstance(value, list) and value and isinstance(value[0], dict) for value in document.values()):
        for spans in document.values():
            yield from _flat_spans(spans)
    else:
        yield "", document


def _expected(document):
    """Count sessions, calls, results and messages: of each session the longest history that a call of a model has, with its answer."""
    longest: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    results: dict[str, set[str]] = {}
    for trace, attributes in _flat_spans(document):
        session = attributes.get("gen_ai.conversation.id", trace)
        messages: list[object] = []
        if "gen_ai.prompt.0.role" in attributes:
            roles = [
                key
                for key in attributes
                if key.startswith(("gen_ai.prompt.", "gen_ai.completion.")) and key.endswith(".role")
            ]
            messages = roles
            calls.setdefault(session, set()).update(
                str(attributes[key]) for key in attributes if ".tool_calls." in key and key.endswith(".id")
            )
            results.setdefault(session, set()).update(
                str(attributes[key]) for key in attributes if key.endswith(".tool_call_id")
            )
        elif "ai.prompt" in attributes or "ai.prompt.messages" in attributes:
            prompt = json.loads(attributes.get("ai.prompt.messages", attributes.get("ai.prompt")))
            inner = prompt if isinstance(prompt, list) else prompt.get("messages", [prompt])
            messages = [*inner, "answer"]
        elif "gen_ai.input.messages" in attributes or str(attributes.get("input.value", "")).startswith('[{"role"'):
            inner = json.loads(attributes.get("gen_ai.input.messages", attributes.get("input.value")))
            messages = [*inner, "answer"]
            parts = [part for message in inner for part in message["parts"]]
            calls.setdefault(session, set()).update(part["id"] for part in parts if part["type"] == "tool_call")
            results.setdefault(session, set()).update(
                part["id"] for part in parts if part["type"] == "tool_call_response"
            )
        if messages:
            longest[session] = max(longest.get(session, 0), len(messages))
    return {
        "sessions": len(longest),
        "messages": sum(longest.values()),
        "calls": sum(map(len, calls.values())),
        "results": sum(map(len, results.values())),
        "failed_results": 0,
        "unmatched_calls": 0,
        "unmatched_results": 0,
    }


@pytest.mark.parametrize("path", FILES or [FOLDER], ids=lambda path: path.name)
def test_counts_equal_an_independent_count(path, read):
    counts = read(path).counts
    expected = _expected(json.loads(path.read_text()))
    assert {name: counts.details["contents"][name] for name in expected} == expected
    assert expected["sessions"] > 0
    assert not counts.marked
    assert counts.failed == 0
