"""Changes of ledgers of formats 2 and 3 are found."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager, suppress

import pytest

from dicast import LedgerError, Query

COLUMNS = [
    *("id", "type", "time", "run_id", "session_id", "turn_id", "subject_kind", "subject_id", "sensitivity", "payload"),
    *("prev", "digest"),
]


@contextmanager
def tampered(old_ledger):
    with closing(sqlite3.connect(old_ledger.path, isolation_level=None)) as connection:
        yield connection


def verified(opened, old_ledger, head=None):
    with opened(old_ledger.path, create=False) as ledger:
        result = ledger.verify(head)
    assert result.ok == (result.bad_seq is None) == (result.reason is None)
    return result


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", ["x'ff00'", "CAST(x'ff' AS TEXT)", "'x'", "7", "9e999"])
def test_a_changed_column_is_found_at_its_row(opened, old_ledger, column, value):
    with tampered(old_ledger) as connection:
        connection.execute(f"UPDATE events SET {column} = {value} WHERE seq = 7")
    result = verified(opened, old_ledger)
    assert result.bad_seq == 7
    json.dumps([result.reason, result.head.digest]).encode()


@pytest.mark.parametrize(
    ("statements", "seq", "reason"),
    [
        (["DELETE FROM events WHERE seq = 3"], 4, "row 3 is missing"),
        (["UPDATE events SET seq = -3 WHERE seq = 3"], -3, "row -3 does not belong there"),
        (["UPDATE events SET prev = 'x' WHERE seq = 3"], 3, "its prev is not the digest of the row before it"),
        (["UPDATE events SET id = 'x' WHERE seq = 3"], 3, "its digest does not match its content"),
        (
            [
                "UPDATE events SET seq = -1 WHERE seq = 4",
                "UPDATE events SET seq = 4 WHERE seq = 9",
                "UPDATE events SET seq = 9 WHERE seq = -1",
            ],
            4,
            "its prev is not the digest of the row before it",
        ),
    ],
)
def test_the_reason_is_the_fault_of_the_row(opened, old_ledger, statements, seq, reason):
    with tampered(old_ledger) as connection:
        for statement in statements:
            connection.execute(statement)
    result = verified(opened, old_ledger)
    assert (result.bad_seq, result.reason) == (seq, reason)


def test_a_cut_end_is_found_with_the_head(opened, old_ledger):
    left = old_ledger.head.seq - 3
    with tampered(old_ledger) as connection:
        connection.execute("DELETE FROM events WHERE seq > ?", (left,))
        connection.execute("UPDATE runs SET last_seq = min(last_seq, ?)", (left,))
        connection.execute("DELETE FROM contents WHERE seq > ?", (left,))
    assert verified(opened, old_ledger).ok
    assert verified(opened, old_ledger, old_ledger.head.digest).bad_seq == left + 1


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM runs", "the table runs has 0 to 0"),
        ("UPDATE runs SET last_seq = last_seq - 1", "the table runs has"),
        ("UPDATE runs SET last_seq = 100000", "the table runs has"),
        ("UPDATE runs SET first_seq = x'00'", "the table runs has b"),
        ("INSERT INTO runs VALUES ('Z', 1, 2)", "run 'Z' has rows 0 to 0"),
        ("DELETE FROM contents", "the table contents has None for the content of row"),
        ("UPDATE contents SET seq = 100000", "the table contents has '100000'"),
        ("DROP TABLE runs", "no such table: runs"),
        ("DROP TABLE contents", "no such table: contents"),
    ],
)
def test_a_table_that_readers_use_is_compared_with_the_chain(opened, old_ledger, statement, reason):
    with tampered(old_ledger) as connection:
        connection.execute(statement)
    result = verified(opened, old_ledger)
    assert not result.ok
    assert reason.replace("'100000'", "100000") in result.reason.replace("'100000'", "100000")


@pytest.mark.parametrize("change", ["prev = NULL", "digest = NULL", "payload = '{}'", "session_id = 9e999"])
def test_a_reader_of_a_changed_start_of_a_run_is_refused(opened, old_ledger, change):
    with tampered(old_ledger) as connection:
        connection.execute(f"UPDATE events SET {change} WHERE type = 'run.started'")
    with opened(old_ledger.path, create=False) as ledger, pytest.raises(LedgerError, match=r"^row 1 of .* was changed"):
        list(ledger.read(Query(types=("run.started",))))


def test_a_content_in_another_row_is_refused(opened, old_ledger, append_old, make_event):
    first = next(event for event in old_ledger.events if event["type"] == "subject.read")
    read = {"digest": first["payload"]["digest"], "content": None}
    append_old(old_ledger.path, [make_event("subject.read", read, subject_kind="row", subject_id="again")])
    with opened(old_ledger.path, create=False) as ledger:
        (entry,) = ledger.read(Query(subject_id="again"))
        assert entry.event.payload == {**read, "content": first["payload"]["content"]}
    with tampered(old_ledger) as connection:
        other = next(
            seq
            for seq, payload in connection.execute("SELECT seq, payload FROM events WHERE type = 'subject.read'")
            if json.loads(payload)["digest"] != read["digest"]
        )
        connection.execute("UPDATE contents SET seq = ?", (other,))
    with (
        opened(old_ledger.path, create=False) as ledger,
        pytest.raises(LedgerError, match="names a row with another content"),
    ):
        list(ledger.read(Query(subject_id="again")))


def test_a_damaged_file_is_found_at_the_end_of_the_readable_rows(opened, old_ledger):
    content = bytearray(old_ledger.path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 60_000] = b"\xff" * 60_000
    old_ledger.path.write_bytes(content)
    readable = 0
    with closing(sqlite3.connect(old_ledger.path)) as connection, suppress(sqlite3.DatabaseError):
        for _ in connection.execute("SELECT * FROM events ORDER BY seq"):
            readable += 1
    result = verified(opened, old_ledger)
    assert not result.ok
    assert result.events <= old_ledger.head.seq
