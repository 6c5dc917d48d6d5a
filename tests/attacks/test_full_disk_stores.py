"""A disk that is full at any write of a file that grows: the message names the file, and with more room the command works again."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from dicast import Query, read_ledger
from dicast.reading import reader

pytestmark = pytest.mark.slow
PIPELINE = (
    "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match]\nledger: {ledger/sqlite: {path: disk/ledger.db}}\n"
)
JUDGED = """
source: {{rows/jsonl: {{path: rows.jsonl}}}}
judges: [evaluator/judge: {{objective: "Is it right?", retries: 0, model: {model}}}]
budget: {{run: 9 usd, day: 99 usd, session: 99 usd}}
ledger: {{ledger/sqlite: {{path: {ledger}}}}}
"""
STORES = {
    "cache": {"cache/chat": {"path": "disk/out"}},
    "recording": {"replay/chat": {"path": "disk/out"}},
}
KEYS = {"cache": "model", "recording": "record"}


def assert_named(code, said):
    """Assert that a command that ended with *code* has named the file and the full disk."""
    text = re.sub(r"\s+", "", said)  # lines are wrapped, also inside paths
    assert code not in {70, 1}, said
    assert re.search(r"disk/\w", text), said
    assert re.search(r"Nospaceleftondevice|nodiskspaceleft|diskisfull|diskI/Oerror", text), said


def assert_whole(disk, ledger):
    """Assert that the ledger verifies, and that ``dicast cost`` adds up to the events."""
    code, said = disk.dicast("ledger", "verify", "--ledger", ledger)
    assert code == 0, said

    def read(live):
        settled = (Decimal(entry.event.payload["amount"] or 0) for entry in live.read(Query(types=("spend.settled",))))
        return sum(settled, Decimal(0)), Decimal(reader("cost")(live, include_eval=True)["total_usd"])

    events, sums = read_ledger(Path(ledger), read)
    assert events == sums
    return events


def chat_model(server):
    price = {"input_per_mtok": 10, "output_per_mtok": 10}
    return {"openai/chat": {"base_url": server.url, "model": "m", "price": price}}


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_replies_on_a_full_disk_is_whole_after_room_is_made(disk, tmp_path, chat_server, name):
    ((kind, options),) = STORES[name].items()
    model = json.dumps({kind: {**options, KEYS[name]: chat_model(chat_server)}})
    (tmp_path / "p.yaml").write_text(JUDGED.format(model=model, ledger="ledger.db"))
    failed = 0
    for size in range(0, disk.room, disk.step):
        disk.empty()
        (tmp_path / "ledger.db").unlink(missing_ok=True)
        disk(size)
        code, said = disk.dicast("run", "p.yaml")
        disk(disk.room)
        full = "No space left" in said or "is full" in re.sub(r"\s+", " ", said)
        if code or full:
            failed += 1
            assert_named(code, said)
        again, text = disk.dicast("run", "p.yaml", *(["--resume", "--retry-failed"] if code == 3 else []))
        assert again == 0, text
        assert_whole(disk, "ledger.db")
        asked = chat_server.count
        assert disk.dicast("run", "p.yaml")[0] == 0
        assert chat_server.count - asked == 0, (size, said, text)  # every reply is stored
        if not code and not full:
            break
    assert failed > 0
    assert code == 0


LEDGERS = {
    "labels": ["labels", "import", "labels.jsonl", "--ledger", "disk/ledger.db"],
    "suite": ["run", "suite.yaml"],
    "bisect": ["bisect", "p.yaml", "--factor", "a=metrics.diff/match.pass_at=0.4", "--yes"],
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_on_a_full_disk_is_whole_after_room_is_made(disk, tmp_path, name):
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "q.yaml").write_text("name: q\n" + (tmp_path / "p.yaml").read_text())
    (tmp_path / "suite.yaml").write_text(
        PIPELINE + "experiments:\n  a: {}\n  b: {set: {metrics.diff/match.pass_at: 0.4}}\n"
    )
    lines = [
        json.dumps({"subject_kind": "row", "subject_id": str(n), "label": 1.0, "labeller": "u", "note": "n" * 2000})
        for n in range(40)
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    code, said = disk.dicast("run", "p.yaml")
    assert code == 0, said
    with closing(sqlite3.connect(tmp_path / "disk/ledger.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = (tmp_path / "disk/ledger.db").read_bytes()
    failed = 0
    for size in range(0, disk.room, disk.step):
        disk.empty()
        (tmp_path / "disk/ledger.db").write_bytes(old)
        disk(size)
        code, said = disk.dicast(*LEDGERS[name])
        disk(disk.room)
        if code == 0:
            break
        failed += 1
        assert_named(code, said)
        again, text = disk.dicast(*LEDGERS[name])
        assert again == 0, text
        assert_whole(disk, "disk/ledger.db")
    assert failed > 0
    assert code == 0


def test_outcomes_on_a_full_disk_are_whole_after_room_is_made(disk, tmp_path):
    lines = []
    for n in range(160):
        at = {"session_id": f"s{n}", "turn_id": f"s{n}/{'t' * 500}", "time": "2026-03-01T12:00:00.000Z"}
        texts = {"user_prompt_text": "Where is Canberra?", "final_response_text": "In Australia."}
        completed = {"stop_reason": "end_turn", "tool_call_count": 0, "signals_extra": texts}
        lines += [{"type": "route.decided", **at, "payload": {"chosen_model": "abc"[n % 3]}},
                  {"type": "turn.completed", **at, "payload": completed}]  # fmt: skip
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "p.yaml").write_text(
        "source: {traces/events: {path: trace.jsonl}}\njudges: [heuristic/turn]\n"
        "sinks: [patterns/outcomes: {path: disk/out, min_confidence: 0}]\nledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    failed, wanted = 0, None
    for size in [disk.room, *range(0, disk.room, disk.step)]:
        disk.empty()
        (tmp_path / "ledger.db").unlink(missing_ok=True)
        disk(size)
        code, said = disk.dicast("run", "p.yaml")
        disk(disk.room)
        if code:
            failed += 1
            assert_named(code, said)
            again, text = disk.dicast("run", "p.yaml", *(["--resume", "--retry-failed"] if code == 4 else []))
            if again == 2 and "nothing to resume" in text:
                again, text = disk.dicast("run", "p.yaml")
            assert again == 0, text
        assert_whole(disk, "ledger.db")
        with closing(sqlite3.connect(tmp_path / "disk/out")) as connection:
            found = connection.execute("SELECT model, count FROM models ORDER BY model").fetchall()
        wanted = wanted or found
        assert found == wanted
        if not code and size < disk.room:
            break
    assert failed > 0
    assert code == 0


@pytest.mark.parametrize("place", ["run", "output"])
def test_an_optimization_on_a_full_disk_is_resumed_after_room_is_made(disk, tmp_path, chat_server, place):
    words = "hello name warmly " + "w" * 3000
    chat_server.answer = lambda asked: f"Better:\n```\n{words[: 5 + 7 * (asked.number % 3)]} {'x' * 3000}\n```"
    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.jsonl").write_text('{"input": "Ada"}\n{"input": "Grace"}\n')
    folder, output = ("disk/run", "out") if place == "run" else ("run", "disk/out")
    spec = {
        "optimization": {"seed": "Say hello.", "objective": "Greet.", "dataset": "train.jsonl", "valset": "val.jsonl",
                         "test": "test.jsonl", "budget": 10, "money": "5 usd", "run_dir": folder, "output": output},
        "evaluator": {"metrics": [{"proxy/keywords": {"required": ["hello", "name", "warmly"]}}]},
        "model": {"reflection": chat_model(chat_server)},
    }  # fmt: skip
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    failed = 0
    for size in range(0, disk.room, disk.step):
        disk.empty()
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        if place == "output":
            (tmp_path / output).write_text("an older text")
        disk(size)
        code, said = disk.dicast("optimize", "run", "spec.yaml")
        disk(disk.room)
        if code == 0:
            break
        failed += 1
        assert_named(code, said)
        if place == "output":
            assert (tmp_path / output).read_text() == "an older text"
        resumes = (tmp_path / folder / "journal.jsonl").exists() and (
            tmp_path / folder / "journal.jsonl"
        ).stat().st_size
        again, text = disk.dicast("optimize", "run", "spec.yaml", *(["--resume"] if resumes else []))
        assert again == 0, (size, said, text)
        assert_whole(disk, next(str(path) for path in (tmp_path / folder).glob("*.db")))
    assert failed > 0
    assert code == 0


def test_a_server_on_a_full_disk_takes_labels_again_after_room_is_made(disk, tmp_path):
    (tmp_path / "p.yaml").write_text(PIPELINE)
    code, said = disk.dicast("run", "p.yaml")
    assert code == 0, said
    for name in ("read", "label"):
        (tmp_path / f"{name}.token").write_text(name * 10)
    tokens = ["--token-file", "read.token", "--label-token-file", "label.token"]
    command = [sys.executable, "-m", "dicast", "serve", "--ledger", "disk/ledger.db", "--port", "0", *tokens]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[-1].rstrip("/")
            counts = {}
            for size in (*range(0, 256, disk.step), disk.room):
                disk(size)
                for n in range(8):
                    status = post(
                        f"{address}/labels",
                        {"subject_id": str(n), "subject_kind": "row", "score": 1, "reason": "r" * 1900},
                    )
                    counts[status] = counts.get(status, 0) + 1
            assert {503, 201} == counts.keys(), counts
            assert status == 201
        finally:
            disk(disk.room)
            server.terminate()
            log = server.communicate(timeout=200)[1]
    assert "Traceback" not in log, log
    assert_whole(disk, "disk/ledger.db")
    labels = disk.dicast("labels", "export", "--ledger", "disk/ledger.db")
    assert labels[0] == 0


def post(address, body):
    """Return the status of a POST of *body*."""
    headers = {"authorization": f"Bearer {'label' * 10}", "content-type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            error.read()
        return error.code
