"""The chain of format 4, with values of any form."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import LedgerError, Query
from dicast.toolkit.ledger_lines.blocks import lines_in

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def recomputed(path: Path) -> str:
    """Return the last digest, by the standard library alone."""
    digest = bytes(32)
    with closing(sqlite3.connect(path)) as connection:
        for size, body in connection.execute("SELECT size, body FROM blocks ORDER BY first"):
            for line in lines_in(size, body):
                digest = hashlib.sha256(digest + hashlib.sha256(line).digest()).digest()
    return digest.hex()


def test_an_empty_ledger_holds_and_has_no_head(tmp_path, opened):
    with opened(tmp_path / "ledger.db") as ledger:
        result = ledger.verify()
        assert (result.ok, result.events, result.head) == (True, 0, None)


@pytest.mark.parametrize("statement", ["UPDATE spend SET amount = '0'", "DELETE FROM reservations"])
def test_sums_that_do_not_follow_from_the_chain_are_found(tmp_path, opened, make_event, statement):
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        for reservation in ("a", "b"):
            body = {"reservation_id": reservation, "scopes": ["run:R1"], "amount": "2", "unit": "usd"}
            ledger.append([make_event("spend.reserved", body)])
        ledger.append([make_event("spend.settled", {"reservation_id": "a", "amount": "1", "unit": "usd"})])
        ledger.append([make_event("run.completed")])
        assert ledger.verify().ok
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with opened(path, create=False) as ledger:
        result = ledger.verify()
        assert result.bad_seq == 4
        assert "do not follow" in result.reason


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


def test_money_and_any_mapping_can_be_written(tmp_path, opened, make_event):
    payload = {"cost": Decimal("1E+2"), "signals": MappingProxyType({"a": 1})}
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([make_event("eval.completed", MappingProxyType(payload))])
        (entry,) = ledger.read(Query())
        assert entry.event.payload == {"cost": "100", "signals": {"a": 1}}


@pytest.mark.slow
@settings(deadline=None)  # each example waits for the disk
@given(payloads=st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=3), max_size=5), text=st.text())
def test_any_payload_comes_back_and_is_chained_as_documented(opened, make_event, payloads, text):
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "l.db") as ledger:
        events = [make_event("record.completed", payload, subject_id=text) for payload in payloads]
        head = ledger.append(events)
        assert [entry.event for entry in ledger.read(Query())] == events
        assert (head.seq, head.digest) == (len(events), recomputed(ledger.path))
        assert ledger.verify(head.digest if events else None).ok
