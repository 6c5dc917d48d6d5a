"""Verification finds later changes, and other programs can check the chain."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import LedgerError, Query

SIDE_TABLES = ["columned", "names", "begun"] + [
    f"{about}_{part}" for about in ("judged", "read", "traced", "spent") for part in ("lines", "by")
]
"""The tables of the columns."""
COLUMNS = [
    "id",
    "type",
    "time",
    "run_id",
    "session_id",
    "turn_id",
    "subject_kind",
    "subject_id",
    "sensitivity",
    "payload",
]
ROWS = 8
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SQL_VALUES = st.none() | st.text(max_size=5) | st.integers(-9, 9) | st.floats(allow_nan=False) | st.binary(max_size=5)


def linked(prev, values):
    """The digest of a row with the values of COLUMNS, by the standard library alone."""
    body = json.dumps(values[:-1], separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{prev}\n{body}\n{values[-1]}".encode()).hexdigest()


def recomputed(path: Path) -> tuple[int, str]:
    """The number of rows and the last digest, by the standard library alone; fails where a row does not hold."""
    last, count = "0" * 64, 0
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT prev, digest, {', '.join(COLUMNS)} FROM events ORDER BY seq")
        for prev, digest, *values in rows:
            assert prev == last
            assert digest == linked(prev, values)
            last, count = digest, count + 1
    return count, last


@pytest.fixture(scope="module")
def template(tmp_path_factory, opened, make_event):
    """A closed ledger of ROWS rows of several types."""
    path = tmp_path_factory.mktemp("chain") / "ledger.db"
    with opened(path) as ledger:
        ledger.append([make_event("run.started", {"name": "nightly"})])
        read = [
            make_event(
                "subject.read", {"digest": f"{n:02x}" * 32, "content": {"output": f"text {n}"}}, subject_id=str(n)
            )
            for n in range(3)
        ]
        reserved = {"reservation_id": "r", "scopes": ["run:R1"], "amount": "0.01", "unit": "usd", "lease_until": None}
        ledger.append([*read, make_event("spend.reserved", reserved), make_event(session_id="S", turn_id="T")])
        ledger.append([make_event("eval.completed", {"score": 0.5}), make_event("run.completed")])
    return path


@contextmanager
def tampered(template: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(template, folder))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield path, connection


def bad_seq(opened, path, head=None):
    with opened(path, create=False) as ledger:
        result = ledger.verify(head)
    assert result.ok == (result.bad_seq is None) == (result.reason is None)
    return result.bad_seq


def shift(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("UPDATE events SET seq = -seq - 1 WHERE seq >= ?", (seq,))
    connection.execute("UPDATE events SET seq = -seq WHERE seq < 0")


def test_an_untouched_ledger_holds(template, opened):
    with opened(template, create=False) as ledger:
        result = ledger.verify(ledger.head().digest)
        assert (result.ok, result.events, result.head) == (True, ROWS, ledger.head())


def test_the_chain_can_be_recomputed_with_the_standard_library(template, opened):
    with opened(template, create=False) as ledger:
        assert recomputed(template) == (ROWS, ledger.head().digest)


@pytest.mark.slow
@settings(deadline=None)  # each example waits for the disk
@given(payloads=st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=3), max_size=5), text=st.text())
def test_any_payload_comes_back_and_is_chained_as_documented(opened, make_event, payloads, text):
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "l.db") as ledger:
        events = [make_event("record.completed", payload, subject_id=text) for payload in payloads]
        head = ledger.append(events)
        assert [entry.event for entry in ledger.read(Query())] == events
        assert recomputed(ledger.path) == (head.seq, head.digest) == (len(events), head.digest)
        assert ledger.verify(head.digest if events else None).ok


@settings(deadline=None)  # each example waits for the disk
@given(data=st.data(), seq=st.integers(1, ROWS), column=st.sampled_from([*COLUMNS, "prev", "digest"]), value=SQL_VALUES)
def test_a_changed_column_is_found_at_its_row(template, opened, data, seq, column, value):
    with tampered(template) as (path, connection):
        select = f"SELECT {column}, typeof({column}) FROM events WHERE seq = ?"
        before = connection.execute(select, (seq,)).fetchone()
        connection.execute(f"UPDATE events SET {column} = ? WHERE seq = ?", (value, seq))
        changed = connection.execute(select, (seq,)).fetchone() != before
        assert bad_seq(opened, path) == (seq if changed else None)


@settings(deadline=None)  # each example waits for the disk
@given(seq=st.integers(1, ROWS))
def test_a_flipped_letter_is_found_at_its_row(template, opened, seq):
    with tampered(template) as (path, connection):
        connection.execute("UPDATE events SET payload = replace(payload, '}', ' }') WHERE seq = ?", (seq,))
        assert bad_seq(opened, path) == seq


def test_text_that_is_no_utf8_is_found(template, opened):
    with tampered(template) as (path, connection):
        connection.execute("UPDATE events SET subject_id = CAST(x'ff' AS TEXT) WHERE seq = 3")
        assert bad_seq(opened, path) == 3


@settings(deadline=None)  # each example waits for the disk
@given(seq=st.integers(1, ROWS - 1))
def test_a_removed_row_is_found_at_the_next_one(template, opened, seq):
    with tampered(template) as (path, connection):
        connection.execute("DELETE FROM events WHERE seq = ?", (seq,))
        assert bad_seq(opened, path) == seq + 1


@settings(deadline=None)  # each example waits for the disk
@given(seq=st.integers(1, ROWS - 1))
def test_a_removed_row_is_found_when_the_rest_is_renumbered(template, opened, seq):
    with tampered(template) as (path, connection):
        connection.execute("DELETE FROM events WHERE seq = ?", (seq,))
        connection.execute("UPDATE events SET seq = -seq + 1 WHERE seq > ?", (seq,))
        connection.execute("UPDATE events SET seq = -seq WHERE seq < 0")
        assert bad_seq(opened, path) == seq


@settings(deadline=None)  # each example waits for the disk
@given(seq=st.integers(1, ROWS), copied=st.integers(1, ROWS))
def test_an_inserted_copy_of_a_row_is_found(template, opened, seq, copied):
    with tampered(template) as (path, connection):
        values = connection.execute("SELECT * FROM events WHERE seq = ?", (copied,)).fetchone()[1:]
        shift(connection, seq)
        connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * 13)})", (seq, *values))
        assert bad_seq(opened, path) == (seq + 1 if copied == seq else seq)


@settings(deadline=None)  # each example waits for the disk
@given(seq=st.integers(1, ROWS))
def test_an_inserted_row_with_a_forged_digest_is_found_at_the_row_after_it(template, opened, seq):
    with tampered(template) as (path, connection):
        prev = connection.execute("SELECT prev FROM events WHERE seq = ?", (seq,)).fetchone()[0]
        values = dict.fromkeys(COLUMNS, "forged") | {"payload": "{}"}
        digest = linked(prev, [*values.values()])
        shift(connection, seq)
        row = (seq, *(values[column] for column in COLUMNS), prev, digest)
        connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * 13)})", row)
        assert bad_seq(opened, path) == seq + 1


@settings(deadline=None)  # each example waits for the disk
@given(pair=st.lists(st.integers(1, ROWS), min_size=2, max_size=2, unique=True))
def test_swapped_rows_are_found_at_the_first_of_them(template, opened, pair):
    with tampered(template) as (path, connection):
        connection.execute("UPDATE events SET seq = -1 WHERE seq = ?", (pair[0],))
        connection.execute("UPDATE events SET seq = ? WHERE seq = ?", pair)
        connection.execute("UPDATE events SET seq = ? WHERE seq = -1", (pair[1],))
        assert bad_seq(opened, path) == min(pair)


@settings(deadline=None)  # each example waits for the disk
@given(left=st.integers(0, ROWS - 1))
def test_a_cut_tail_is_found_with_the_head_alone(template, opened, left):
    with tampered(template) as (path, connection):
        head = connection.execute("SELECT digest FROM events WHERE seq = ?", (ROWS,)).fetchone()[0]
        connection.execute("DELETE FROM events WHERE seq > ?", (left,))
        connection.execute("DELETE FROM reservations WHERE seq > ?", (left,))
        if left < 5:  # the reservation is gone, and its sum with it
            connection.execute("DELETE FROM held")
        # a careful cut removes all rows of the end
        connection.execute("UPDATE runs SET last_seq = ?" if left else "DELETE FROM runs WHERE 0 = ?", (left,))
        connection.execute("DELETE FROM contents WHERE seq > ?", (left,))
        for table in SIDE_TABLES:
            connection.execute(f"DELETE FROM {table}")  # as in an older ledger, which has none
        assert bad_seq(opened, path) is None
        assert bad_seq(opened, path, head) == left + 1


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM events WHERE seq = 3", "row 3 is missing"),
        ("UPDATE events SET seq = -3 WHERE seq = 3", "row -3 does not belong there"),
        ("UPDATE events SET prev = 'x' WHERE seq = 3", "its prev is not the digest of the row before it"),
        ("UPDATE events SET id = 'x' WHERE seq = 3", "its digest does not match its content"),
    ],
)
def test_the_reason_says_what_is_wrong_with_the_row(template, opened, statement, reason):
    with tampered(template) as (path, connection):
        connection.execute(statement)
        with opened(path, create=False) as ledger:
            assert ledger.verify().reason == reason


def test_an_infinity_is_not_taken_for_the_null_that_json_would_make_of_it(template, opened):
    with tampered(template) as (path, connection):
        connection.execute("UPDATE events SET turn_id = 9e999 WHERE seq = 3 AND turn_id IS NULL")
        assert bad_seq(opened, path) == 3


def test_a_changed_row_is_named_before_a_tail_that_was_cut(template, opened):
    with tampered(template) as (path, connection):
        connection.execute("UPDATE events SET id = 'another' WHERE seq = 2")
        assert bad_seq(opened, path, "0" * 64) == 2


def test_an_empty_ledger_holds_and_has_no_head(tmp_path, opened):
    with opened(tmp_path / "ledger.db") as ledger:
        result = ledger.verify()
        assert (result.ok, result.events, result.head) == (True, 0, None)


def test_an_older_head_is_still_there(template, opened):
    with closing(sqlite3.connect(template)) as connection:
        (older,) = connection.execute("SELECT digest FROM events WHERE seq = 3").fetchone()
    assert bad_seq(opened, template, older) is None


@pytest.mark.parametrize("statement", ["UPDATE spend SET amount = '0'", "DELETE FROM reservations"])
def test_sums_that_do_not_follow_from_the_chain_are_found(tmp_path, opened, make_event, statement):
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        for reservation in ("a", "b"):
            body = {"reservation_id": reservation, "scopes": ["run:R1"], "amount": "2", "unit": "usd"}
            ledger.append([make_event("spend.reserved", body)])
        ledger.append([make_event("spend.settled", {"reservation_id": "a", "amount": "1", "unit": "usd"})])
        assert ledger.verify().ok
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with opened(path, create=False) as ledger:
        result = ledger.verify()
        assert result.bad_seq == 3
        assert "do not follow" in result.reason


@pytest.mark.parametrize(
    ("statement", "seq", "reason"),
    [
        ("DELETE FROM runs", 1, "run 'R1' has rows 1 to 8, but the table runs has no row for it"),
        ("UPDATE runs SET last_seq = 7", 1, "run 'R1' has rows 1 to 8, but the table runs has 1 to 7"),
        ("UPDATE runs SET last_seq = 9", 1, "the table runs has 1 to 9"),
        ("UPDATE runs SET first_seq = x'00'", 1, "the table runs has b'\\x00' to 8"),
        ("INSERT INTO runs VALUES ('A', 1, 2)", 8, "no row is of run 'A'"),
        ("INSERT INTO runs VALUES ('Z', 1, 2)", 8, "no row is of run 'Z'"),
        ("INSERT INTO runs VALUES (x'ff', 1, 2)", 8, "no row is of run b'\\xff'"),
        ("DELETE FROM contents WHERE seq = 3", 3, "is of row 3, but the table contents has None"),
        ("UPDATE contents SET seq = 2 WHERE seq = 3", 3, "is of row 3, but the table contents has 2"),
        ("INSERT INTO contents VALUES (7, 2)", 8, "key 7 is of row None, but the table contents has 2"),
        ("UPDATE held SET amount = x'00'", 8, "held:"),
        ("INSERT INTO lost VALUES ('r', '[]', '1', 'usd')", 8, "lost:"),
        ("DROP TABLE runs", 8, "no such table: runs"),
    ],
)
def test_every_table_beside_the_chain_is_compared_with_it(template, opened, statement, seq, reason):
    with tampered(template) as (path, connection):
        connection.execute(statement)
        with opened(path, create=False) as ledger:
            result = ledger.verify()
        assert result.bad_seq == seq
        assert reason in result.reason


@pytest.mark.parametrize("column", ["digest", "prev", "type", "payload", "id"])
@pytest.mark.parametrize("value", ["x'ff00'", "CAST(x'ff' AS TEXT)", "NULL", "7"])
def test_a_column_of_another_type_is_found_at_its_row(template, opened, column, value):
    with tampered(template) as (path, connection):
        connection.execute(f"UPDATE events SET {column} = {value} WHERE seq = ?", (ROWS,))
        with opened(path, create=False) as ledger:
            result = ledger.verify()
        assert result.bad_seq == ROWS
        json.dumps([result.reason, result.head.digest]).encode()
        result.head.digest.encode()
        if value == "x'ff00'":
            assert result.reason == f"its {column} is binary data, where text belongs"


@pytest.mark.parametrize("change", ["prev = NULL", "digest = NULL", "payload = '{}'", "session_id = 9e999"])
def test_who_reads_a_runs_start_is_refused_when_its_digest_does_not_cover_it(template, opened, change):
    with tampered(template) as (path, connection):
        connection.execute(f"UPDATE events SET {change} WHERE type = 'run.started'")
        with opened(path, create=False) as ledger, pytest.raises(LedgerError, match=r"^row 1 of .* was changed"):
            list(ledger.read(Query(types=("run.started",))))


def test_an_index_that_lacks_rows_is_found(template, opened):
    with tampered(template) as (path, connection):
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'session_id IS NOT NULL', '1') WHERE name = 'sessions'"
        )
        connection.close()
        with opened(path, create=False) as ledger:
            result = ledger.verify()
        assert not result.ok
        assert "SQLite finds the file damaged" in result.reason


def test_a_run_whose_events_share_batches_with_anothers_holds(tmp_path, opened, make_event):
    with opened(tmp_path / "ledger.db") as ledger:
        for content in ("one", "two", "one"):
            read = {"digest": hashlib.sha256(content.encode()).hexdigest(), "content": {"output": content}}
            ledger.append([make_event("subject.read", read, run_id=run) for run in ("A", "B", "A")])
        assert ledger.verify().ok


def test_an_event_that_is_no_json_is_refused_with_its_batch(tmp_path, opened, make_event):
    with opened(tmp_path / "ledger.db") as ledger:
        good, bad = make_event(), make_event("eval.failed", {"error": object()})
        with pytest.raises(LedgerError, match=rf"event {bad.id} \(eval.failed\) cannot be written as JSON"):
            ledger.append([good, bad])
        assert ledger.head() is None


@pytest.fixture
def damaged(tmp_path, opened, make_event):
    """A ledger whose last page is no page any more, and the number of rows that can still be read."""
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        ledger.append([make_event("eval.completed", {"details": "x" * 1000}) for _ in range(40)])
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xff" * 4096
    path.write_bytes(content)
    readable = 0
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.DatabaseError):
        for _ in connection.execute("SELECT * FROM events ORDER BY seq"):
            readable += 1
    return path, readable


def test_a_damaged_file_is_found_where_reading_ends(damaged, opened):
    path, readable = damaged
    with opened(path, create=False) as ledger:
        with pytest.raises(LedgerError, match="damaged"):
            list(ledger.read(Query()))
        result = ledger.verify()
    assert 0 < readable < 40
    assert (result.events, result.bad_seq) == (readable, readable + 1)
    assert f"damaged after row {readable}:" in result.reason


def test_a_changed_row_before_the_damage_is_named_first(damaged, opened):
    path, readable = damaged
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE events SET id = 'another' WHERE seq = 2")
    assert readable > 2
    assert bad_seq(opened, path) == 2


def test_a_payload_that_is_no_json_is_found_though_the_chain_holds(template, opened):
    with tampered(template) as (path, connection):
        row = connection.execute(f"SELECT prev, {', '.join(COLUMNS)} FROM events WHERE seq = ?", (ROWS,)).fetchone()
        digest = linked(row[0], [*row[1:-1], "no json"])
        connection.execute("UPDATE events SET payload = 'no json', digest = ? WHERE seq = ?", (digest, ROWS))
        assert bad_seq(opened, path) == ROWS


def test_money_and_any_mapping_can_be_written(tmp_path, opened, make_event):
    payload = {"cost": Decimal("1E+2"), "signals": MappingProxyType({"a": 1})}
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([make_event("eval.completed", MappingProxyType(payload))])
        (entry,) = ledger.read(Query())
        assert entry.event.payload == {"cost": "100", "signals": {"a": 1}}


def test_the_readme_verifies_a_ledger_with_the_standard_library(template, opened):
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python[^\n]*\n(.*?)```", readme, re.DOTALL)

    def run(path: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)

    with opened(template, create=False) as ledger:
        assert run(template).stdout.strip() == ledger.head().digest
    with tampered(template) as (path, connection):
        connection.execute("UPDATE events SET subject_id = 'another' WHERE seq = 5")
        assert run(path).stderr.strip() == "row 5 does not hold"


def test_a_ledger_of_format_2_is_written_on_and_verified_by_its_own_rule(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    with opened(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    for number in range(2):
        with opened(path) as ledger:
            ledger.append([make_event("eval.completed", {"text": f'"ü\\{number}"\n'}, subject_id="é")])
            assert ledger.verify().ok
    with closing(sqlite3.connect(path)) as connection:
        for prev, digest, *values in connection.execute(f"SELECT prev, digest, {', '.join(COLUMNS)} FROM events"):
            columns = dict(zip(COLUMNS, values, strict=True))
            body = json.dumps(columns, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            assert digest == hashlib.sha256(f"{prev}\n{body}".encode()).hexdigest()
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        connection.execute("UPDATE events SET payload = '{}' WHERE seq = 2")
        connection.commit()
    assert bad_seq(opened, path) == 2
