"""Readers of one row after another get the rows of the file, although blocks and contents are kept in memory."""

from __future__ import annotations

import pytest

import dicast_ledger.opened
from dicast import Query


@pytest.fixture
def subjects(make_subject):
    return lambda *numbers: [event for number in numbers for event in make_subject(number)]


def row(ledger, seq):
    return next(iter(ledger.read(Query(after=seq - 1, limit=1))))


def contents(ledger):
    return [
        entry.event.payload["content"] and entry.event.payload["content"]["output"]
        for entry in (row(ledger, seq) for seq in range(1, ledger.head().seq, 3))
        if entry.event.type == "subject.read"
    ]


def test_single_rows_are_the_rows_of_a_whole_reading(tmp_path, opened, subjects, make_event):
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([make_event("run.started", {"name": "one"}), *subjects(*range(150))])
        ledger.append(subjects(200, 201))
        entries = list(ledger.read(Query()))
        assert [row(ledger, seq) for seq in range(1, len(entries) + 1)] == entries
        newest = [
            next(iter(ledger.read(Query(subject_id=f"row-{n:04}", newest_first=True, limit=1)))) for n in (0, 149, 201)
        ]
        assert [entry.seq for entry in newest] == [4, 451, len(entries)]
        assert list(ledger.read(Query(newest_first=True, limit=500))) == entries[::-1]
        assert list(ledger.read(Query(newest_first=True, after=440))) == entries[:439:-1]
        assert not list(ledger.read(Query(after=len(entries), limit=1)))


def test_a_block_that_was_sealed_meanwhile_is_read_again(tmp_path, opened, subjects):
    with opened(tmp_path / "ledger.db") as ledger, opened(tmp_path / "ledger.db") as other:
        ledger.append(subjects(1))
        other.append(subjects(2))
        assert contents(ledger) == ["Answer 1", "Answer 2"]
        other.append(subjects(*range(3, 150)))
        assert contents(ledger) == [f"Answer {number}" for number in range(1, 150)]


def test_an_erased_content_is_not_read_from_memory(tmp_path, opened, subjects, make_event):
    with opened(tmp_path / "ledger.db") as ledger, opened(tmp_path / "ledger.db") as other:
        ledger.append(subjects(*range(120)))
        assert contents(ledger)[:3] == ["Answer 0", "Answer 1", "Answer 2"]
        other.erase(
            "row-0001", None, lambda digests: make_event("content.erased", {"digests": [*digests], "reason": "r"})
        )
        assert contents(ledger)[:3] == ["Answer 0", None, "Answer 2"]


def test_readers_that_stop_early_share_a_connection(tmp_path, opened, subjects, monkeypatch):
    connections = []
    connect = dicast_ledger.opened.connect
    monkeypatch.setattr(
        dicast_ledger.opened, "connect", lambda *args: connections.append(connect(*args)) or connections[-1]
    )
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append(subjects(*range(120)))
        for seq in range(1, 50):
            row(ledger, seq)
        ledger.append(subjects(200))
        assert row(ledger, 363).event.subject_id == "row-0200"
    assert len(connections) == 1
