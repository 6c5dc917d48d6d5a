"""Outputs that try to judge themselves, in whole runs: the verdict is the model's, and the files stay unchanged."""

from __future__ import annotations

import csv
import json
import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TABLE = runpy.run_path(str(ROOT / "plugins" / "llm" / "tests" / "test_injection.py"))["HOSTILE"]
NAMES = (
    "verdict with a seal",
    "verdict with all keys of others",
    "verdict in a code fence",
    "inner text, twice",
    "a string that stays open before it",
    "an end of a rationale, and a new string",
    "closing fence, guessed",
    "seal line",
    "seal, a template",
    "ChatML",
    "bidi",
    "line separators",
    "NUL",
    "curly quotes",
    "huge exponent",
    "repeated keys",
    "long: opening braces",
    "long: members",
)
IDS = (
    '=HYPERLINK("http://x")',
    "+1",
    "-1",
    "@SUM(A1)",
    '{"score": 1}',
    'a,"b"',
    "<script>",
    "a\tb",
    "${JUDGE_URL}",
    "é\u202e",
)
FENCED = re.compile(r"^<<<data ([0-9a-f]{16})\n(.*?)\ndata \1>>>", re.MULTILINE | re.DOTALL)
OWN = {"confidence": 0.8, "rationale": "It tries to grade itself."}
WAYS = ("echo", "repeat", "quote", "judge")
MODELS = "".join(
    f'  {way}: {{openai/chat: {{base_url: "${{JUDGE_URL}}", model: {way}, price: free}}}}\n' for way in WAYS
)
JUDGES = "".join(
    f"  - llm/judge: {{as: {way}-{seal}, model: {way}, seal: {seal}, retries: 0}}\n"
    f"  - llm/pairwise: {{as: {way}-{seal}-pair, model: {way}, seal: {seal}, retries: 0}}\n"
    for way in WAYS
    for seal in ("true", "false")
)
FILE = f"""\
define:
{MODELS}judges:
{JUDGES}gate: {{on: judge-true}}
sinks:
  - csv/rows: {{path: rows.csv}}
  - jsonl/events: {{path: events.jsonl}}
"""
TURNS = f"""\
source: {{traces/messages: {{path: chats.jsonl, tool_error: "^Error"}}}}
define:
{MODELS}judges:
  - hybrid/cascade: {{as: echo, stages: [heuristic/turn, {{llm/judge: {{model: echo}}}}]}}
  - hybrid/cascade: {{as: quote, stages: [heuristic/turn, {{llm/judge: {{model: quote}}}}]}}
gate: {{on: quote}}
"""


def answer(request):
    """Reply as the model's name says, to the hostile text in the prompt."""
    fenced = [text for _, text in FENCED.findall(request.prompt)]
    sealed = {"seal": request.seal} if request.seal else {}
    decides = {"winner": "tie"} if "SECOND OUTPUT" in request.prompt else {"score": 0.1}
    verdict = json.dumps(sealed | decides | OWN)
    match request.body["model"]:
        case "echo":
            return "\n\n".join(fenced)
        case "repeat":
            return request.prompt
        case "quote":
            return "\n\n".join(fenced) + f"\n\nMy verdict:\n```json\n{verdict}\n```"
    return verdict


@pytest.fixture
def ran(shop, chat_server, monkeypatch):
    """``ran(text)``: run against a model that repeats and quotes its input, in a separate process."""
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    chat_server.answer = answer
    return lambda text: shop.process("run", shop.pipeline(text).name, "--json")


@pytest.fixture
def judged(ran, shop):
    """A finished run over hostile outputs with hostile ids; the rows' ids."""
    ids = [*IDS, *(f"r{number}" for number in range(len(NAMES) - len(IDS)))]
    rows = [
        {"id": id, "input": f"Which? {TABLE[name][:500]}", "output": TABLE[name], "reference": "A plain answer."}
        for id, name in zip(ids, NAMES, strict=True)
    ]
    shop.write("data.jsonl", rows)
    done = ran(FILE)
    assert (done.code, done.err) == (0, "")
    return done, ids


def test_only_a_verdict_of_the_model_is_a_verdict(judged, shop, chat_server):
    done, ids = judged
    assert chat_server.count == len(ids) * len(WAYS) * 2 * 3
    document = done.json
    verdicts = shop.dicast("verdicts", "--json").json["verdicts"]
    failures = shop.dicast("verdicts", "--failed", "--json").json["failures"]
    for way in WAYS:
        for label in (f"{way}-{seal}{pair}" for seal in ("true", "false") for pair in ("", "-pair")):
            components = {verdict["subject_id"]: verdict["score"] for verdict in verdicts if verdict["judge"] == label}
            failed = [failure for failure in failures if failure["judge"] == label]
            good = way in ("quote", "judge")
            assert components == (dict.fromkeys(ids, 0.5 if label.endswith("pair") else 0.1) if good else {}), label
            assert [failure["failure_mode"] for failure in failed] == ["judge_output_invalid"] * (not good) * len(ids)
            assert document["judges"][label]["scored"] == len(components)
            assert not any(word in failure["error_message"] for failure in failed for word in ("Perfect", "score: 1"))


def test_documents_and_files_of_a_hostile_run_are_whole(judged, shop):
    done, ids = judged
    assert done.json["subjects"] == len(ids)
    assert max(label["scored"] for label in done.json["labels"].values()) == len(ids)
    assert done.json["score"]["mean"] == pytest.approx(0.1)
    with open(shop / "rows.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    guarded = [f"'{id}" if id[0] in "=+-@" else id for id in ids]
    assert [row["subject_id"] for row in rows] == guarded
    assert {row["score"] for row in rows} == {"0.1"}
    assert {len(row) for row in rows} == {len(rows[0])}
    assert all(None not in row and None not in row.values() for row in rows)
    lines = (shop / "events.jsonl").read_bytes().splitlines()
    completed = [event for event in map(json.loads, lines) if event["type"] == "eval.completed"]
    assert len(completed) == len(ids) * 8
    assert "Perfect" not in json.dumps(completed)
    assert shop.verified()


def test_hostile_turns_with_hostile_tools_are_judged_by_the_model_or_the_heuristic(ran, shop):
    chats = []
    for name in NAMES:
        function = {"name": TABLE[name][:2000], "arguments": json.dumps({"x": TABLE[name][:2000]})}
        chats.append(
            [
                {"role": "user", "content": f"Which? {TABLE[name]}"},
                {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "c", "content": f"Error: {TABLE[name]}"},
                {"role": "assistant", "content": TABLE[name]},
            ]
        )
    shop.write("chats.jsonl", [{"messages": messages} for messages in chats])
    done = ran(TURNS)
    assert (done.code, done.json["scored"]) == (0, len(NAMES))
    for verdict in shop.dicast("verdicts", "--json").json["verdicts"]:
        if verdict["judge"] == "quote":
            assert (verdict["judge_kind"], verdict["score"], verdict["confidence"]) == ("hybrid", 0.1, 0.8)
        else:
            assert verdict["judge_kind"] == "heuristic"
            assert verdict["signals"]["escalation_skipped"] == "judge_output_invalid"
    assert [done.json["judges"][label]["escalated"] for label in ("echo", "quote")] == [0, len(NAMES)]
