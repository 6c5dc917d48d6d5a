"""Faults of files are named with their place: by readers, and by the check."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from dicast import Claim, LedgerError, LedgerRefused, Query
from dicast.toolkit.ledger_lines.chain import chain_of
from dicast_segments import log
from dicast_segments.segment import Segment
from dicast_segments.segment import written as write


@pytest.fixture
def written(folder, opened, make_event, make_subject, monkeypatch):
    """Return the folder of a ledger with two segments and two commits."""
    monkeypatch.setattr(log, "SEALED_COMMITS", 3)
    with opened(folder) as live:
        for number in range(7):
            live.append(make_subject(number))
        live._log._has_written = False  # as after a kill
    assert [len([*folder.path.glob(f"{name}/*")]) for name in ("segments", "log")] == [2, 1]
    return folder


def check(ledger, opened, **options):
    with opened(ledger, create=False) as live:
        return live.verify(**options)


def test_a_whole_ledger_holds(written, opened):
    result = check(written, opened)
    assert (result.ok, result.events, result.absent) == (True, 21, 0)
    assert check(written, opened, head=result.head.digest).ok
    assert check(written, opened, head="f" * 64).reason == f"no row has the digest {'f' * 64}"


def test_a_commit_that_was_cut_is_named(written, opened):
    (path,) = written.path.glob("log/*")
    path.write_bytes(path.read_bytes()[:-20])
    result = check(written, opened)
    assert (result.ok, result.bad_seq) == (False, 19)
    assert "log/000000000007.jsonl.gz: the file was cut or changed" in result.reason
    with opened(written, create=False) as live, pytest.raises(LedgerError, match=r"000000000007\.jsonl\.gz"):
        [*live.read(Query())]


@pytest.mark.parametrize("size", [0, 10, 3_000])
def test_a_segment_that_was_cut_is_named(written, opened, size):
    path = max(written.path.glob("segments/*"))
    path.write_bytes(path.read_bytes()[:size])
    result = check(written, opened)
    assert (result.ok, result.bad_seq) == (False, 10)
    assert "segments/000000000004-000000000000010.parquet: the file was cut or changed" in result.reason
    with opened(written, create=False) as live, pytest.raises(LedgerError, match=r"000000000000010\.parquet"):
        [*live.read(Query())]


def test_a_missing_segment_is_named(written, opened):
    first, last = sorted(written.path.glob("segments/*"))
    data = last.read_bytes()
    last.unlink()
    result = check(written, opened)
    assert (result.bad_seq, result.ok) == (10, False)
    assert result.reason.endswith("log/000000000004.jsonl.gz is missing, with event 10")
    last.write_bytes(data)
    first.unlink()
    assert check(written, opened).bad_seq == 1
    with opened(written, create=False) as live, pytest.raises(LedgerError, match="segment with event 1 is missing"):
        [*live.read(Query())]


def test_a_missing_segment_between_others_is_named(written, opened, make_subject):
    with opened(written) as live:
        for number in range(7, 10):
            live.append(make_subject(number))
    _, middle, *_ = sorted(written.path.glob("segments/*"))
    middle.unlink()
    assert check(written, opened).reason.endswith(
        "segments/000000000004-000000000000010.parquet is missing, with event 10"
    )
    with opened(written, create=False) as live, pytest.raises(LedgerError, match="with event 10, is missing"):
        [*live.read(Query())]


def test_each_changed_byte_of_a_segment_is_found(written, opened):
    path = min(written.path.glob("segments/*"))
    data = path.read_bytes()
    for place in range(4, len(data), 61):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x5A]) + data[place + 1 :])
        result = check(written, opened)
        if result.ok:  # a byte of the footer that no reader uses, such as the name of the writing program
            with opened(written, create=False) as live:
                assert len([*live.read(Query())]) == 21
        else:
            assert "segments/000000000001-000000000000001.parquet" in result.reason


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("payload", '{"score":1}', "event 3 was changed"),
        ("subject_id", "other", "event 3 was changed"),
        ("content", '{"output":"other"}', "the content of event 1 was changed"),
        ("seq", 99, "event 3 was changed"),
    ],
)
def test_a_changed_value_is_named(written, opened, column, value, reason):
    change_value(min(written.path.glob("segments/*")), column, 0 if column == "content" else 2, value)
    result = check(written, opened)
    assert not result.ok
    assert result.reason.endswith(reason)
    assert result.bad_seq == (1 if column == "content" else 3)


def change_value(path, column, row, value):
    """Write *value* into the segment at *path*."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(path)
    values = table.column(column).to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    changed = table.set_column(place, column, pa.array(values, table.schema.field(column).type))
    metadata = parquet.read_metadata(path).metadata
    with parquet.ParquetWriter(path, changed.schema, store_schema=False) as writer:
        writer.write_table(changed)
        writer.add_key_value_metadata({name: metadata[name] for name in (b"dicast.segment", b"dicast.state")})


def test_a_changed_state_is_found(written, opened):
    path = min(written.path.glob("segments/*"))
    segment = Segment("first", path.read_bytes())
    state = segment.state()
    state.runs["another"] = 1, 2
    metadata = {**segment._metadata, b"dicast.state": base64.b64encode(zlib.compress(state.packed()))}
    rows = [row for _, row in segment.rows({}, 0, 9)]
    marks = b"".join(link[:4] for link in chain_of(bytes(32), [row.line() for row in rows]))
    path.write_bytes(write(rows, 1, marks, metadata))
    assert check(written, opened).reason.endswith("the state does not follow from the events")


def test_another_file_with_the_same_events_is_found(written, opened):
    path = min(written.path.glob("segments/*"))
    path.with_name("000000000002-000000000000004.parquet").write_bytes(path.read_bytes())
    assert check(written, opened).reason.endswith(
        "segments/000000000002-000000000000004.parquet: another file has the same events"
    )


def test_a_file_and_a_folder_of_something_else_are_refused(tmp_path, opened):
    from dicast_segments import Ledger

    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(LedgerRefused, match=r"notes\.txt is a file"), opened(Ledger(path=tmp_path / "notes.txt")):
        pass
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ledger.json").write_text(json.dumps({"format": 2}))
    for create in (False, True):
        with (
            pytest.raises(LedgerRefused, match="is not that of a ledger of format 1"),
            opened(Ledger(path=tmp_path / "other"), create=create),
        ):
            pass


def test_a_ledger_without_its_mark_is_refused(written, opened):
    (written.path / "ledger.json").unlink()
    with pytest.raises(LedgerRefused, match=r"ledger\.json is missing\. Restore it"), opened(written):
        pass


def test_a_bucket_that_does_not_exist_is_refused(bucket, opened):
    from dicast_segments import Ledger

    with (
        pytest.raises(LedgerRefused, match="s3://no-such-bucket/logs: .*The specified bucket does not exist"),
        opened(Ledger(url="s3://no-such-bucket/logs")),
    ):
        pass


@pytest.mark.parametrize("call", ["append", "reserve"])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_events_of_a_commit_whose_answer_was_lost_are_appended_once(
    folder, opened, make_event, make_subject, monkeypatch, call, is_sealed
):
    events = make_subject(2)
    with opened(folder) as live, opened(folder) as other:
        live.append(make_subject(1))
        store = type(live._log.store)
        put = store.put

        def fail(*arguments):
            raise LedgerError("the server is down")

        def put_and_fail(self, name, data):
            put(self, name, data)
            monkeypatch.setattr(store, "names", fail)
            fail()

        monkeypatch.setattr(store, "put", put_and_fail)
        with pytest.raises(LedgerError, match="down"):
            live.append(events)
        monkeypatch.setattr(store, "put", fail)
        with pytest.raises(LedgerError, match="down"):
            live.append(events)
        monkeypatch.undo()
        if is_sealed:
            other.append(make_subject(3))
            other._log.seal()
        if call == "append":
            live.append([*events, *make_subject(4)])
        else:
            payload = {"reservation_id": "r", "amount": "1", "unit": "usd", "scopes": [], "expires_at": "9"}
            claim = make_event("spend.reserved", payload, subject_kind="row", subject_id="2")
            assert live.reserve([Claim(claim, ())], lambda entry: entry.event, events) == [None]
        ids = [entry.event.id for entry in live.read(Query())]
        assert len({*ids}) == len(ids)
        assert {event.id for event in events} < {*ids}
        assert live.verify().ok
