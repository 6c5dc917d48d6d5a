"""A disk that is full at any write of a file that grows: the message names the file, and with more room the command works again."""

from __future__ import annotations

import json
import re
import sqlite3
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
    """Assert that a command that ended with *code* has named the file, or its folder, and the full disk."""
    text = re.sub(r"\n\s+", "", said)
    assert code not in {70, 1}, said
    assert re.search(r"\bdisk\b", text), said
    assert re.search(r"No space left on device|disk is full|disk I/O error", text), said


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
        full = "No space left" in said or "full" in said
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
    (tmp_path / "suite.yaml").write_text(PIPELINE + "experiments:\n  a: {}\n  b: {set: {metrics.diff/match.pass_at: 0.4}}\n")
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
