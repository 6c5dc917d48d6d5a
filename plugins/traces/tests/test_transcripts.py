"""``dicast watch`` over conversations: lines that are added, written again, and longer then."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

import dicast
from dicast_traces.watch import watch

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


PIPELINE = """\
source: {traces/messages: {path: chats.jsonl, subjects: [tool_cycle, turn, session], id: "{{ chat }}"}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {ledger/sqlite: {path: watched.db}}
"""


def turn(number: int, call_id: str) -> list[dict[str, object]]:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": f'{{"n": {number}}}'}}
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": "let me see", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "found"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def chat(name: str, turns: int, calls: str | None = None, **fields: object) -> dict[str, object]:
    """A conversation whose tool calls are called like *calls*, by default like itself."""
    system = {"role": "system", "content": "Be brief."}
    messages_ = (message_ for number in range(turns) for message_ in turn(number, f"{calls or name}{number}"))
    return {"chat": name, "messages": [system, *messages_], **fields}


class Shop:
    """A folder with a pipeline and its conversations."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.chats = folder, folder / "chats.jsonl"
        self.chats.touch()
        (folder / "watch.yaml").write_text(PIPELINE)

    def write(self, *chats: object) -> None:
        with self.chats.open("a") as file:
            file.write("".join(json.dumps(chat_) + "\n" for chat_ in chats))

    def watch(self, *options: str) -> tuple[int, list[str]]:
        """Watch the present input, and return the exit code and the judged subjects, in order. *stderr* has the text on stderr."""
        before = len(self.judged())
        done = CliRunner().invoke(watch, ["watch.yaml", "--once", *options], standalone_mode=False)
        self.stderr, self.printed = str(done.exception or done.stderr), done.stdout
        code = 2 if isinstance(done.exception, dicast.RequestError) else done.return_value
        return code, self.judged()[before:]

    def read(self) -> dict[str, object]:
        """Return the counts of the newest watch with ``--json`` that are not zero."""
        read = json.loads(self.printed)["read"]
        return {key: value for key, value in read.items() if value and key not in ("subjects", "notes")}

    def judged(self) -> list[str]:
        return [f"{kind} {id}" for kind, id, _, _ in verdicts(self.folder / "watched.db")]


def verdicts(ledger: Path) -> list[tuple[str, str, object, object]]:
    """Return each verdict in order: kind, id, the judged content, and the result."""
    if not ledger.exists():
        return []
    query = (
        "SELECT type, subject_kind, subject_id, payload FROM events "
        "WHERE type IN ('subject.read', 'eval.completed') ORDER BY seq"
    )
    verdicts_, read, contents = [], {}, {}
    with closing(connect(ledger)) as database:
        for type_, kind, id, payload in database.execute(query):
            payload_ = json.loads(payload)
            if type_ == "subject.read":
                content = contents.setdefault(payload_["digest"], payload_["content"])  # the ledger has it once
                read[kind, id] = [content[name] for name in ("input", "output", "context")]
            else:
                signals = {name: value for name, value in payload_["signals"].items() if name != "child_eval_ids"}
                verdicts_.append((kind, id, read[kind, id], [payload_["score"], payload_["confidence"], signals]))
    return verdicts_


def latest(verdicts_: list[tuple[str, str, object, object]]) -> dict[tuple[str, str], object]:
    return {(kind, id): (read, came) for kind, id, read, came in verdicts_}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shop(tmp_path)


def test_conversations_are_judged_as_run_judges_the_finished_file(shop):
    shop.write(chat("a", 2, lang="en"), chat("b", 1))
    first = shop.watch()
    assert first[0] == 0, shop.stderr
    shop.write(chat("d", 1), chat("e", 0))
    second = shop.watch()
    assert second[0] == 0, shop.stderr
    assert [item_ for item_ in first[1] if "tool" not in item_] == [
        "turn a/1",
        "turn a/2",
        "session a",
        "turn b/1",
        "session b",
    ]
    assert [item_ for item_ in second[1] if "tool" not in item_] == ["turn d/1", "session d", "session e"]
    (shop.folder / "run.yaml").write_text(PIPELINE.replace("watched.db", "run.db"))
    dicast.run("run.yaml")
    assert latest(verdicts(shop.folder / "watched.db")) == latest(verdicts(shop.folder / "run.db"))


def test_conversation_that_has_gone_on_has_its_new_turns_judged_and_itself_again(shop):
    shop.write(chat("a", 1))
    assert shop.watch() == (0, ["tool_cycle a0", "turn a/1", "session a"])
    shop.write(chat("a", 1), chat("a", 3, mood="good"))
    assert shop.watch() == (0, ["tool_cycle a1", "tool_cycle a2", "turn a/2", "turn a/3", "session a"])
    *_, (_, _, (_, _, context), came) = verdicts(shop.folder / "watched.db")
    assert (context, came[2]["turn_count"]) == ({"chat": "a", "mood": "good"}, 3)
    shop.write(chat("a", 2), chat("a", 3, mood="good"))  # an earlier state of it, and the same
    assert shop.watch() == (0, [])


def test_conversation_that_is_another_now_is_a_bad_line_and_changes_nothing(shop):
    other = chat("a", 2)
    other["messages"][4]["content"] = "something else"
    shop.write(chat("a", 1), other, {"chat": "b"}, {"messages": []}, chat("c", 1))
    code, judged = shop.watch()
    assert code == 3
    assert sorted(judged) == ["session a", "session c", "tool_cycle a0", "tool_cycle c0", "turn a/1", "turn c/1"]
    assert "chats.jsonl:2: conversation 'a' was recorded before, and turn 'a/1' was different" in shop.stderr
    assert "chats.jsonl:3: a conversation needs 'messages'" in shop.stderr
    assert "chats.jsonl:4: the record has no 'chat'" in shop.stderr


def test_calls_that_share_an_id_are_told_apart_by_their_turns_from_the_second_conversation_on(shop):
    shop.write(chat("a", 1, "x"), chat("b", 1, "x"))
    assert [item_ for item_ in shop.watch()[1] if "tool" in item_] == ["tool_cycle x0", "tool_cycle b/1/x0"]
    shop.write(chat("b", 2, "x"))
    assert shop.watch() == (0, ["tool_cycle x1", "turn b/2", "session b"])


def test_line_numbers_that_come_twice_say_how_to_name_conversations(shop):
    numbered = ("--set", "source.traces/messages.id=null")
    shop.write(chat("a", 1))
    assert shop.watch(*numbered) == (0, ["tool_cycle a0", "turn 1/1", "session 1"])
    shop.chats.write_text(json.dumps(chat("a", 1, "z")) + "\n")
    assert shop.watch(*numbered) == (3, [])
    assert "where a line number can come twice, name conversations by the option id" in shop.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["source.traces/messages.history=true"], "dicast watch cannot provide execution_history"),
        (
            ["source.traces/messages.id=null", "source.traces/messages.path=."],
            "line numbers of several files are not unique ids",
        ),
        (["source={rows/jsonl: {path: chats.jsonl}}"], "has to be traces/events or traces/messages"),
    ],
)
def test_what_cannot_be_watched_is_refused(shop, options, message):
    assert shop.watch(*(item_ for option in options for item_ in ("--set", option))) == (2, [])
    assert message in shop.stderr


def test_conversations_of_a_directory_are_followed_where_they_have_ids(shop):
    shop.write(chat("a", 1))
    (shop.folder / "more.jsonl").write_text(json.dumps(chat("b", 1)))
    code, judged = shop.watch("--set", "source.traces/messages.path=.")
    assert (code, {item_ for item_ in judged if "session" in item_}) == (0, {"session a", "session b"})


def test_watch_reads_every_format_and_counts_its_records(shop):
    blocks = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}]
    shop.write({"chat": "a", "contents": [{"parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "yes"}]}]})
    shop.write({"chat": "b", "messages": blocks}, {"chat": "b", "messages": blocks})
    assert shop.watch("--json") == (0, ["turn a/1", "session a", "turn b/1", "session b"])
    assert shop.read() == {"records": 3, "dropped": {"duplicate": 1}, "formats": {"gemini": 1, "openai": 2}}
    shop.write({"chat": "c", "messages": blocks})
    assert shop.watch("--json") == (0, ["turn c/1", "session c"])
    assert shop.read()["records"] == 3  # the earlier two that gave subjects, and the new latest


def test_watch_names_unknown_shapes_and_failed_records_as_bad_lines(shop):
    unknown = {"chat": "a", "messages": [{"role": "critic", "content": "hi"}]}
    shop.write(unknown, {"chat": "b", "messages": [], "error": "timeout"}, chat("good", 1))
    code, judged = shop.watch("--json")
    assert (code, judged[-1]) == (3, "session good")
    assert shop.read() == {"records": 3, "dropped": {"bad_line": 2}, "formats": {"openai": 1}}
    assert "chats.jsonl:1: unknown role 'critic'" in shop.stderr
    assert (
        "chats.jsonl:2: conversation 'b' is not judged: the record failed where it was recorded: timeout" in shop.stderr
    )


@pytest.mark.parametrize("scan", ["warn", "mask"])
def test_secrets_of_lines_are_counted_or_masked_once_for_each_conversation(shop, scan):
    setting = ("--json", "--set", f"source.traces/messages.scan={scan}")
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    secret = chat("a", 1, note=f"the key {key}")
    secret["messages"][1]["content"] = f"question with {key}"
    shop.write(secret, chat("b", 1))
    assert shop.watch(*setting)[0] == 0, shop.stderr
    assert shop.read()["scan"] == {"aws-key": 1}
    longer = {**secret, "messages": [*secret["messages"], *turn(1, "x")]}
    shop.write(longer, longer)
    assert shop.watch(*setting) == (0, ["tool_cycle x", "turn a/2", "session a"])
    assert shop.read()["scan"] == {"aws-key": 1}
    stored = (shop.folder / "watched.db").read_bytes()
    assert (key.encode() in stored) == (scan == "warn")


@pytest.mark.parametrize("scan", ["warn", "mask", "off"])
def test_secrets_of_events_are_counted_or_masked(tmp_path, monkeypatch, scan):
    monkeypatch.chdir(tmp_path)
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    texts = {"user_prompt_text": f"use {key}", "final_response_text": f"used {key}"}
    lines_ = [
        {"type": "turn.completed", "session_id": name, "turn_id": f"{name}/{number}", "payload": {"stop_reason": "end_turn", "tool_call_count": 0, "signals_extra": texts}}
        for number in (1, 2) for name in ("s", "t")
    ] + [{"type": "session.ended", "session_id": name, "payload": {"disposition": "completed"}} for name in ("s", "t")]  # fmt: skip
    Path("trace.jsonl").write_text("".join(json.dumps(line_) + "\n" for line_ in lines_))
    Path("w.yaml").write_text(
        f"source: {{traces/events: {{path: trace.jsonl, scan: {scan}}}}}\njudges: [heuristic/turn]\n"
        "ledger: {ledger/sqlite: {path: w.db}}\n"
    )
    done = CliRunner().invoke(watch, ["w.yaml", "--once", "--json"], standalone_mode=False)
    assert done.return_value == 0, done.stderr
    read = json.loads(done.stdout)["read"]
    assert (read["records"], read.get("scan")) == (6, None if scan == "off" else {"aws-key": 2})
    assert (key.encode() in Path("w.db").read_bytes()) == (scan != "mask")
    judged = len(verdicts(Path("w.db")))
    again = CliRunner().invoke(watch, ["w.yaml", "--once", "--json"], standalone_mode=False)
    assert (again.return_value, judged, len(verdicts(Path("w.db")))) == (0, 4, 4)
