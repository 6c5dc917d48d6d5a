"""Several sources as one source: unique ids, one digest, counts that add up."""

from __future__ import annotations

import json

import pytest

from dicast import ConfigError, DataError
from dicast.testing import SourceConformance, run_pipeline

TWICE = "name: x\nsource: {traces/joined: {sources: [%s, %s]}}\n%s"
CHATS = "{traces/messages: {path: a.jsonl, id: '{{ id }}', subjects: [%s]}}"
ROWS = "{rows/jsonl: {path: rows.jsonl}}"


def chat(id_: str) -> str:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    return json.dumps({"id": id_, "messages": messages}) + "\n"


class TestJoined(SourceConformance):
    source = "traces/joined"
    files = {"a.jsonl": chat("a"), "rows.jsonl": '{"id": "1", "output": "x"}\n'}
    options = {"sources": [{"traces/messages": {"path": "a.jsonl"}}, {"rows/jsonl": {"path": "rows.jsonl"}}]}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(chat("a") + chat("b"))
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "output": "x"}\n')
    return tmp_path


def test_repeated_sessions_and_rows_get_a_number_with_their_turns_and_events():
    source = CHATS % "turn, session"
    run = run_pipeline(TWICE % (source, source, "judges: [heuristic/turn, heuristic/session]"))
    ids = {(verdict.subject_kind, verdict.subject_id) for verdict in run.verdicts}
    assert ids == {
        (kind, id_ + end) for kind, end in (("turn", "/1"), ("session", "")) for id_ in ("a", "b", "a#2", "b#2")
    }
    sessions = [event.session_id for event in run.of("turn.completed")]
    assert sorted(sessions) == ["a", "a#2", "b", "b#2"]
    assert run.document["read"]["records"] == 4
    assert run.document["read"]["contents"]["calls"] == 4
    rows = run_pipeline(TWICE % (ROWS, ROWS, "metrics: [proxy/format]"))
    assert [verdict.subject_id for verdict in rows.verdicts] == ["a", "a#2"]


def test_a_call_in_two_sources_cannot_be_judged_as_a_tool_cycle():
    source = CHATS % "tool_cycle"
    with pytest.raises(DataError, match="is in two sources"):
        run_pipeline(TWICE % (source, source, "judges: [heuristic/tool_cycle]"))


def test_the_bad_lines_of_all_sources_are_reported_together(folder):
    (folder / "a.jsonl").write_text("x\n")
    (folder / "rows.jsonl").write_text("y\n")
    with pytest.raises(DataError) as error:
        run_pipeline(TWICE % (CHATS % "turn", ROWS, "metrics: [proxy/format]"))
    assert {problem.file for problem in error.value.problems} >= {str(folder / "a.jsonl"), str(folder / "rows.jsonl")}


def test_no_sources_are_refused():
    with pytest.raises(ConfigError, match="no sources"):
        run_pipeline("name: x\nsource: {traces/joined: {sources: []}}\nmetrics: [proxy/format]\n")
