"""Columns of blocks: stored and checked for a large block, computed from the lines for a small block."""

from __future__ import annotations

import pytest

from dicast import JudgedRow, LedgerError
from dicast.reading import read_verdicts
from dicast.testing.ledger_columns import EventsOnly, column_values, judged_events
from dicast.testing.pipeline import typical_records
from dicast.toolkit.ids import stamp

pytestmark = pytest.mark.slow


class Clock:
    """A clock for the builders of events."""

    def stamp(self):
        return stamp()


@pytest.fixture
def ledger(component, open_ledger):
    """A ledger with large and small blocks of three runs."""
    events = judged_events(Clock(), 1_500)
    with open_ledger(component) as live:
        live.append(sorted(events[:1_200], key=lambda event: event.run_id))
        live.append(events[1_200:])
        yield live


def test_columns_of_large_blocks_are_read_without_lines(ledger, connect, monkeypatch):
    selection = "SELECT events >= 300 AS is_large, columns IS NULL, count(*) FROM (SELECT *, last - first + 1 AS events FROM blocks) AS blocks GROUP BY 1, 2"
    ((is_large, is_null, large), (*small, _)) = sorted(connect.execute(selection).fetchall(), reverse=True)
    assert (is_large, is_null, large, small) == (True, False, 3, [False, True])
    expected = column_values(ledger)
    assert expected == column_values(EventsOnly(ledger))
    connect.execute("UPDATE blocks SET body = 'removed' WHERE columns IS NOT NULL")
    assert len(read_verdicts(ledger).seqs) == len(expected["seqs of None"].split(","))


def test_blocks_without_columns_are_read_by_their_lines(ledger, connect):
    expected = column_values(ledger)
    connect.execute("UPDATE blocks SET columns = NULL")
    assert column_values(ledger) == expected
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "change",
    [
        "set_byte(columns, length(columns) - 1, 7)",
        "substring(columns FOR 60)",
        "'\\x00'",
        "(SELECT columns FROM blocks WHERE columns IS NOT NULL ORDER BY first DESC LIMIT 1)",
    ],
)
def test_verify_finds_changed_columns(ledger, connect, change):
    first = "(SELECT min(first) FROM blocks WHERE columns IS NOT NULL)"
    connect.execute(f"UPDATE blocks SET columns = {change} WHERE first = {first}")
    result = ledger.verify()
    assert (result.ok, result.bad_seq) == (False, 1)
    assert "the block from event 1 of run run-1: its columns" in result.reason


def test_columns_of_another_form_are_an_error_of_the_ledger(ledger, connect):
    connect.execute("UPDATE blocks SET columns = '\\x01' WHERE columns IS NOT NULL")
    with pytest.raises(LedgerError, match=r"block from event 1: .*run dicast ledger verify"):
        read_verdicts(ledger)


def test_judged_subjects_are_read_as_rows(component, open_ledger):
    records = [record for record in typical_records() if isinstance(record, JudgedRow)]
    run_id = records[0].maker.run_id
    with open_ledger(component) as live:
        live.append_judged(records)
        rows = list(live.read_judged(run_id))
        assert [type(row) for _, row in rows] == [JudgedRow] * len(records)
        assert [row.eval_id for _, row in rows] == [record.eval_id for record in records]
        assert [seq for seq, _ in live.read_judged(run_id, after=3)] == [seq for seq, _ in rows[1:]]
        assert list(live.read_judged("no such run")) == []
