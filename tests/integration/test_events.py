"""The documentation of each type of event matches the recorded events."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest

import dicast

KERNEL = Path(dicast.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
TASK = """\
define:
  model: {openai/chat: {base_url: "${JUDGE_URL}", model: m-1, price: {input_per_mtok: 1, output_per_mtok: 2}}}
task: {prompt/chat: {model: model, user: "Rate {{ id }}"}}
extractors: [score_extractor/scores: {threshold: 3}]
aggregates: [stats/score_stats]
judges: [llm/judge: {model: model}]
baseline: {run: last, compare: [stats/score_delta]}
metrics: [proxy/length]
budget: {run: 1 usd}
"""


@pytest.fixture(scope="module")
def listed():
    """Return the members of each type's payload, its optional members, and its sensitivity."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)  # as for a script
        spec.loader.exec_module(generate)
    result = {}
    for name, _, kind, members in generate.event_types((KERNEL / "_kernel" / "events.py").read_text()):
        needed = {member for member in members if not member.endswith("?")}
        result[name] = needed, {member.rstrip("?") for member in members}, kind
    return result


def test_no_module_but_one_writes_the_type_of_an_event(listed):
    for path in KERNEL.rglob("*.py"):
        # the format of the ledger's lines has the types of three events in it
        if path.name != "events.py" and not {"testing", "templates", "ledger_lines"} & set(path.parts):
            texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
            assert [text for text in texts if isinstance(text, str) and text in listed] == [], path


def test_the_reserved_areas_are_those_of_the_types(listed):
    assert {name.partition(".")[0] + "." for name in listed} == set(dicast.RESERVED_AREAS)


def test_a_run_records_what_is_listed(shop, chat_server, monkeypatch, listed):
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    chat_server.answer = lambda request: json.dumps({"score": 4})  # no verdict: the judge asked for more
    shop.rows(*["An output."] * 6)
    shop.run(TASK.replace("baseline", "# baseline"))
    shop.run(TASK)
    assert shop.run(TASK.replace("1 usd", "0.0001 usd")).json["throttled"]
    met = set()
    for event in shop.events():
        needed, known_values, kind = listed[event["type"]]
        met.add(event["type"])
        assert f"`{event['sensitivity']}`" in kind or " if " in kind, event
        if known_values - {"reason"}:
            assert needed <= set(event["payload"]) <= known_values, event["type"]
    seldom = {
        "batch.intended",
        "batch.created",
        "batch.ended",
        "baseline.saved",
        "baseline.removed",
        "content.erased",
        "plan.made",
        "sinks.added",
        "source.position",
        "shard.committed",
        "shard.merging",
        "shard.merged",
        "shard.rooted",
        "run.stopped",
        "spend.lost",
        "spend.released",
        "record.failed",
    }
    assert set(listed) - met <= seldom
