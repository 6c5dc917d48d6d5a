"""A ledger of format 4 from before the lines of traces stays readable and verifiable, and is written on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import attrs
import pytest

from dicast import Event, LedgerRefused, Query
from dicast.reading import VerdictColumns
from dicast_ledger.format4.connecting import add_functions
from dicast_ledger.format4.convert import convert


def exported(entry):
    return {"seq": entry.seq, **attrs.asdict(entry.event, recurse=False)}


def without_digests(events):
    fields = [field.name for field in attrs.fields(Event)]
    return [
        {"seq": event["seq"], **{name: event.get(name, {} if name == "extra" else None) for name in fields}}
        for event in events
    ]


def view_of(path):
    with closing(sqlite3.connect(path)) as connection:
        add_functions(connection)
        return connection.execute("SELECT seq, id, type, payload FROM events ORDER BY seq").fetchall()


def test_its_events_are_the_exported_events(opened, first_ledger):
    with opened(first_ledger.path, create=False) as ledger:
        assert [exported(entry) for entry in ledger.read(Query())] == without_digests(first_ledger.events)


def test_it_verifies_with_its_known_head(opened, first_ledger):
    with opened(first_ledger.path, create=False) as ledger:
        result = ledger.verify(first_ledger.head.digest)
    assert (result.ok, result.head) == (True, first_ledger.head), result.reason


def test_its_columns_are_the_columns_of_its_events(opened, first_ledger):
    with opened(first_ledger.path, create=False) as ledger:
        columns, expected = (
            ledger.verdict_columns(),
            VerdictColumns().add(ledger.read(Query(types=("eval.completed",)))),
        )
    assert [*columns.scores] == [*expected.scores]
    assert [*columns.ids] == [*expected.ids]


def test_a_reader_does_not_change_it(opened, first_ledger):
    before = first_ledger.path.read_bytes()
    with opened(first_ledger.path, create=False) as ledger:
        assert ledger.head() == first_ledger.head
    assert first_ledger.path.read_bytes() == before


def test_its_views_read_the_lines_of_traces_that_a_run_adds(opened, first_ledger, make_subject):
    old = view_of(first_ledger.path)
    subject = [attrs.evolve(event, session_id="s") for event in make_subject(1)]
    call = Event("E", "tool.called", subject[0].time, "R1", {"a": 1}, session_id="s", sensitivity="user_controlled")
    added = [subject[0], call, *subject[1:]]
    with opened(first_ledger.path) as ledger:
        ledger.append(added)
        assert ledger.verify(first_ledger.head.digest).ok
    rows = view_of(first_ledger.path)
    assert rows[: len(old)] == old
    assert [(seq, id_, type_, json.loads(payload)) for seq, id_, type_, payload in rows[len(old) :]] == [
        (first_ledger.head.seq + number, event.id, event.type, event.payload) for number, event in enumerate(added, 1)
    ]


def test_it_needs_no_conversion(first_ledger, tmp_path):
    with pytest.raises(LedgerRefused, match="needs no conversion"):
        convert(first_ledger.path, tmp_path / "new.db")
