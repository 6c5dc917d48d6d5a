"""Conversion of older ledgers into format 4."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256

import orjson
import pytest

from dicast import LedgerError, LedgerRefused, Query
from dicast.reading import read_verdicts
from dicast.reading.blocks.making import Layouts, columns_of
from dicast.toolkit.ledger_lines.blocks import lines_in
from dicast_ledger.format4 import convert as convert_module
from dicast_ledger.format4.convert import convert
from dicast_ledger.format4.first_columns import first_texts
from dicast_ledger.format4.reading import Makers

FIELDS = (
    *("id", "type", "time", "run_id", "payload", "session_id", "turn_id", "subject_kind", "subject_id"),
    "sensitivity",
)


def test_every_event_comes_back_byte_by_byte(opened, old_ledger, tmp_path):
    before = old_ledger.path.read_bytes()
    result = convert(old_ledger.path, tmp_path / "new.db")
    assert (result.events, result.old_head) == (old_ledger.head.seq, old_ledger.head)
    with opened(tmp_path / "new.db", create=False) as ledger:
        events = [entry.event for entry in ledger.read(Query())]
        assert ledger.verify(result.head.digest).ok
        assert ledger.head() == result.head
        scores = [event["payload"]["score"] for event in old_ledger.events if event["type"] == "eval.completed"]
        assert [*read_verdicts(ledger).scores] == scores
    for event, row in zip(events, old_ledger.events, strict=True):
        assert orjson.dumps([getattr(event, name) for name in FIELDS]) == orjson.dumps(
            [row.get(name) for name in FIELDS]
        )
    assert old_ledger.path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if "new" in path.name) == ["new.db"]


def test_the_first_line_has_the_old_head(old_ledger, tmp_path):
    convert(old_ledger.path, tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        row = connection.execute("SELECT size, body FROM blocks ORDER BY first LIMIT 1").fetchone()
    assert orjson.loads(lines_in(*row)[0]) == [3, old_ledger.head.seq, old_ledger.head.digest]


def test_a_changed_ledger_is_not_converted(old_ledger, tmp_path):
    with closing(sqlite3.connect(old_ledger.path)) as connection:
        connection.execute("UPDATE events SET payload = replace(payload, ':', ' :') WHERE seq = 7")
        connection.commit()
    with pytest.raises(LedgerError, match="changed at row 7, and is not converted"):
        convert(old_ledger.path, tmp_path / "new.db")
    assert not list(tmp_path.glob("new*"))


def test_an_existing_file_is_refused(old_ledger, tmp_path):
    (tmp_path / "new.db").write_text("mine")
    with pytest.raises(LedgerRefused, match=r"new\.db exists"):
        convert(old_ledger.path, tmp_path / "new.db")
    assert (tmp_path / "new.db").read_text() == "mine"


def test_a_converted_ledger_is_not_converted_again(old_ledger, tmp_path):
    convert(old_ledger.path, tmp_path / "new.db")
    with pytest.raises(LedgerRefused, match="has format 4: it needs no conversion"):
        convert(tmp_path / "new.db", tmp_path / "newer.db")


def test_the_rest_of_an_interrupted_conversion_is_replaced(old_ledger, tmp_path):
    (tmp_path / ".new.db.dicast-part").write_text("half")
    assert convert(old_ledger.path, tmp_path / "new.db").events == old_ledger.head.seq
    assert not [path for path in tmp_path.iterdir() if "part" in path.name]


def test_a_file_that_another_process_has_made_meanwhile_stays(old_ledger, tmp_path, monkeypatch):
    new = tmp_path / "new.db"
    write = convert_module._write
    monkeypatch.setattr(convert_module, "_write", lambda *arguments: (write(*arguments), new.write_text("mine"))[0])
    with pytest.raises(LedgerRefused, match=r"new\.db exists"):
        convert(old_ledger.path, new)
    assert new.read_text() == "mine"
    assert not [path for path in tmp_path.iterdir() if "part" in path.name]


def test_a_ledger_that_gets_events_meanwhile_is_not_converted(
    old_ledger, tmp_path, monkeypatch, append_old, make_event
):
    write = convert_module._write

    def write_late(*arguments):
        result = write(*arguments)
        append_old(old_ledger.path, [make_event()])
        return result

    monkeypatch.setattr(convert_module, "_write", write_late)
    with pytest.raises(LedgerError, match="has new events, and was not converted"):
        convert(old_ledger.path, tmp_path / "new.db")
    assert not [path for path in tmp_path.iterdir() if "new" in path.name]


def test_spending_and_leases_are_converted(opened, old_ledger, make_event, append_old, tmp_path):
    reserved = {"scopes": ["run:R1"], "amount": "2", "unit": "usd", "lease_until": "2026-03-01T12:00:00.000Z"}
    events = [make_event("spend.reserved", {"reservation_id": str(number), **reserved}) for number in (1, 2)]
    settled = make_event("spend.settled", {"reservation_id": "1", "amount": "1.5", "unit": "usd"})
    append_old(old_ledger.path, [*events, settled])
    with closing(sqlite3.connect(old_ledger.path)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS leases (run_id TEXT PRIMARY KEY, token, owner, until)")
        connection.execute("INSERT INTO leases VALUES ('R1', 1, 'owner', '')")
        connection.commit()
    convert(old_ledger.path, tmp_path / "new.db")
    with opened(tmp_path / "new.db", create=False) as ledger:
        assert [entry.event.payload["reservation_id"] for entry in ledger.reservations("R1")] == ["2"]
        assert ledger.lease_of("R1").token == 1
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        query = "SELECT amount FROM spend WHERE scope = 'run:R1'"
        assert connection.execute(query).fetchall() == [("1.5",)]


COLUMNS = {
    2: [
        "dd07febca5694e24904b2b662c3d9275c749fad27f94d3b3c5d4a504b6e6ad36",
        "9b5fd025a53ffe00c2daea64733ab2cf3a829921d7d9182e9235d5dd08c0e9c3",
    ],
    3: [
        "42ae6b932837d4120c6b1112be25f9f28d049ac11d2f8be74ca93a91f920bcdd",
        "3852f5c582853dd0d51e362d4739e94fdbe97e55774692d1728bfd2d22812394",
    ],
}
"""The digests of columns in their first version, and of today's, by the format of the older ledger."""


def test_the_columns_of_lines_stay_the_same(old_ledger, tmp_path):
    """The check makes them again, so other columns would need another format."""
    convert(old_ledger.path, tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        rows = connection.execute("SELECT size, body FROM blocks ORDER BY first").fetchall()
        lines = [orjson.loads(line) for row in rows for line in lines_in(*row)]
        columns = columns_of(lines, Layouts(Makers(connection)))
    parts, texts = columns.parts(), first_texts(columns)
    assert [sha256(b"\n".join(made)).hexdigest() for made in (texts, parts)] == COLUMNS[old_ledger.number]


FULL = """
import resource, sys
from pathlib import Path
from dicast import LedgerError
from dicast_ledger.format4.convert import convert
old, new, *sizes = sys.argv[1:]
for size in map(int, sizes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        print(convert(Path(old), Path(new)).events)
    except LedgerError as error:
        print(error)
    print(*(path.name for path in Path(new).parent.iterdir() if "new" in path.name))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of the size of files")
def test_a_full_disk_leaves_no_file(old_ledger, tmp_path, append_old, make_event):
    chance = random.Random(7)
    events = [make_event("task.replied", {"text": chance.randbytes(400).hex()}) for _ in range(300)]
    append_old(old_ledger.path, events)
    sizes = ("4096", "50000", "100000", "150000", "10000000")
    command = [sys.executable, "-c", FULL, old_ledger.path, tmp_path / "new.db", *sizes]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[1:8:2] == [""] * 4
    assert all(str(tmp_path) in line for line in lines[0:8:2]), lines
    assert lines[8:] == [str(old_ledger.head.seq + 300), "new.db"]
