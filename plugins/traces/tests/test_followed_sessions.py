"""Files of sessions that grow while an agent works: turns are given when they are complete, and a cut line waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dicast.toolkit.reception import Reception
from dicast.toolkit.session_following import OVER, QUIET, FollowedSessions

transcripts = pytest.importorskip("dicast_transcripts")
NOW = 2_000_000_000.0


def dicast(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dicast", *words], capture_output=True, text=True, check=False)


class Agent:
    """A coding agent that writes its session."""

    def __init__(self, path: Path, session: str = "S") -> None:
        self.path, self.session, self.count, self.parent = path, session, 0, None
        path.touch()

    def write(self, role: str, content: object, stop: str | None = None, cut: int | None = None) -> str:
        self.count += 1
        message = {"role": role, "content": content} | (
            {} if role == "user" else {"id": f"m{self.count}", "model": "c", "stop_reason": stop}
        )
        record = {"sessionId": self.session, "uuid": f"u{self.count}", "parentUuid": self.parent,
                  "timestamp": f"2026-01-01T00:00:{self.count:02d}Z", "isSidechain": False, "version": "2.0.1", "type": role, "message": message}  # fmt: skip
        self.parent = record["uuid"]
        line = json.dumps(record) + "\n"
        with self.path.open("a") as file:
            file.write(line[:cut])
        return line[len(line[:cut]) :]

    def turn(self, text: str) -> None:
        self.write("user", text)
        self.write("assistant", [{"type": "text", "text": f"answer to {text}"}], "end_turn")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").mkdir()
    return tmp_path / "s"


def follow(folder: Path) -> FollowedSessions:
    reception = Reception(None, folder / "spool", lambda turn, call: call, pytest.fail, lambda: None)
    return FollowedSessions(transcripts.ClaudeCode(folder), reception)


def turns(followed: FollowedSessions, path: Path, age: float, now: float) -> list[tuple[str, int, bool]] | None:
    """Return each session with its turns, and whether it is over, for a file of this *age*."""
    os.utime(path, (now - age, now - age))
    received = followed.sessions(now)
    followed.settle()
    return [(item.session.id, len(item.session.turns), item.is_over) for item in received] or None


def test_a_turn_is_given_when_it_is_answered_and_the_file_is_quiet(folder):
    agent, followed = Agent(folder / "a.jsonl"), follow(folder)
    agent.write("user", "one")
    assert turns(followed, agent.path, 0, NOW) in (None, [("S", 0, False)])
    agent.write("assistant", [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}], "tool_use")
    agent.write("user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}])
    assert turns(followed, agent.path, QUIET + 1, NOW + 10) == [("S", 0, False)]  # the tool may take longer
    rest = agent.write("assistant", [{"type": "text", "text": "done"}], "end_turn", cut=40)
    assert turns(followed, agent.path, QUIET + 1, NOW + 20) == [("S", 0, False)]  # the cut line waits
    with agent.path.open("a") as file:
        file.write(rest)
    assert turns(followed, agent.path, 0, NOW + 30) == [("S", 0, False)]
    assert turns(followed, agent.path, QUIET + 1, NOW + 40) == [("S", 1, False)]
    agent.turn("two")
    agent.write("user", "three")
    assert turns(followed, agent.path, QUIET + 1, NOW + 50) == [("S", 2, False)]
    assert turns(followed, agent.path, OVER + 1, NOW + 2000) == [("S", 2, True)]
    assert turns(followed, agent.path, OVER + 1, NOW + 2000) is None


def test_a_turn_that_ends_with_a_failed_call_is_given_when_the_file_is_quiet(folder):
    agent, followed = Agent(folder / "a.jsonl"), follow(folder)
    agent.write("user", "one")
    with agent.path.open("a") as file:
        file.write(json.dumps({"type": "system", "subtype": "api_error", "sessionId": "S", "retryAttempt": 1}) + "\n")
    assert turns(followed, agent.path, QUIET + 1, NOW) == [("S", 0, False)]  # the call is tried again
    error = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529"}]}
    with agent.path.open("a") as file:
        file.write(
            json.dumps({"type": "assistant", "sessionId": "S", "isApiErrorMessage": True, "message": error}) + "\n"
        )
    assert turns(followed, agent.path, 0, NOW + 10) == [("S", 0, False)]
    assert turns(followed, agent.path, QUIET + 1, NOW + 20) == [("S", 1, False)]


def test_turns_that_the_user_takes_back_stay_turns_of_a_session_that_is_followed(folder):
    agent, followed = Agent(folder / "a.jsonl"), follow(folder)
    agent.turn("one")
    start = agent.parent
    agent.turn("two")
    assert turns(followed, agent.path, QUIET + 1, NOW) == [("S", 2, False)]
    agent.parent = start
    agent.turn("two again")
    assert turns(followed, agent.path, OVER + 1, NOW + 10) == [("S", 3, True)]
    with transcripts.ClaudeCode(folder).reading() as live:
        live.check()
        assert live.read_counts().details["abandoned"]["turns"] == 1


def test_a_file_that_takes_long_to_read_is_read_less_often_until_it_is_quiet(folder, monkeypatch):
    agent, followed, reads = Agent(folder / "a.jsonl"), follow(folder), []

    def slowly(source, reading, *, read=transcripts.ClaudeCode.sessions):
        reads.append(reading.name)
        time.sleep(0.3)
        return read(source, reading)

    monkeypatch.setattr(transcripts.ClaudeCode, "sessions", slowly)
    agent.turn("one")
    assert turns(followed, agent.path, 0, NOW) == [("S", 0, False)]
    agent.turn("two")
    assert turns(followed, agent.path, 0.1, NOW + 1.1) is None
    agent.turn("three")
    assert turns(followed, agent.path, 0.2, NOW + 2.2) is None
    assert turns(followed, agent.path, 0.2, NOW + 90) == [("S", 2, False)]
    assert turns(followed, agent.path, QUIET + 1, NOW + 91.1) == [("S", 3, False)]
    assert len(reads) == 3


def test_a_file_that_was_written_anew_is_reported_and_read_from_its_start(folder):
    said: list[str] = []
    reception = Reception(None, folder / "spool", lambda turn, call: call, said.append, lambda: None)
    followed = FollowedSessions(transcripts.ClaudeCode(folder), reception)
    agent = Agent(folder / "a.jsonl")
    agent.turn("one")
    assert turns(followed, agent.path, OVER + 1, NOW) == [("S", 1, True)]
    agent.turn("two")
    assert turns(followed, agent.path, OVER + 1, NOW + 10) == [("S", 2, True)]
    assert said == []
    agent.path.write_text("")
    other = Agent(agent.path, "T")
    other.turn("three")
    assert turns(followed, agent.path, OVER + 1, NOW + 20) == [("T", 1, True)]
    assert said == [f"{agent.path}: the file was written anew; it is read from its start"]


def test_a_folder_with_a_file_for_each_event_is_followed_as_one_session(folder):
    reception = Reception(None, folder / "spool", lambda turn, call: call, pytest.fail, lambda: None)
    followed = FollowedSessions(transcripts.OpenHands(folder), reception)
    events = folder / "abc" / "events"
    events.mkdir(parents=True)
    words = [("user", "one"), ("agent", "1"), ("user", "two"), ("agent", "2")]

    def write(numbers: range) -> Path:
        for number in numbers:
            event = {
                "id": number,
                "source": words[number][0],
                "action": "message",
                "args": {"content": words[number][1]},
            }
            path = events / f"{number}.json"
            path.write_text(json.dumps(event))
            os.utime(path, (NOW - 1000, NOW - 1000))
        return path

    assert turns(followed, write(range(2)), OVER + 1, NOW) == [("abc", 1, True)]
    assert turns(followed, write(range(2, 4)), OVER + 1, NOW + 10) == [("abc", 2, True)]
    assert turns(followed, events / "3.json", OVER + 11, NOW + 20) is None


def test_new_files_and_equal_ids_are_given_under_stable_names(folder):
    first, followed = Agent(folder / "a.jsonl"), follow(folder)
    first.turn("one")
    assert turns(followed, first.path, OVER + 1, NOW) == [("S", 1, True)]
    second = Agent(folder / "b.jsonl")
    second.turn("one")
    (folder / "notes.txt").write_text("no session\n")
    assert turns(followed, second.path, OVER + 1, NOW + 10) == [("S#2", 1, True)]
    second.turn("two")
    assert turns(followed, second.path, OVER + 1, NOW + 20) == [("S#2", 2, True)]


@pytest.mark.slow
def test_a_watch_judges_each_turn_once_and_continues_where_it_ended(folder):
    Path("w.yaml").write_text("name: w\nsource: {transcripts/claude_code: {path: s}}\njudges: [heuristic/turn]\n")
    agent = Agent(folder / "a.jsonl")
    agent.turn("one")
    agent.turn("two")
    os.utime(agent.path, (1, 1))
    assert dicast("watch", "w.yaml", "--once").returncode == 0
    assert dicast("watch", "w.yaml", "--once").returncode == 0
    agent.turn("three")
    os.utime(agent.path, (2, 2))
    assert dicast("watch", "w.yaml", "--once").returncode == 0
    verdicts = json.loads(dicast("verdicts", "--json", "--run", "last").stdout)["verdicts"]
    assert [verdict["subject_id"] for verdict in verdicts] == ["S/1", "S/2", "S/3"]
    for turn in ("S/1", "S/3"):
        assert json.loads(dicast("show", turn, "--json").stdout)["subject"]["place"] == "s/a.jsonl"


@pytest.mark.slow
@pytest.mark.parametrize("scan", ["warn", "mask", "off"])
def test_a_watch_counts_or_masks_secrets_of_sessions_once(folder, scan):
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    Path("w.yaml").write_text(
        f"name: w\nsource: {{transcripts/claude_code: {{path: s, scan: {scan}}}}}\njudges: [heuristic/turn]\n"
    )
    agent = Agent(folder / "a.jsonl")
    agent.turn(f"use {key}")
    agent.turn("mail joe@example.org")
    os.utime(agent.path, (1, 1))
    first = dicast("watch", "w.yaml", "--once")
    agent.turn(f"{key} again")
    os.utime(agent.path, (2, 2))
    second = dicast("watch", "w.yaml", "--once", "--json")
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    verdicts = json.loads(dicast("verdicts", "--json", "--run", "last").stdout)["verdicts"]
    assert [verdict["subject_id"] for verdict in verdicts] == ["S/1", "S/2", "S/3"]
    assert json.loads(second.stdout)["read"].get("scan") == (None if scan == "off" else {"aws-key": 1, "email": 1})
    assert ("secrets and personal data: 1 aws-key, 1 email" in first.stdout + first.stderr) == (scan != "off")
    stored = b"".join(path.read_bytes() for path in Path(".dicast").rglob("*") if path.is_file())
    assert (key.encode() in stored, b"[masked: aws-key]" in stored) == (scan != "mask", scan == "mask")


@pytest.mark.slow
def test_a_watch_follows_several_formats_at_once(folder):
    Path("w.yaml").write_text("""source:
  traces/joined:
    sources: [transcripts/claude_code: {path: s}, transcripts/codex: {path: s}]
judges: [heuristic/turn]
""")
    agent = Agent(folder / "a.jsonl", "same")
    agent.turn("one")
    codex = folder / "b.jsonl"

    def line(type_, payload):
        return json.dumps({"timestamp": "2026-01-01T00:00:00Z", "type": type_, "payload": payload}) + "\n"

    def turn(text):
        return line("event_msg", {"type": "user_message", "message": text}) + line("event_msg", {"type": "agent_message", "message": "ok"})  # fmt: skip

    codex.write_text(line("session_meta", {"id": "same"}) + turn("uno"))
    for path in (agent.path, codex):
        os.utime(path, (1, 1))
    assert dicast("watch", "w.yaml", "--once").returncode == 0
    codex.write_text(codex.read_text() + turn("due"))
    os.utime(codex, (2, 2))
    assert dicast("watch", "w.yaml", "--once").returncode == 0
    verdicts = json.loads(dicast("verdicts", "--json", "--run", "last").stdout)["verdicts"]
    assert len({verdict["subject_id"] for verdict in verdicts}) == len(verdicts) == 3
    mixed = Path("w.yaml").read_text().replace("transcripts/codex: {path: s}", "traces/messages: {path: c.jsonl}")
    Path("mixed.yaml").write_text(mixed)
    Path("c.jsonl").write_text("")
    refused = dicast("watch", "mixed.yaml", "--once")
    assert (refused.returncode, "Messages is not one" in refused.stderr) == (2, True)
