"""A sub-agent's conversation is at its place in the conversation that started it, on the page, in the dashboard, and for a labeler."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

import dicast
from dicast._kernel.cli import main
from dicast.reading import reader
from dicast_trust.labels.choosing import evidence, read_subjects

PIXEL = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
MAIN = [
    ("user", [{"type": "text", "text": "Fix it."}, {"type": "image", "source": PIXEL}], {}),
    ("assistant", [{"type": "thinking", "thinking": "An agent may know."}], {}),
    ("assistant", [{"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Look"}}], {}),
    ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "Seen"}], {"toolUseResult": {"agentId": "a"}}),
    ("assistant", [{"type": "text", "text": "Done."}], {}),
    ("user", "Bye", {}),
    ("assistant", [{"type": "text", "text": "Bye."}], {}),
]
AGENT = [
    ("user", "Look", {}),
    ("assistant", [{"type": "tool_use", "id": "g1", "name": "Grep", "input": {"pattern": "x"}}], {}),
    ("user", [{"type": "tool_result", "tool_use_id": "g1", "content": "no file", "is_error": True}], {}),
    ("assistant", [{"type": "text", "text": "Seen"}], {}),
]
STARTED_BY = {"turn": "S/1", "session": "S", "tool_cycle": "t1"}


def write_lines(path, steps, start, **fields):
    path.parent.mkdir(parents=True, exist_ok=True)
    records = []
    for number, (role, content, extra) in enumerate(steps):
        message = {"role": role, "content": content} | ({} if role == "user" else {"id": f"m{number}", "model": "c"})
        time = {"timestamp": f"2026-01-01T00:{start:02d}:{number:02d}Z", "version": "2.0.1"}
        links = {"sessionId": "S", "uuid": f"{path.stem}{number}", "parentUuid": None}
        records.append({**time, **links, "type": role, "message": message, **extra, **fields})
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Return a function that judges the subjects of a kind, in a new ledger in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "s" / "S.jsonl", MAIN, 1)
    for name, start in (("a", 1), ("late", 2)):
        write_lines(tmp_path / "s/S/subagents" / f"agent-{name}.jsonl", AGENT, start, isSidechain=True, agentId=name)

    def run(kind):
        source = {"transcripts/claude_code": {"path": "s", "subjects": [kind]}}
        return dicast.run({"name": "w", "source": source, "judges": [f"heuristic/{kind}"]})

    return run


def shown(capsys, *arguments):
    assert main([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", STARTED_BY)
def test_the_page_has_the_sub_agent_at_its_call(judge, capsys, tmp_path, kind):
    judge(kind)
    shown(capsys, "report", "last", "--out", "page.html")
    block = re.search('id="dicast-texts">(.*?)</script>', (tmp_path / "page.html").read_text("utf-8"), re.DOTALL)
    assert block is not None
    (texts,) = json.loads(gzip.decompress(base64.b64decode(block[1])))
    messages = [message for turn in texts["conversations"]["S"] for message in turn["messages"]]
    (call,) = (message for message in messages if message["kind"] == "call")
    assert (call["result"], call["agents"]) == ("Seen", [{"session": "S/agent-a"}])
    (late,) = (message for message in messages if message["kind"] == "agent")
    assert late["session"] == "S/agent-late"
    assert texts["parents"]["S/agent-a"] == "S"
    (inner,) = (
        one for turn in texts["conversations"]["S/agent-a"] for one in turn["messages"] if one["kind"] == "call"
    )
    assert (inner["name"], inner["failed"], inner["result"]) == ("Grep", True, "no file")


@pytest.mark.parametrize("kind", STARTED_BY)
def test_the_dashboard_has_the_turns_of_the_sub_agent(judge, capsys, kind):
    judge(kind)
    path = f"/analytics/turns/{STARTED_BY[kind].replace('/', '%2F')}?subject_kind={kind}"
    data = json.loads(shown(capsys, "serve", "--once-json", path))["data"]
    assert data["parent_session_id"] is None
    messages = [message for turn in data["conversation"] for message in turn["messages"]]
    (agent,) = (agent for message in messages for agent in message.get("agents", ()))
    inner = [message.get("text", message.get("name")) for turn in agent["turns"] for message in turn["messages"]]
    assert inner[:3] == ["Look", "Grep", "Seen"][: 2 if kind == "tool_cycle" else 3]  # no later messages were recorded
    child = {"turn": "S/agent-a/1", "session": "S/agent-a", "tool_cycle": "S/agent-a/1/g1"}[kind].replace("/", "%2F")
    data = json.loads(shown(capsys, "serve", "--once-json", f"/analytics/turns/{child}?subject_kind={kind}"))["data"]
    assert data["parent_session_id"] == "S"


AT_CALL = """\
  call Task {"prompt":"Look"}
    returned: Seen
    sub-agent S/agent-a
      user: Look
      call Grep {"pattern":"x"}
        failed: no file
"""


@pytest.mark.parametrize("kind", STARTED_BY)
def test_show_indents_the_steps_of_the_sub_agent(judge, capsys, kind):
    judge(kind)
    text = shown(capsys, "show", STARTED_BY[kind])
    assert AT_CALL in text
    assert ("      assistant: Seen\n" in text) == (kind != "tool_cycle")
    assert ("  reasoning: An agent may know.\n" in text) == (kind != "tool_cycle")
    assert ("sub-agent S/agent-late" in text) == (kind == "session")
    if kind == "turn":
        assert "sub-agent S/agent-late" in shown(capsys, "show", "S/2")


def test_show_names_an_image_below_its_text(judge, capsys, tmp_path):
    long_text = {"type": "text", "text": "word " * 100}
    write_lines(tmp_path / "s" / "S.jsonl", [("user", [long_text, MAIN[0][1][1]], {}), *MAIN[1:]], 1)
    judge("turn")
    text = shown(capsys, "show", "S/1")
    assert f"input:\n  {'word ' * 100}\n  [image/png, 8 B]\n" in text
    assert text.count("word word") == 50


@pytest.mark.parametrize("kind", STARTED_BY)
def test_a_labeler_sees_the_sub_agent_indented(judge, kind):
    run = judge(kind)
    ledger = Path(".dicast/ledger.db")

    def text(live):
        judged = read_subjects(live, (run.run_id,))[kind, STARTED_BY[kind]]
        return "\n".join(evidence(live, judged).lines())

    shown_text = dicast.read_ledger(ledger, text)
    assert re.search(
        r"\nSUB-AGENT S/agent-a\n    CONVERSATION\n.*\n    Look\n.*called Grep .*\n.*Grep failed:\n    no file\n",
        shown_text,
    )
    assert "An agent may know." not in shown_text
    assert "its reasoning (1 text) is folded: dicast show" in shown_text


def test_a_session_judged_again_from_the_ledger_keeps_its_place(judge, capsys):
    judge("turn")
    source = {"traces/recorded": {"subject": "turn"}}
    dicast.run({"name": "again", "source": source, "judges": ["heuristic/turn"]})
    assert AT_CALL in shown(capsys, "show", "S/1")


def test_a_chain_of_sub_agents_ends_at_the_most_levels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    events = []
    for number in range(40):
        place = {"session_id": f"s{number}", "time": f"2026-01-01T00:{number:02d}:00Z"}
        if number:
            events.append({"type": "session.started", **place, "payload": {"parent_id": f"s{number - 1}"}})
        texts = {"user_prompt_text": "Go", "final_response_text": "Done"}
        ended = {"stop_reason": "end_turn", "tool_call_count": 0, "signals_extra": texts}
        events.append({"type": "turn.completed", **place, "turn_id": f"s{number}/1", "payload": ended})
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    run = dicast.run({"name": "w", "source": {"traces/events": {"path": "t.jsonl"}}, "judges": ["heuristic/turn"]})
    assert shown(capsys, "show", "s0/1").count("sub-agent") == 6

    def turns(live):
        return reader("conversation")(live, session_id="s0", run_id=run.run_id)["turns"]

    level, inner = 0, dicast.read_ledger(Path(".dicast/ledger.db"), turns)
    while inner is not None:
        level, inner = level + 1, inner[0]["messages"][-1].get("turns")
    assert level == 17
