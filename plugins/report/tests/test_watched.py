"""The conversation of a watched session: the page has the same calls, results and images as the page of a run over the finished file."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re

import pytest

PICTURE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
MESSAGES = [
    ("user", [{"type": "text", "text": "Look at it."}, {"type": "image", "source": PICTURE}], None),
    ("assistant", [{"type": "thinking", "thinking": "First the file.", "signature": "s"}], None),
    ("assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.txt"}}], "tool_use"),
    ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True}], None),
    ("assistant", [{"type": "text", "text": "It is lost."}], "end_turn"),
]
PIPELINE = "name: {name}\nsource: {{{source}}}\njudges: [heuristic/turn]\n"


def write_session(path):
    records = []
    for number, (role, content, stop) in enumerate(MESSAGES):
        message = {"role": role, "content": content}
        message |= {} if role == "user" else {"id": f"m{number}", "model": "c", "stop_reason": stop}
        links = {"sessionId": "S", "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
        fields = {"timestamp": f"2026-01-01T00:00:{number:02d}Z", "isSidechain": False, "version": "2.0.1"}
        records.append({**links, **fields, "type": role, "message": message})
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    os.utime(path, (1, 1))


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("dicast_transcripts")
    (tmp_path / "s").mkdir()
    write_session(tmp_path / "s" / "a.jsonl")
    (tmp_path / "w.yaml").write_text(PIPELINE.format(name="w", source="transcripts/claude_code: {path: s}"))
    return tmp_path


@pytest.fixture
def turns(folder, dicast):
    """Return a function that returns the turns of the session in the page of the newest run."""

    def read():
        dicast(folder, "report", "last", "--out", "page.html")
        page = (folder / "page.html").read_text("utf-8")
        block = re.search('id="dicast-texts">(.*?)</script>', page, re.DOTALL)[1]
        (texts,) = json.loads(gzip.decompress(base64.b64decode(block)))
        return [turn for turn in texts["conversations"]["S"] if turn["id"] is not None]

    return read


def test_a_watched_session_has_the_conversation_of_a_run(folder, turns, dicast):
    dicast(folder, "run", "w.yaml")
    of_run = turns()
    (folder / ".dicast" / "ledger.db").unlink()
    dicast(folder, "watch", "w.yaml", "--once")
    assert turns() == of_run
    (turn,) = of_run
    user, _, call, _ = turn["messages"]
    assert [item["marker"] for item in user["media"]] == ["[image/png, 8 B]"]
    assert (call["name"], call["result"], call["failed"]) == ("Read", "no such file", True)


def test_a_session_judged_again_from_the_ledger_has_its_conversation(folder, turns, dicast):
    dicast(folder, "watch", "w.yaml", "--once")
    of_watch = turns()
    (folder / "again.yaml").write_text(PIPELINE.format(name="again", source="traces/recorded: {subject: turn}"))
    dicast(folder, "run", "again.yaml")
    assert turns() == of_watch


STEPS = """\
  reasoning: First the file.
  call Read {"file_path":"a.txt"}
    failed: no such file
"""


def test_show_names_the_steps_of_a_turn_and_of_a_session(folder, dicast):
    dicast(folder, "watch", "w.yaml", "--once")
    turn = dicast(folder, "show", "S/1")
    assert f"\nsteps:\n{STEPS}\noutput:\n  It is lost.\n" in turn
    dicast(folder, "run", "w.yaml")
    assert STEPS in dicast(folder, "show", "S/1")
    assert "reasoning" not in dicast(folder, "show", "S/1", "--json")
