"""The readers of a run's rows, which the dashboard shows, against the page of the same run."""

from __future__ import annotations

import base64
import gzip
import json
import re

import dicast as kernel
from dicast.reading import reader

ROWS = [
    {"id": "peru", "input": "Peru?", "output": "Cusco", "reference": "Lima"},
    {"id": "kenya", "input": "Kenya?", "output": "Nairobi", "reference": "Nairobi"},
    {"id": "norway", "input": "Norway?", "output": "Oslo"},
]
PIPELINE = """
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [diff/match, {check/contains: {as: city, value: o}}]
ledger: {ledger/sqlite: {path: ledger.db}}
sinks: [report/html: {path: report.html}]
"""


def read_everything(live):
    """The table, the rows and the texts of the only run."""
    (run_id,) = {entry.event.run_id for entry in live.read(kernel.Query(types=("run.started",)))}
    table = reader("run_table")(live, run_id=run_id)
    columns = table["columns"]
    subjects = list(zip(columns["kinds"], columns["ids"], columns["places"], strict=True))
    slow = [(kind, id, None) for kind, id, _ in subjects]
    rows, same = (reader("run_rows")(live, run_id=run_id, subjects=chosen)["data"] for chosen in (subjects, slow))
    return table, rows, same, list(reader("run_texts")(live, run_id=run_id)["texts"])


def test_the_readers_give_what_the_page_shows(tmp_path, write_rows):
    write_rows(tmp_path / "rows.jsonl", ROWS)
    (tmp_path / "p.yaml").write_text(PIPELINE)
    kernel.run(str(tmp_path / "p.yaml"))
    table, rows, same, texts = kernel.read_ledger(tmp_path / "ledger.db", read_everything)
    page = (tmp_path / "report.html").read_text()
    blocks = {
        name: json.loads(gzip.decompress(base64.b64decode(re.search(rf'id="dicast-{name}">([^<]*)<', page)[1])))[0]
        for name in ("table", "texts")
    }
    for name in ("ids", "kinds", "sessions", "outcomes", "bases", "odds"):
        assert table["columns"][name] == blocks["table"][name]
    assert [row["reason"] for row in rows] == blocks["table"]["reasons"]
    assert [row["output"] for row in rows] == blocks["texts"]["outputs"]
    assert [row["reference"] for row in rows] == blocks["texts"]["references"]
    assert rows == same  # a place makes the reading fast, and no more
    known = {column["label"]: column["values"] for column in blocks["table"]["columns"]}
    written = {
        label: ",".join("" if one is None else str(one) for one in values) for label, values in table["values"].items()
    }
    assert written == known
    searched = dict.fromkeys(table["columns"]["ids"], "")
    for _, id, text in texts:
        searched[id] += text
    assert all(row["output"] in searched[row["subject_id"]] for row in rows)
    assert all((row["reason"] or "") in searched[row["subject_id"]] for row in rows)


TASK = """
from pathlib import Path


def answer(input):
    if input == "a" and Path("broken").exists():
        raise OSError("the endpoint is down")
    return input
"""


def test_a_row_that_was_judged_again_keeps_its_place_and_has_its_newest_result(tmp_path, write_rows, dicast):
    write_rows(tmp_path / "rows.jsonl", [{"id": id, "input": id, "reference": id} for id in ("a", "b")])
    (tmp_path / "again.py").write_text(TASK)
    (tmp_path / "p.yaml").write_text(
        'source: {rows/jsonl: {path: rows.jsonl}}\ntask: {task/python: {target: "again:answer"}}\nmetrics: [diff/match]\n'
        "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    (tmp_path / "broken").touch()
    dicast(tmp_path, "run", "p.yaml", "--json", code=3)
    outcomes = []
    for _ in range(2):
        table, rows, same, _ = kernel.read_ledger(tmp_path / "ledger.db", read_everything)
        outcomes.append(dict(zip(table["columns"]["ids"], table["columns"]["outcomes"], strict=True)))
        assert rows == same
        (tmp_path / "broken").unlink(missing_ok=True)
        dicast(tmp_path, "run", "p.yaml", "--resume", "--retry-failed", "--json")
    assert outcomes == [{"a": "none", "b": "pass"}, {"a": "pass", "b": "pass"}]
    assert list(outcomes[1]) == ["a", "b"]
    assert rows[0]["output"] == "a"


def test_a_session_is_found_by_its_conversation_and_shows_its_first_and_last_text(tmp_path, write_rows):
    messages = [
        {"role": "user", "content": "Where is my parcel?"},
        {"role": "assistant", "content": "Let me look."},
        {"role": "user", "content": "Thanks"},
        {"role": "assistant", "content": "It is in Lima."},
    ]
    write_rows(tmp_path / "chats.jsonl", [{"id": "chat", "messages": messages}])
    (tmp_path / "p.yaml").write_text(
        'source: {traces/messages: {path: chats.jsonl, id: "{{ id }}", subjects: [session]}}\njudges: [heuristic/session]\n'
        "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    kernel.run(str(tmp_path / "p.yaml"))
    _, rows, _, texts = kernel.read_ledger(tmp_path / "ledger.db", read_everything)
    assert [(row["input"], row["output"]) for row in rows] == [("Where is my parcel?", "It is in Lima.")]
    assert any("Let me look." in text for kind, id, text in texts if (kind, id) == ("session", "chat"))
