"""The file and line of a subject: in ``dicast show``, its document, the report page and the dashboard's answer."""

from __future__ import annotations

import json

import pytest

from dicast import DataError, Subject
from dicast.testing import FakeMetric, run_pipeline

CHATS = "".join(
    json.dumps({"id": id_, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})
    + "\n"
    for id_ in "ab"
)
CLAUDE = [
    {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "Go"}},
    {
        "type": "assistant",
        "uuid": "2",
        "parentUuid": "1",
        "sessionId": "s",
        "message": {"role": "assistant", "content": "Done"},
    },
]
EVENT = {
    "type": "turn.completed",
    "session_id": "s",
    "turn_id": "t",
    "payload": {"stop_reason": "end_turn", "tool_call_count": 0},
}

BATCH = "".join(
    json.dumps(
        {"custom_id": f"r{n}", "response": {"status_code": 200, "body": {"choices": [{"message": {"content": "a"}}]}}}
    )
    + "\n"
    for n in range(2)
)

SOURCES = [
    ("exports/openai_batch", {}, BATCH, ["d/data:1", "d/data:2"]),
    ("tasksets/files", {}, '[{"id": "a", "goal": "g"}, {"id": "b", "goal": "h"}]', ["d/data ([0])", "d/data ([1])"]),
    ("workload/runs", {}, '{"workload": "w", "run": "1", "final_response_text": "a"}\n', ["d/data:1"]),
    ("rows/jsonl", {}, '{"id": "x", "output": "a"}\n\n{"id": "y", "output": "b"}\n', ["d/data:1", "d/data:3"]),
    ("rows/csv", {}, "id,output\nx,a\ny,b\n", ["d/data:2", "d/data:3"]),
    (
        "rows/json",
        {},
        '[{"id": "x", "output": "a"},\n {"id": "y", "output": "b"}]',
        ["d/data, item 1", "d/data, item 2"],
    ),
    ("traces/messages", {"id": "{{ id }}"}, CHATS, ["d/data:1", "d/data:2"]),
    ("traces/events", {}, json.dumps(EVENT) + "\n", ["d/data"]),
    ("transcripts/claude_code", {}, "".join(json.dumps(record) + "\n" for record in CLAUDE), ["d/data"]),
]


def places(run):
    return [event.payload.get("place") for event in run.events if event.type == "subject.read"]


@pytest.mark.parametrize(("name", "options", "text", "expected"), SOURCES, ids=[name for name, *_ in SOURCES])
def test_a_subject_has_its_file_and_the_line_of_its_record(tmp_path, monkeypatch, name, options, text, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "data").write_text(text)
    pipeline = json.dumps({"source": {name: {"path": "d/data", **options}}, "metrics": ["m"]})
    run = run_pipeline(pipeline, components={"m": FakeMetric()})
    assert places(run) == expected


def test_the_place_changes_no_digest_and_no_fingerprint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = []
    for name in ("one.jsonl", "two.jsonl"):
        (tmp_path / name).write_text('{"id": "x", "output": "a"}\n')
        runs.append(
            run_pipeline(f"source: {{rows/jsonl: {{path: {name}}}}}\nmetrics: [m]", components={"m": FakeMetric()})
        )
    digests = [[event.payload["digest"] for event in run.events if event.type == "subject.read"] for run in runs]
    assert digests[0] == digests[1]
    assert runs[0].verdicts[0].fingerprint == runs[1].verdicts[0].fingerprint
    assert Subject("row", "x", place="a") == Subject("row", "x", place="b")


@pytest.mark.parametrize(("place", "written"), [("a\udcff.jsonl:1", "a\\udcff.jsonl:1"), ("ä:1", "ä:1"), (None, None)])
def test_a_place_is_written_whatever_bytes_its_name_has(place, written):
    run = run_pipeline(
        "metrics: [m]", subjects=[Subject("row", "x", output="a", place=place)], components={"m": FakeMetric()}
    )
    assert places(run) == [written]


def test_a_place_that_is_no_text_is_refused():
    subject = Subject("row", "x", output="a", place=3)
    with pytest.raises(DataError, match="the place of row 'x' is 3, not a text"):
        run_pipeline("metrics: [m]", subjects=[subject], components={"m": FakeMetric()})


def test_show_names_the_parts_of_a_session_that_was_not_judged_itself(shop):
    shop.write("chats.jsonl", CHATS)
    shop.run("source: {traces/messages: {path: chats.jsonl, id: '{{ id }}'}}\njudges: [heuristic/turn]\n")
    done = shop.dicast("show", "b")
    assert (done.code, "dicast show shows its parts: b/1" in done.err) == (2, True)


def test_show_names_the_file_in_both_forms_and_evaluate_keeps_it(shop):
    shop.write("chats.jsonl", CHATS)
    shop.run("source: {traces/messages: {path: chats.jsonl, id: '{{ id }}'}}\njudges: [heuristic/turn]\n")
    assert shop.dicast("show", "b/1").out.splitlines()[1] == "  from chats.jsonl:2"
    assert shop.dicast("show", "b/1", "--json").json["subject"]["place"] == "chats.jsonl:2"
    assert shop.dicast("evaluate", "--subject", "turn", "--judge", "heuristic/turn").code == 0
    assert shop.dicast("show", "b/1", "--json").json["subject"]["place"] == "chats.jsonl:2"
