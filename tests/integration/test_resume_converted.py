"""A killed run of an older ledger is resumed after the conversion of the ledger."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from dicast_ledger.old_chain import COLUMNS, LINKS

from .conftest import settled

DATA = Path(__file__).parents[2] / "plugins" / "ledger" / "tests" / "data"
TEXT = """\
name: paid
metrics: [fake/act, {{fake/paid: {{journal: {journal}}}}}]
budget: {{run: 1 usd}}
executor: {{dicast/async: {{concurrency: 1}}}}
ledger: {{ledger/sqlite: {{path: {ledger}}}}}
"""
ROWS = 6


def old_ledger(path, number, events):
    """Write a ledger of the format *number* whose newest events are *events*, by the documented rules of its chain."""
    path.write_bytes(gzip.decompress((DATA / f"format{number}.db.gz").read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        seq, digest = connection.execute("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1").fetchone()
        connection.execute("INSERT INTO runs VALUES (?, ?, ?)", (events[0]["run_id"], seq + 1, seq + len(events)))
        for event in events:
            seq, prev = seq + 1, digest
            columns, payload = [event[name] for name in COLUMNS], orjson.dumps(event["payload"])
            digest = LINKS[number](prev, columns, payload)
            row = seq, *columns, payload.decode(), prev, digest
            connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(row))})", row)
            content = event["payload"].get("content")
            if content is not None:
                key = int.from_bytes(bytes.fromhex(event["payload"]["digest"])[:8], "big", signed=True)
                connection.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (key, seq))
        connection.commit()


@pytest.fixture
def undisturbed(shop):
    """Return the document of a whole run, and its events."""
    shop.rows(*[0.5 + number / 20 for number in range(ROWS)])
    done = shop.run(TEXT.format(journal="first", ledger="first.db"))
    assert done.code == 0
    export = shop.dicast("ledger", "export", "--ledger", "first.db").out.splitlines()
    return done.json, [orjson.loads(line) for line in export]


@pytest.mark.parametrize(
    ("number", "last"), [(2, "spend.reserved"), (3, "subject.read"), (3, "spend.settled"), (3, "eval.completed")]
)
def test_a_killed_run_is_resumed_after_the_conversion(shop, undisturbed, number, last):
    document, events = undisturbed
    end = [place for place, event in enumerate(events, 1) if event["type"] == last][3]
    bought = sum(event["type"] == "spend.settled" for event in events[:end])
    old_ledger(shop / "old.db", number, events[:end])
    assert shop.dicast("ledger", "verify", "--ledger", "old.db").code == 0

    refused = shop.run(TEXT.format(journal="first", ledger="old.db"), "--resume")
    assert (refused.code, "dicast ledger convert" in refused.json["error"]["message"]) == (2, True)
    assert shop.dicast("ledger", "convert", "old.db", "new.db").code == 0
    done = shop.run(TEXT.format(journal="first", ledger="new.db"), "--resume")

    assert (done.code, done.json["run_id"]) == (0, document["run_id"])
    assert settled(done.json)["metrics"] == settled(document)["metrics"]
    calls = (shop / "first").read_text().split()
    assert len(calls) == ROWS + (ROWS - bought)
    assert shop.dicast("ledger", "verify", "--ledger", "new.db").code == 0
    types = [
        orjson.loads(line)["type"] for line in shop.dicast("ledger", "export", "--ledger", "new.db").out.splitlines()
    ]
    assert types.count("spend.lost") == types.count("spend.reserved") - types.count("spend.settled")
