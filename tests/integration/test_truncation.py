"""Outputs and replies that the token limit cut, and refusals: in the document, the summary, reports, tables and JUnit."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
import xml.etree.ElementTree as ET

import pytest

from dicast import Judgment, Subject, judge
from dicast.testing import run_pipeline

MODEL = 'define: {m: {openai/chat: {base_url: "%s", model: m-1, price: free, retries: 0}}}\n'
TASK = 'task: {prompt/chat: {model: m, user: "{{ id }}"}}\nmetrics: [check/contains: {value: Lima}]\n'
SINKS = "sinks: [csv/rows: {path: o.csv}, junit/xml: {path: o.xml}, report/html: {path: o.html}, report/markdown: {path: o.md}]\n"


def rows_of(shop):
    with (shop / "o.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def warnings(done, kind):
    return [entry for entry in done.json["warnings"] if entry["kind"] == kind]


def properties(shop):
    """Return the properties of each test case of the first label."""
    suite = ET.parse(shop / "o.xml").getroot().find("testsuite[properties]")  # noqa: S314  # written by this test
    return [{item.get("name"): item.get("value") for item in case.iter("property")} for case in suite.iter("testcase")]


def page_texts(shop):
    """The data of the HTML report, as text."""
    blocks = re.findall(r"<script[^>]*>([A-Za-z0-9+/=\s]{100,})</script>", (shop / "o.html").read_text())
    return "".join(gzip.decompress(base64.b64decode(block)).decode() for block in blocks)


@pytest.fixture
def model(shop, chat_server):
    """Three rows; the second one's output is cut, and the third one's is a refusal."""
    answers = {
        "r0": chat_server.reply("Lima"),
        "r1": chat_server.reply("The capital is L", finish_reason="length"),
        "r2": chat_server.reply(None, message={"refusal": "I cannot help with Lima."}),
        "r3": chat_server.reply("Li", finish_reason="content_filter"),
    }
    chat_server.answer = lambda request: answers[request.prompt]
    shop.rows(None, None, None)
    return chat_server


def test_cut_and_refused_outputs_of_a_task_are_counted_and_shown(shop, model):
    done = shop.run(MODEL % model.url + TASK + SINKS)
    (cut,), (refused,) = warnings(done, "cut_outputs"), warnings(done, "refused_outputs")
    assert (cut["subjects"], refused["subjects"]) == ({"row": 1}, {"row": 1})
    advice = "raise max_output_tokens of prompt/chat, or max_reasoning_tokens of its model"
    assert cut["message"] == f"the token limit cut the output of 1 row; {advice}"
    assert [row["finish_reason"] for row in rows_of(shop)] == ["stop", "length", "refusal"]
    assert [row["score"] for row in rows_of(shop)] == ["1.0", "0.0", "1.0"]
    assert [case.get("finish_reason") for case in properties(shop)] == ["stop", "length", "refusal"]
    assert cut["message"] in (shop / "o.md").read_text()
    page = page_texts(shop)
    assert "the token limit cut the output of 1 row" in (shop / "o.html").read_text()
    assert "[output ended: length] check/contains" in page
    assert cut["message"] in (shop / "o.xml").read_text()
    summary = " ".join(shop.dicast("run", "p.yaml").out.split())
    assert f"warning: {cut['message']}" in summary
    assert "warning: the output of 1 row is a refusal of the model" in summary


def test_an_output_that_a_filter_cut_is_refused(shop, model):
    shop.write("data.jsonl", [{"id": "r3"}])
    done = shop.run(MODEL % model.url + TASK)
    assert (done.json["failures"], done.json["warnings"]) == ({"refused": 1}, [])
    assert model.count == 1


def test_cut_replies_of_a_judge_are_counted_and_shown(shop, model):
    replies = iter(["length", "stop", "length", "length", "odd"])

    def judge(request):
        text = json.dumps({"seal": request.seal, "score": 0.5, "confidence": 0.9, "rationale": "Good."})
        return model.reply(text, finish_reason=next(replies))

    model.answer = judge
    shop.rows("a", "b", "c")
    item = "executor: {dicast/async: {concurrency: 1}}\n"
    done = shop.run(MODEL % model.url + "judges: [{llm/judge: {as: j, model: m}}]\n" + item + SINKS)
    (cut,), (unknown,) = warnings(done, "cut_replies"), warnings(done, "unknown_finish_reason")
    assert (cut["label"], cut["judgments"], cut["failed"]) == ("j", 2, 1)
    assert unknown["message"] == "verdicts of j have replies that ended for unknown reasons: 'odd' (1)"
    assert [row["finish_reason_j"] for row in rows_of(shop)] == ["", "length", "odd"]
    assert [case.get("reply_finish_reason") for case in properties(shop)] == [None, "length", "odd"]
    failed = shop.dicast("verdicts", "--failed").out
    assert "raise max_output_tokens (now 256)" in " ".join(failed.split())
    assert '"rationale": "Good."' in failed


def test_a_reply_that_the_limit_ended_before_its_text_is_counted(shop, model):
    model.answer = model.reply("", finish_reason="length")
    shop.rows("a")
    done = shop.run(MODEL % model.url + "judges: [{llm/judge: {as: j, model: m}}]\n")
    (cut,) = warnings(done, "cut_replies")
    assert (cut["judgments"], cut["failed"]) == (1, 1)
    assert "max_reasoning_tokens" in done.json["failed_subjects"][0]["error_message"]


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"output": "Li", "finish_reason": "length"}, ""),
        (
            {"a": {"choices": [{"finish_reason": "length", "message": {"content": "Li"}}]}},
            "a.choices.0.message.content",
        ),
        ({"a": {"stop_reason": "max_tokens", "content": [{"text": "Li"}]}}, "a.content.0.text"),
    ],
)
def test_a_cut_output_in_the_data_is_counted(shop, row, fields):
    shop.write("data.jsonl", [{"id": "1", **row}, {"id": "2", **row}])
    fields = f", fields: {{output: {fields}}}" if fields else ""
    source = f"source: {{rows/jsonl: {{path: data.jsonl{fields}}}}}\n"
    done = shop.run(source + "metrics: [check/contains: {value: Lima}]\n" + SINKS)
    (cut,) = warnings(done, "cut_outputs")
    assert cut["message"] == "the token limit cut the output of 2 rows"
    assert {row["finish_reason"] for row in rows_of(shop)} <= {"length", "max_tokens"}
    assert [case["finish_reason"] for case in properties(shop)] == [row["finish_reason"] for row in rows_of(shop)]
    assert f"the output ended early: {rows_of(shop)[0]['finish_reason']}" in shop.dicast("show", "1").out


def test_a_finish_reason_in_the_data_is_not_about_the_output_of_a_task(shop, model):
    shop.write("data.jsonl", [{"id": "r0", "output": "old", "finish_reason": "length"}])
    done = shop.run(MODEL % model.url + TASK + SINKS)
    assert warnings(done, "cut_outputs") == []
    assert [row["finish_reason_2" if "finish_reason_2" in row else "finish_reason"] for row in rows_of(shop)] == [
        "stop"
    ]


@pytest.mark.parametrize("model_fields", [{}, {"model": "m-1"}])
def test_a_turn_whose_message_was_cut_is_counted(shop, model_fields):
    cut = {"role": "assistant", "content": "The capital is L", "finish_reason": "length", **model_fields}
    full = {"role": "assistant", "content": "Lima", "finish_reason": "stop", **model_fields}
    ask = {"role": "user", "content": "capital of Peru?"}
    shop.write("t.jsonl", [{"id": "s1", "messages": [ask, cut, ask, full]}])
    source = "source: {traces/messages: {path: t.jsonl, subjects: [turn, session]}}\n"
    done = shop.run(source + "judges: [heuristic/turn]\n" + SINKS)
    (item,) = warnings(done, "cut_outputs")
    assert item["subjects"] == {"session": 1, "turn": 1}
    assert item["message"] == "the token limit cut the output of 1 session and 1 turn"


ASK = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"messages": [ASK, {"role": "assistant", "stop_reason": "max_tokens", "content": [{"type": "text", "text": "A"}]}]}, "cut"),
        ({"messages": [{"type": "human", "content": "hi"}, {"type": "ai", "content": "A", "response_metadata": {"finish_reason": "length"}}]}, "cut"),
        ({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "candidates": [{"content": {"role": "model", "parts": [{"text": "A"}]}, "finishReason": "MAX_TOKENS"}]}, "cut"),
        ({"input": "hi", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]}]}, "cut"),
        ({"messages": [ASK, {"role": "assistant", "finish_reason": "content_filter", "content": "A"}]}, "refused"),
        ({"messages": [ASK, {"role": "assistant", "content": None, "refusal": "I cannot."}]}, "refused"),
    ],
    ids=["anthropic", "langchain", "gemini", "responses", "filter", "refusal"],
)  # fmt: skip
def test_the_end_of_a_turn_is_read_from_each_format(shop, record, kind):
    shop.write("t.jsonl", [{"id": "s1", **record}])
    done = shop.run("source: {traces/messages: {path: t.jsonl}}\njudges: [heuristic/turn]\n" + SINKS)
    (item,) = warnings(done, f"{kind}_outputs")
    assert item["subjects"] == {"turn": 1}
    assert [row["finish_reason"] for row in rows_of(shop)] == ["max_tokens" if kind == "cut" else "refusal"]


def test_hidden_media_and_cut_evidence_are_shown_by_label(shop):
    @judge()
    def look(subject):
        seen = {"hidden": {"image": 2, "audio": 1}, "cut": 7} if subject.id == "r0" else {"hidden": {}, "cut": 0}
        return Judgment(1.0, 1.0, "llm", signals={"evidence": seen})

    rows = [Subject("row", name, "", name) for name in ("r0", "r1")]
    sinks = SINKS.replace("o.", f"{shop.folder}/o.")
    document = run_pipeline(f"judges: [eye]\n{sinks}", subjects=rows, components={"eye": look()}).document["warnings"]
    hidden, cut = (next(item for item in document if item["kind"] == kind) for kind in ("hidden_media", "cut_evidence"))
    assert hidden["hidden"] == {"audio": 1, "image": 2}
    assert cut["verdicts"] == 1
    first, second = rows_of(shop)
    columns = [name for name in first if name.startswith(("hidden_media_", "cut_evidence_"))]
    assert [first[name] for name in columns] == ["audio 1, image 2", "7"]
    assert [second[name] for name in columns] == ["", ""]
    for file in ("o.md", "o.html", "o.xml"):
        assert "saw markers in place of 1 audio, 2 images" in (shop / file).read_text()
