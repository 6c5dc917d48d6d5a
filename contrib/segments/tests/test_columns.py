"""Columns of segments: read without lines, checked, and made from the rows of older segments."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from dicast import LedgerError, Query
from dicast.reading import read_open_judgments, read_verdicts
from dicast.reading.blocks.merging import merge_verdicts
from dicast_segments import columns, segment
from dicast_segments.log import Log

GROUP = 64


@pytest.fixture
def path(folder, opened, make_event, monkeypatch):
    """The folder of a ledger with three groups of rows, the last with an open judgment."""
    monkeypatch.setattr(segment, "_GROUP_ROWS", GROUP)
    origin = {"judge_kind": "metrics", "judge_model": None, "rubric_id": None, "rubric_version": None}
    verdict = {"score": 0.5, "confidence": 1.0, "judge_cost_usd": "0.01", **origin}
    events = []
    for number in range(60):
        about = {"subject_kind": "row", "subject_id": str(number)}
        judged = {"eval_id": f"E{number}", "judge": "metrics", **about}
        content = {"digest": f"{number:064x}", "content": {"output": f"text {number}"}}
        events.append(make_event("subject.read", content, **about))
        events.append(make_event("eval.started", judged, **about))
        events.append(make_event("eval.completed", {**judged, **verdict}, **about))
    with opened(folder) as live:
        live.append(events)
        live.append([make_event("eval.started", {**judged, "eval_id": "open"}, **about)])
    return folder.path


def values_of(live):
    """Return values that readers get from columns."""
    verdicts = read_verdicts(live)
    return [*verdicts.seqs], [*verdicts.scores], verdicts.ids, [entry.seq for entry in read_open_judgments(live)]


def rewrite(path, change):
    """Write the segment again with the table and the metadata that *change* returns."""
    (name,) = (path / "segments").iterdir()
    table, metadata = parquet.read_table(name), parquet.read_metadata(name).metadata
    table, metadata = change(table.replace_schema_metadata(None), {**metadata})
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, table.schema, write_page_checksum=True, store_schema=False) as writer:
        writer.write_table(table, row_group_size=GROUP)
        writer.add_key_value_metadata(metadata)
    name.write_bytes(sink.getvalue())


def to_first_format(table, metadata):
    """Return the table and the metadata of a segment of format 1."""
    header = {**orjson.loads(metadata[b"dicast.segment"]), "format": 1}
    return table.drop_columns(["columns"]), {**metadata, b"dicast.segment": orjson.dumps(header)}


def changed_at(place, stored):
    """Return a function that stores *stored* in the row *place*."""

    def change(table, metadata):
        values = table.column("columns").to_pylist()
        values[place] = stored(values[place])
        column = pa.array(values, pa.binary())
        return table.set_column(table.column_names.index("columns"), "columns", column), metadata

    return change


def test_columns_are_read_without_lines(path, folder, opened, monkeypatch):
    with opened(folder, create=False) as live:
        expected = values_of(live)
        monkeypatch.setattr(columns, "columns_of_events", None)
        assert values_of(live) == expected
        assert (len(expected[0]), expected[3]) == (60, [181])


def test_segments_of_the_first_format_are_read_by_their_rows_and_checked(path, folder, opened):
    with opened(folder, create=False) as live:
        expected, head = values_of(live), live.head()
    rewrite(path, to_first_format)
    with opened(folder, create=False) as live:
        assert values_of(live) == expected
        assert live.verify(head.digest).ok


def test_an_erasure_writes_the_columns_of_an_older_segment(path, folder, opened, make_event):
    rewrite(path, to_first_format)
    with opened(folder) as live:
        expected = values_of(live)
        live.erase("7", None, lambda digests: make_event("content.erased", {"digests": [*digests]}))
        assert values_of(live) == expected
        assert live.verify().ok
    newest = min((path / "segments").iterdir())
    assert parquet.read_schema(newest).names[-1] == "columns"


@pytest.mark.parametrize(
    ("place", "stored"),
    [
        (0, lambda old: old[:-1] + bytes([old[-1] ^ 1])),
        (GROUP, lambda old: None),
        (2 * GROUP, lambda old: b""),
        (GROUP, lambda old: old[:60]),
        (GROUP, lambda old: b"\0" + old),
        (3, lambda old: b"more"),
    ],
)
def test_verify_finds_changed_columns(path, folder, opened, place, stored):
    rewrite(path, changed_at(place, stored))
    first = place // GROUP * GROUP + 1
    with opened(folder, create=False) as live:
        result = live.verify()
    assert (result.ok, result.bad_seq) == (False, first)
    assert f"events {first} to" in result.reason


def test_columns_of_another_form_are_an_error_of_the_ledger(path, folder, opened):
    rewrite(path, changed_at(GROUP, lambda old: b"\xff\xff\xff\xff" + old[4:60]))
    with opened(folder, create=False) as live:
        with pytest.raises(LedgerError, match="events 65 to 128"):
            read_verdicts(live)
        assert len([*live.read(Query(limit=9))]) == 9


def test_columns_have_no_event_after_the_newest_of_the_reader(path):
    (name,) = (path / "segments").iterdir()
    blocks = segment.Segment(str(name), name.read_bytes()).columns({}, 0, 181, newest=100)
    assert [*merge_verdicts(blocks, None).seqs] == [*range(3, 100, 3)]


def test_verify_finds_an_escape_in_place_of_its_character(folder, opened, make_event):
    with opened(folder) as live:
        live.append([make_event(turn_id="one\ntwo")])
        assert live.verify().ok
    with opened(folder, create=False) as live:
        assert live.verify().ok

    def change(table, metadata):
        column = pa.array([r"one\ntwo"], pa.string())
        return table.set_column(table.column_names.index("turn_id"), "turn_id", column), metadata

    rewrite(folder.path, change)
    with opened(folder, create=False) as live:
        result = live.verify()
    assert (result.ok, result.bad_seq) == (False, 1)


def test_a_reader_does_not_import_pandas(path):
    """Pandas takes longer to import than a short command takes, and no row needs it."""
    code = (
        "import json, sys; from dicast import Query, read_ledger\n"
        "place = json.dumps({'segments/ledger': {'path': sys.argv[1]}})\n"
        "query = Query(types=('subject.read', 'no.type'), subject_id='7')\n"
        "print(read_ledger(place, lambda live: [entry.seq for entry in live.read(query)]), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[22] False"


def test_a_segment_without_a_type_is_opened_once(path, folder, opened, make_event, monkeypatch):
    """Commands ask for the same rare types several times, such as labels that were taken back."""
    with opened(folder) as live:
        live.append([make_event("label.retracted", {"subject": "7"}), make_event("eval.started", {"eval_id": "E"})])
    names = []
    read = Log.segment
    monkeypatch.setattr(Log, "segment", lambda log, place: names.append(place.name) or read(log, place))
    with opened(folder, create=False) as live:
        counts = []
        for types in (
            ("label.retracted",),
            ("label.retracted",),
            ("no.type",),
            ("label.retracted", "subject.read"),
            (),
        ):
            names.clear()
            counts.append((len([*live.read(Query(types=types))]), len(names)))
    assert counts[0][0] == 1
    assert counts[0][1] >= 2
    assert [opens for _, opens in counts[1:]] == [1, 0, 2, 2]
    assert [events for events, _ in counts[1:]] == [1, 0, 61, 183]
