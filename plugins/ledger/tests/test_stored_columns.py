"""Columns of blocks: the parts that a reader needs, the first version in older files, and the check without an object for each event."""

from __future__ import annotations

import sqlite3
import zlib
from array import array
from contextlib import closing
from functools import partial
from unittest import mock

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event, LedgerError
from dicast.reading import RAW, name_hash, read_verdicts
from dicast.reading.blocks.block_columns import ACTIVITY, MARK, SPENT, TABLES, VERDICTS, BlockColumns, part_of
from dicast.reading.blocks.making import Layouts, columns_of
from dicast.reading.blocks.merging import merge_activity
from dicast.reading.blocks.stored_columns import StoredColumns, StoredTable
from dicast.reading.columns import code_of, kept
from dicast.testing.leases import Clock
from dicast.testing.ledger_columns import EventsOnly, column_values, judged_events
from dicast.toolkit.ledger_lines.blocks import body_of, list_in
from dicast.toolkit.ledger_lines.chain import START, chained, leaf_of
from dicast_ledger.format4.first_columns import first_texts
from dicast_ledger.format4.merging import stored_columns
from dicast_ledger.format4.reading import Makers

ABOUT = ("subject.read", "llm.call_completed", "route.decided", "record.failed")


def of_turn(make_event, make_subject, number):
    """Return the events of a turn with a call, a settled amount, a verdict, and every fifth time a failure and an open judgment."""
    place = {"session_id": f"s{number // 3}", "turn_id": f"t{number}"}
    about = {"subject_kind": "row", "subject_id": f"row-{number:04}"}
    call = {"model": "m", "cost_usd": "0.5", "usage": {"total_tokens": number}, "output": f"said {number % 7}"}
    paid = {"reservation_id": f"r{number}", "amount": "0.25", "unit": "usd", "judge": "metrics", "tokens": 3}
    events = [
        make_event("llm.call_completed", call, **place, sensitivity="user_controlled"),
        make_event("route.decided", {"chosen_model": "m"}),
        *make_subject(number, signals={"escalated": True} if number % 2 else {}),
        make_event("spend.settled", paid, **about),
    ]
    if number % 5 == 0:
        failed = {"eval_id": f"F{number}", "judge": "metrics", **about}
        events.append(make_event("eval.failed", failed, **about))
        events.append(make_event("eval.started", {"eval_id": f"O{number}"}, **about))
        events.append(make_event("record.failed", {"error": "x"}, subject_kind="row"))
    return events


@pytest.fixture
def singles(make_event, make_subject):
    """Events that are recorded as one line each."""
    events = [event for number in range(60) for event in of_turn(make_event, make_subject, number)]
    return sorted(events, key=lambda event: event.type != "subject.read")


@pytest.fixture
def path(tmp_path, opened, make_event, make_subject, singles):
    """The path of a ledger of two compressed blocks with all tables: the first has lines of events only, the second lines of judged subjects too."""
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append(singles)
        ledger.append([event for number in range(60, 180) for event in of_turn(make_event, make_subject, number)])
    return tmp_path / "ledger.db"


def values_of(ledger):
    """Return all that readers get from columns."""
    verdicts, activity, spent = ledger.verdict_columns(), ledger.activity_columns(None, ABOUT), ledger.spent()
    names = [columns.names.texts_of(columns.numbers) for columns in (verdicts, activity, spent)]
    return [
        *([repr([*getattr(verdicts, field.name)]) for field in attrs.fields(type(verdicts)) if field.name in FIGURES]),
        *(activity.seqs, activity.codes, activity.content_hashes, activity.origins, names),
        *(spent.times, spent.codes, spent.flags, spent.amounts, spent.tokens, spent.calls, spent.marks, spent.payers),
        *(verdicts.exact, spent.exact),
        [entry.seq for entry in ledger.open_judgments()],
    ]


FIGURES = ("seqs", "times", "codes", "flags", "scores", "confidences", "usd", "msat", "origins")


def first_packed(columns):
    """Return the columns as the first version stored them."""
    *texts, hashes = first_texts(columns)
    bodies = [zlib.compress(text, 1) for text in texts]
    return b"".join([*(len(body).to_bytes(4, "little") for body in bodies), *bodies, hashes])


def change_columns(path, new):
    """Store the columns that *new* returns of the size, the body and the columns of each block."""
    with closing(sqlite3.connect(path)) as connection:
        layouts = Layouts(Makers(connection))
        blocks = connection.execute(
            "SELECT first, size, body, columns FROM blocks WHERE columns IS NOT NULL"
        ).fetchall()
        for first, size, body, stored in blocks:
            lines = orjson.loads(list_in(size, body))
            connection.execute("UPDATE blocks SET columns = ? WHERE first = ?", (new(lines, layouts, stored), first))
        connection.commit()


def with_a_changed_part(place):
    """Return a function that returns stored columns with a changed byte in the part *place*."""

    def changed(lines, layouts, stored):
        lengths = [int.from_bytes(stored[at : at + 4], "little") for at in range(8, 44, 8)]
        start = len(MARK) + 40 + sum(lengths[:place])
        edited = bytearray(stored)
        edited[start + lengths[place] // 2] ^= 0x55
        return bytes(edited)

    return changed


@pytest.mark.parametrize("has_calls", [True, False])
def test_columns_of_the_first_version_are_read_and_checked(path, opened, has_calls):
    with opened(path, create=False) as ledger:
        expected = values_of(ledger)
    change_columns(path, lambda lines, layouts, _: first_packed(columns_of(lines, layouts, has_calls=has_calls)))
    with opened(path, create=False) as ledger:
        assert values_of(ledger) == expected
        assert ledger.verify().ok


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_changed_columns_of_the_first_version_are_found(path, opened, table):
    def changed(lines, layouts, _):
        columns = columns_of(lines, layouts)
        columns.tables[table].odd += 1
        return first_packed(columns)

    change_columns(path, changed)
    with opened(path, create=False) as ledger:
        result = ledger.verify()
    assert (result.bad_seq, "do not follow from its lines" in result.reason) == (1, True)


def test_columns_of_the_first_version_that_cannot_be_read_are_named(path, opened):
    change_columns(path, lambda *_: b"\x05\x00\x00\x00\x00\x00\x00\x00wrong")
    with opened(path, create=False) as ledger:
        assert "cannot be decompressed" in ledger.verify().reason
        with pytest.raises(LedgerError, match="the block from event 1: its columns cannot be decompressed"):
            ledger.verdict_columns()


VERDICT_PART, NAMES_READER = 0, 4


@pytest.mark.parametrize("place", range(5))
def test_a_reader_decompresses_its_own_part(path, opened, place):
    """A changed part stops its own readers, and the check finds it."""
    change_columns(path, with_a_changed_part(place))
    readers = [
        lambda ledger: ledger.verdict_columns(),
        lambda ledger: ledger.activity_columns(None, ABOUT),
        lambda ledger: ledger.spent(),
        lambda ledger: ledger.open_judgments(),
        lambda ledger: ledger.verdict_columns().ids,
    ]
    for number, read in enumerate(readers):
        with opened(path, create=False) as ledger:
            assert ledger.verify().bad_seq == 1
            if place == number or (place, number) == (VERDICT_PART, NAMES_READER):
                with pytest.raises((LedgerError, ValueError)):
                    read(ledger)
            else:
                read(ledger)


@pytest.mark.parametrize("end", [0, 4, 20, 44, 60, -17])
def test_columns_that_end_early_are_found(path, opened, end):
    change_columns(path, lambda lines, layouts, stored: stored[:end])
    with opened(path, create=False) as ledger:
        assert ledger.verify().bad_seq == 1


def test_the_check_makes_no_event_of_a_line_of_an_event(tmp_path, opened, singles):
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append(singles)
        with mock.patch.object(Event, "of", side_effect=AssertionError):
            assert ledger.verify().ok


def test_new_columns_have_a_part_for_each_table(path):
    with closing(sqlite3.connect(path)) as connection:
        ((stored,), *_) = connection.execute("SELECT columns FROM blocks").fetchall()
    columns = stored_columns(stored)
    assert stored.startswith(MARK)
    assert (columns.table(VERDICTS).size, columns.table(SPENT).size) == (72, 120)


@pytest.mark.parametrize("packed", [True, False])
def test_a_line_of_an_event_with_a_value_too_many_is_found(path, opened, packed):
    with closing(sqlite3.connect(path)) as connection:
        ((size, body),) = connection.execute("SELECT size, body FROM blocks WHERE first = 1").fetchall()
        lines = list_in(size, body)[2:-2].split(b",\n")
        lines[100] = orjson.dumps([*orjson.loads(lines[100])[:11], "0" * 64])
        digest, marks = chained(START, map(leaf_of, lines))
        values = digest, marks, *body_of(lines, packed=packed)
        connection.execute("UPDATE blocks SET digest = ?, marks = ?, size = ?, body = ? WHERE first = 1", values)
        if not packed:
            connection.execute("UPDATE blocks SET columns = NULL WHERE first = 1")
        connection.commit()
    with opened(path, create=False) as ledger:
        result = ledger.verify()
    assert (result.bad_seq, "line 101 of the block from event 1 cannot be read" in result.reason) == (101, True)


def test_a_part_comes_back_if_its_compressed_form_has_the_same_length():
    texts = [bytes(range(length)) + b"x" * count for length in range(0, 60, 3) for count in range(60)]
    assert [list_in(len(text), part_of(text)) for text in texts] == texts
    assert any(len(zlib.compress(text, 1)) == len(text) for text in texts)


@pytest.mark.parametrize("least", [1, 10_000])
def test_columns_equal_those_of_the_events_with_numpy_and_without(tmp_path, opened, least):
    with mock.patch("dicast.reading.columns.MANY_ROWS", least), opened(tmp_path / "ledger.db") as ledger:
        events = judged_events(Clock(), 600)
        for start in range(0, 600, 150):
            ledger.append(events[start : start + 150])
        assert column_values(ledger) == column_values(EventsOnly(ledger))


def test_the_newest_pricing_version_is_read_from_the_facts_of_blocks(tmp_path, opened, make_event, make_subject):
    def verdicts(start, version):
        return [
            attrs.evolve(event, payload={**event.payload, "judge_pricing_version": version})
            if event.type == "eval.completed"
            else event
            for number in range(start, start + 200)
            for event in make_subject(number)
        ]

    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append(verdicts(0, None))
        assert ledger.pricing_version() is None
        for start, version in ((200, "v1"), (400, "v2"), (600, None)):
            ledger.append(verdicts(start, version))
        with mock.patch.object(StoredColumns, "table", autospec=True, side_effect=StoredColumns.table) as table:
            assert ledger.pricing_version() == "v2"
        assert table.call_count == 1
        assert ledger.pricing_version("no such run") is None


@pytest.mark.parametrize("least", [1, 10_000])
def test_a_window_without_an_excluded_line_copies_nothing(path, opened, least):
    with mock.patch("dicast.reading.columns.MANY_ROWS", least), opened(path, create=False) as ledger:
        spent = ledger.spent()
        low, high = min(spent.times), max(spent.times)
        assert spent.within(None, None) is spent.within(low, high + 1) is spent
        later = [time for time in spent.times if time > low]
        assert [*spent.within(low + 1, None).times] == later
        assert [*spent.within(None, high).times] == [time for time in spent.times if time < high]


class OneTable:
    """Stored columns of a block with the table *activity*: its places, the numbers of its facts, and the numbers of its names."""

    def __init__(self, facts, names, rows):
        texts = [f"name {number}" for number in range(names)]
        self.names, self.hashes = partial(orjson.dumps, texts), b"".join(map(name_hash, texts))
        facts = [["run", f"type {fact % 3}", f"model {fact}"] for fact in facts]
        columns = [array("i", column) for column in zip(*rows, strict=True)] or [array("i")] * 3
        numbers = b"".join(column.tobytes() for column in (*columns, array("q", range(len(rows)))))
        self._table = StoredTable.of(ACTIVITY, [len(rows), 0, facts, [], [None] * 4], memoryview(numbers))

    def table(self, table):
        return self._table


@st.composite
def tables(draw):
    """Return blocks with tables, in which a number may have no fact, or be negative."""
    blocks, first = [], 1
    for _ in range(draw(st.integers(0, 4))):
        facts = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True))
        odd = draw(st.integers(0, 9)) == 0
        low, high = (-1, len(facts)) if odd else (0, len(facts) - 1)
        row = st.tuples(st.integers(low, 50), st.integers(low, high), st.integers(low, 2))
        blocks.append((first, OneTable(facts, 3, draw(st.lists(row, max_size=5)))))
        first += draw(st.integers(60, 2**40))
    return blocks


@given(tables(), st.sampled_from([("type 0",), ("type 1", "type 2"), ("type 0", "type 1", "type 2"), ()]))
def test_many_rows_are_numbered_as_few(blocks, types):
    def merged(least):
        with mock.patch("dicast.reading.columns.MANY_ROWS", least):
            try:
                columns = merge_activity(blocks, None, types)
            except ValueError as error:
                return str(error)
            origins = [columns.origins[code] for code in columns.codes]
            return [*columns.seqs], origins, [*columns.content_hashes], columns.ids

    assert merged(1) == merged(10_000)


@pytest.mark.parametrize(("row", "problem"), [((0, 1, 0), "range"), ((0, 0, -1), "negative"), ((-1, 0, 0), "negative")])
@pytest.mark.parametrize("least", [1, 10_000])
def test_a_number_without_a_fact_is_refused_with_its_block(row, problem, least):
    blocks = [(1, OneTable([0], 1, [(0, 0, 0)])), (9, OneTable([0], 1, [row]))]
    refused = pytest.raises(ValueError, match=f"the block from event 9: .*{problem}")
    with mock.patch("dicast.reading.columns.MANY_ROWS", least), refused:
        merge_activity(blocks, None, ("type 0",))


def test_a_column_that_ends_early_is_refused():
    with pytest.raises(ValueError, match="does not have 3 numbers"):
        StoredTable.of(ACTIVITY, [3, 0, [], [], [[0], [0], [0], None]], memoryview(bytes(23)))


def judgments(starts, ends):
    """Return the stored columns of a block with these starts and ends of judgments."""
    columns = BlockColumns()
    columns.open, columns.ends = dict(starts), list(ends)
    return StoredColumns.of(columns.packed())


EVAL_IDS = st.text(st.sampled_from('ab",\\:[]{}\n\N{SNOWMAN}'), max_size=60)


@given(
    st.dictionaries(EVAL_IDS, st.lists(st.integers(0, 300), min_size=1), max_size=4), st.lists(EVAL_IDS, max_size=40)
)
def test_judgments_in_the_first_bytes_are_those_of_the_text(starts, ends):
    stored = judgments(starts, ends)
    assert stored.started() == starts
    for eval_ids in ([], ends[:1], ends[-1:], ["other"], [*ends[:1], "other"], [*ends[1:3], "a"], ends):
        assert set(eval_ids) & {*stored.ended(eval_ids)} == set(eval_ids) & {*ends}


def test_a_judgment_that_ends_in_the_first_bytes_needs_no_other():
    ends = [f"01RUNBBBBBBBBBBBBBBBBB{number:016}" for number in range(250)]
    stored = judgments({"started": [249]}, ends)
    with mock.patch("dicast.reading.blocks.stored_columns.list_in", side_effect=AssertionError):
        assert stored.started() == {"started": [249]}
        assert ends[0] in stored.ended([ends[0]])
    assert ends[200] in stored.ended([ends[200]])


@pytest.mark.parametrize("least", [1, 10_000])
def test_no_row_of_many_is_a_column_too(least):
    with mock.patch("dicast.reading.columns.MANY_ROWS", least):
        columns = [array("q", [1, 2, 3]), memoryview(array("d", [1.0, 2.0, 3.0]))]
        assert [[*numbers] for numbers in kept(columns, b"\0\0\0")] == [[], []]
        assert [[*numbers] for numbers in kept(columns, b"\1\0\1")] == [[1, 3], [1.0, 3.0]]
        assert [code_of(column) for rows in (b"\0\0\0", b"\1\0\1") for column in kept(columns, rows)] == ["q", "d"] * 2


@pytest.mark.parametrize("least", [1, 10_000])
def test_columns_without_raw_scores_are_made_once(tmp_path, opened, least):
    with mock.patch("dicast.reading.columns.MANY_ROWS", least), opened(tmp_path / "ledger.db") as ledger:
        ledger.append(judged_events(Clock(), 600))
        columns = read_verdicts(ledger)
        unit_scores = columns.unit_scores()
        seqs = [seq for seq, flags in zip(columns.seqs, columns.flags, strict=True) if not flags & RAW]
        assert [*unit_scores.seqs] == seqs != [*columns.seqs]
        assert columns.unit_scores() is unit_scores is unit_scores.unit_scores()
