"""A model that answers only from planted facts: it is right only about the evidence that it sees, for every route of a subject."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

FACTS = {
    "policy": "the zebra rule", "earlier": "member 7781", "argument": "order-5523", "result": "refund of 41.17",
}  # fmt: skip
MESSAGES = [
    {"role": "system", "content": f"Follow {FACTS['policy']}."},
    {"role": "user", "content": f"I am {FACTS['earlier']}."},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Refund my order."},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "c-1", "type": "function", "function": {"name": "refund", "arguments": json.dumps({"id": FACTS["argument"]})}}
    ]},
    {"role": "tool", "tool_call_id": "c-1", "content": FACTS["result"]},
    {"role": "assistant", "content": "Done."},
]  # fmt: skip
KINDS = "[tool_cycle, turn, session]"
PIPELINE = """\
source: {{{source}}}
judges: [{{llm/judge: {{as: it, {options}model: {{openai/chat: {{base_url: "{url}", model: m, price: free}}}}}}}}]
{more}
"""
FENCED = re.compile(r"^<<<data ([0-9a-f]{16})\n(.*?)\ndata \1>>>", re.MULTILINE | re.DOTALL)


class Witness:
    """Scores by the share of facts that are inside a fence."""

    def __init__(self, server):
        self._server, self._facts = server, FACTS.values()

    def __call__(self, request):
        text = "\n".join(text for _, text in FENCED.findall(request.prompt))
        assert not any(fact in FENCED.sub("", request.prompt) or fact in request.system for fact in self._facts)
        return self._server.sealed(score=sum(fact in text for fact in self._facts) / len(self._facts), confidence=0.9)


def event(type_, turn, **payload):
    return {"type": type_, "session_id": "1", "turn_id": turn, "time": "2026-01-31T12:00:00Z", "payload": payload}


def turn_completed(turn, request, message):
    texts = {"user_prompt_text": request, "final_response_text": message}
    return event("turn.completed", turn, stop_reason="end_turn", tool_call_count=1, signals_extra=texts)


EVENTS = [
    event("message.sent", None, role="system", text=MESSAGES[0]["content"]),
    turn_completed("1/1", MESSAGES[1]["content"], "Hello."),
    event("tool.called", "1/2", tool_use_id="c-1", tool_name="refund", input={"id": FACTS["argument"]}),
    event("tool.completed", "1/2", tool_use_id="c-1", tool_name="refund", success=True, output=FACTS["result"]),
    turn_completed("1/2", "Refund my order.", "Done."),
    event("session.ended", None, disposition="completed"),
]
HASHED = [
    {**each, "payload": {key: value for key, value in each["payload"].items() if key not in ("input", "output")}}
    for each in EVENTS[1:]
]
SOURCES = {"messages": ([{"messages": MESSAGES}], "traces/messages"), "events": (EVENTS, "traces/events")}
SCORES = {("turn", "1/1"): 0.5, ("turn", "1/2"): 1.0, ("tool_cycle", "c-1"): 1.0, ("session", "1"): 1.0}


@pytest.fixture
def judge(shop, chat_server):
    """``judge(lines, source, …)``: write the data and the pipeline, whose model is a witness; return the pipeline's name."""
    chat_server.answer = Witness(chat_server)

    def write(lines, source, options="", extra="", kinds=KINDS):
        shop.write("data.jsonl", lines)
        source = f"{source}: {{path: data.jsonl, subjects: {kinds}}}"
        return shop.pipeline(PIPELINE.format(source=source, url=chat_server.url, options=options, more=extra)).name

    return write


def scores(shop, *arguments):
    listed = shop.dicast("verdicts", "--json", *arguments).json["verdicts"]
    return {(verdict["subject_kind"], verdict["subject_id"]): verdict["score"] for verdict in listed}


@pytest.mark.parametrize("name", SOURCES)
def test_the_model_knows_every_fact_of_the_conversation(shop, judge, name):
    assert shop.dicast("run", judge(*SOURCES[name]), "--json").code == 0
    assert scores(shop) == SCORES
    (evidence,) = {json.dumps(item["signals"]["evidence"]) for item in verdicts(shop) if item["subject_id"] == "1/2"}
    assert json.loads(evidence)["sections"] == ["POLICY", "EARLIER TURNS", "CONVERSATION", "LIFECYCLE"]


def verdicts(shop):
    return shop.dicast("verdicts", "--json").json["verdicts"]


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_judged_again_from_the_ledger_is_shown_as_it_was(shop, judge, name):
    file = judge(*SOURCES[name])
    shop.dicast("run", file, "--json")
    before = {item["subject_id"]: item["signals"]["evidence"] for item in verdicts(shop)}
    url = re.search(r'base_url: "([^"]+)"', (shop / file).read_text())[1]
    again = f'{{llm/judge: {{as: again, model: {{openai/chat: {{base_url: "{url}", model: m, price: free}}}}}}}}'
    for kind in ("turn", "tool_cycle", "session"):
        assert shop.dicast("evaluate", "--subject", kind, "--judge", again, "--json").code == 0
    after = {item["subject_id"]: item["signals"]["evidence"] for item in verdicts(shop) if item["judge"] == "again"}
    assert after == before


def test_a_watch_shows_the_same_and_so_does_what_is_judged_again_after_it(shop, judge):
    file = judge(*SOURCES["events"])
    assert shop.dicast("watch", file, "--once", "--json").code == 0
    assert scores(shop) == SCORES
    before = {item["subject_id"]: item["signals"]["evidence"] for item in verdicts(shop)}
    url = re.search(r'base_url: "([^"]+)"', (shop / file).read_text())[1]
    again = f'{{llm/judge: {{as: again, model: {{openai/chat: {{base_url: "{url}", model: m, price: free}}}}}}}}'
    for kind in ("turn", "session"):
        assert shop.dicast("evaluate", "--subject", kind, "--judge", again, "--json").code == 0
    after = {item["subject_id"]: item["signals"]["evidence"] for item in verdicts(shop) if item["judge"] == "again"}
    assert after == {id: evidence for id, evidence in before.items() if id != "c-1"}


def test_a_resumed_run_shows_the_same(shop, judge, chat_server):
    file = judge(*SOURCES["messages"], extra="executor: {dicast/async: {concurrency: 1}}")
    witness = chat_server.answer
    chat_server.script(witness, witness, 401)
    assert shop.dicast("run", file, "--json").code in (2, 3)
    assert shop.dicast("run", file, "--resume", "--json").code == 0
    assert scores(shop) == SCORES


def test_with_hashes_alone_turns_are_shown_in_summary_and_the_rest_is_missing_input(shop, judge, chat_server):
    done = shop.dicast("run", judge(HASHED, "traces/events", extra="gate: {min_coverage: 0}"), "--json")
    assert done.json["failures"] == {"missing_input": 2}
    assert {id for _, id in scores(shop)} == {"1/1", "1/2"}
    assert "TOOL ACTIVITY:" in chat_server.requests[-1].prompt
    assert chat_server.count == 2


def test_a_ledger_of_digests_keeps_nothing_of_the_evidence(shop, judge):
    extra_text = "ledger: {ledger/sqlite: {path: .dicast/ledger.db, content: digest}}"
    assert shop.dicast("run", judge(*SOURCES["messages"], extra=extra_text), "--json").code == 0
    assert scores(shop) == SCORES
    kept = (shop / ".dicast" / "ledger.db").read_bytes()
    assert not any(fact.encode() in kept for fact in FACTS.values())


@pytest.mark.slow
def test_a_conversation_is_in_the_ledger_once_however_many_turns_it_has(shop, judge):
    messages = [{"role": "system", "content": "The one policy."}]
    for number in range(100):
        messages += [
            {"role": "user", "content": f"Question {number}?"},
            {"role": "assistant", "content": f"Answer {number}."},
        ]
    assert shop.dicast("run", judge([{"messages": messages}], "traces/messages"), "--json").code == 0
    replies = Counter(json.dumps(item["payload"]).count("The one policy.") for item in shop.events())
    assert replies[1] == 1
    payload = [json.dumps(item["payload"]).count('"Question 7?"') for item in shop.events()]
    assert sum(payload) == 2  # as the turn's input, and in its turn.completed


def test_the_thumb_of_a_turn_is_shown_where_it_is_escalated_all_the_same(shop, chat_server):
    thumb = event("feedback.explicit", "1/2", scope="turn", rating="thumbs_down")
    shop.write("data.jsonl", [*EVENTS[1:-1], thumb, EVENTS[-1]])
    model = f'{{llm/judge: {{model: {{openai/chat: {{base_url: "{chat_server.url}", model: m, price: free}}}}}}}}'
    text = """\
source: {traces/events: {path: data.jsonl}}
judges: [hybrid/cascade: {as: turn, stages: [heuristic/turn, %s], escalation_threshold: 1, escalate_over_feedback: %s}]
"""
    shop.dicast("run", shop.pipeline(text % (model, "false")).name, "--json")
    result = {item["subject_id"]: item for item in verdicts(shop)}
    assert result["1/2"]["signals"]["escalation_skipped"] == "explicit_feedback"
    assert (result["1/2"]["judge_kind"], result["1/2"]["score"] < 0.5) == ("heuristic", True)
    assert chat_server.count == 1
    shop.dicast("run", shop.pipeline(text % (model, "true")).name, "--json")
    assert re.search(
        r"^FEEDBACK:\n<<<data \w+\nexplicit: thumbs_down\ndata", chat_server.requests[-1].prompt, re.MULTILINE
    )


# Real transcripts.


@pytest.mark.slow
@pytest.mark.outside_data
def test_facts_planted_in_real_transcripts_are_found_whatever_is_judged(shop, judge, chat_server):
    lines, planted = [], {}
    for number, record in enumerate(airline(12)):
        for place, message in enumerate(record["messages"]):
            if message["role"] in ("system", "tool"):
                fact = planted[number, message["role"], place] = f"fact-{number}-{place}-planted"
                message["content"] = f"{message['content']} {fact}"
            for call in message.get("tool_calls") or ():
                fact = planted[number, "call", place] = f"fact-{number}-{place}-argued"
                call["function"]["arguments"] = json.dumps({**json.loads(call["function"]["arguments"]), "note": fact})
        lines.append(record)
    output = {}

    def answer(request):
        output[request.number] = set(re.findall(r"fact-\d+-\d+-(?:planted|argued)", "".join(
            text for _, text in FENCED.findall(request.prompt)
        )))  # fmt: skip
        return chat_server.sealed(score=float(bool(output[request.number])), confidence=0.9)

    chat_server.answer = answer
    assert shop.dicast("run", judge(lines, "traces/messages"), "--json").code == 0
    assert set(scores(shop).values()) == {1.0}  # each was shown its policy at least
    assert set().union(*output.values()) == set(planted.values())
    full = Counter(len(facts) for facts in output.values())
    for number in range(len(lines)):  # some question, that on the session, has all facts of a conversation
        own = {fact for (line, *_), fact in planted.items() if line == number}
        assert any(own == facts for facts in output.values()), (number, full)


def airline(count):
    import gzip  # noqa: PLC0415  # one test alone reads it

    root = Path(__file__).parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", root), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    with gzip.open(path, "rt") as file:
        return [json.loads(next(file)) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.outside_data
def test_a_real_model_judges_a_real_session_within_a_small_context(shop, model_server):
    """The tests' server has 4,096 tokens for a request and its reply; the session here is twice as long."""
    shop.write("data.jsonl", airline(1))
    options = "seal: false, retries: 0, max_output_tokens: 60, max_evidence_chars: 1000, system_prompt: Did it help?"
    model = f'{{openai/chat: {{base_url: "{model_server.base_url}", model: {model_server.model}, price: free, timeout: 120}}}}'
    file = f"""\
source: {{traces/messages: {{path: data.jsonl, subjects: [session]}}}}
judges: [{{llm/judge: {{{options}, model: {model}}}}}]
gate: {{min_coverage: 0}}
executor: {{dicast/async: {{concurrency: 1}}}}
"""
    document = shop.dicast("run", shop.pipeline(file).name, "--json").json
    assert document["scored"] + document["failed"] == 1
    assert set(document["failures"]) <= {
        "judge_output_invalid"
    }  # so small a model often gives no verdict; no prompt is too long
    for verdict in verdicts(shop):
        evidence = verdict["signals"]["evidence"]
        assert evidence["chars"] <= 1000 < evidence["chars"] + evidence["cut"]
