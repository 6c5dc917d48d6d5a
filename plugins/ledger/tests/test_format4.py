"""A ledger of format 4: blocks, contents, the views, and the check of everything."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import attrs
import orjson
import pytest

from dicast import LedgerError, Query
from dicast.reading import ActivityColumns, VerdictColumns
from dicast.reading.blocks.stored_columns import StoredColumns
from dicast.toolkit.ledger_lines.blocks import is_packed, lines_in
from dicast_ledger.format4.connecting import add_functions
from dicast_ledger.format4.texts import unknown

COLUMNS = ["id", "type", "time", "run_id", "session_id", "turn_id", "subject_kind", "subject_id", "sensitivity"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def rows(path, query, *values):
    with closing(sqlite3.connect(path)) as connection:
        add_functions(connection)
        return connection.execute(query, values).fetchall()


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount, statement
        connection.commit()


def as_rows(events):
    return [
        (seq, *(getattr(event, name) for name in COLUMNS), orjson.dumps(event.payload).decode())
        for seq, event in enumerate(events, 1)
    ]


def subjects(make_subject, *numbers, **verdict):
    return [event for number in numbers for event in make_subject(number, **verdict)]


def test_a_large_append_is_compressed_into_blocks_of_1000_lines(path, opened, make_subject):
    with opened(path) as ledger:
        ledger.append(subjects(make_subject, *range(2_500)))
    blocks = rows(path, "SELECT first, last, lines, size, body FROM blocks ORDER BY first")
    assert [block[2] for block in blocks] == [1_000, 1_000, 501]  # the maker is a line
    assert [block[:2] for block in blocks] == [(1, 2_997), (2_998, 5_997), (5_998, 7_500)]
    assert all(is_packed(size, body) for *_, size, body in blocks)


def test_a_small_append_stays_plain_and_is_one_row(path, opened, make_event):
    with opened(path) as ledger:
        ledger.append([make_event("spend.settled", {"reservation_id": "1", "amount": None})])
    ((size, body),) = rows(path, "SELECT size, body FROM blocks")
    assert len(body) == size
    assert [orjson.loads(line)[2] for line in lines_in(size, body)] == ["spend.settled"]


def test_a_small_append_needs_no_columns(path, opened, make_subject, monkeypatch):
    """Their import takes as long as the append of 1,000 rows."""
    monkeypatch.setitem(sys.modules, "dicast.reading.blocks.making", None)
    with opened(path) as ledger:
        ledger.append(make_subject(1))
        assert len([*ledger.read(Query())]) == 3


def test_256_small_appends_are_compressed_together_and_keep_their_digests(path, opened, make_subject, make_event):
    heads, events = [], []
    with opened(path) as ledger:
        for number in range(300):
            event = make_subject(number)[0] if number % 2 else make_event("task.replied", {"text": "x" * 20})
            events.append(event)
            heads.append(ledger.append([event]))
        assert [entry.event for entry in ledger.read(Query())] == events
        for head in (heads[0], heads[100], heads[255], heads[299]):
            assert ledger.verify(head.digest).ok
    blocks = rows(path, "SELECT lines, size > length(body) FROM blocks ORDER BY first")
    assert blocks[0] == (256, 1)
    assert rows(path, "SELECT count(*) FROM texts WHERE size > length(body)") == [(1,)]


def test_a_run_has_no_upper_bound_between_a_small_append_and_its_end(path, opened, make_event):
    bounds = "SELECT run_id, first_seq, last_seq FROM runs ORDER BY run_id"
    replied = [make_event("task.replied", run_id=run_id) for run_id in ("R1", "R2") * 200]
    with opened(path) as ledger:
        ledger.append([make_event("run.started")])
        assert rows(path, bounds) == [("R1", 1, 1)]
        for event in replied[:200]:
            ledger.append([event])
        assert rows(path, bounds) == [("R1", 1, None), ("R2", 3, None)]
        assert ledger.verify().ok
        assert [*ledger.read(Query(run_id="R2", limit=1, newest_first=True))][0].seq == 201
        ledger.append([make_event("run.completed")])
        assert rows(path, bounds) == [("R1", 1, 202), ("R2", 3, None)]
        assert ledger.verify().ok
        for event in replied[200:]:  # the small appends are sealed
            ledger.append([event])
        ledger.append([make_event("run.completed", run_id="R2")])
        ledger.append(replied[:200])
        assert rows(path, bounds) == [("R1", 1, 602), ("R2", 3, 603)]
        assert ledger.verify().ok
        assert [entry.event for entry in ledger.read(Query(run_id="R2", types=("task.replied",)))] == [
            event for event in replied + replied[:200] if event.run_id == "R2"
        ]


def test_sealed_appends_of_several_runs_have_their_bounds(path, opened, make_event):
    with opened(path) as ledger:
        for _ in range(257):
            ledger.append([make_event("task.replied", run_id=run_id) for run_id in ("R1", "R2", "R3")])
        assert ledger.verify().ok
    assert rows(path, "SELECT count(*) FROM blocks WHERE columns IS NOT NULL") == [(1,)]
    assert rows(path, "SELECT first_seq, last_seq FROM runs ORDER BY run_id") == [(1, None), (2, None), (3, None)]
    change(path, "UPDATE runs SET last_seq = NULL WHERE run_id = 'R2'")
    change(path, "DELETE FROM blocks WHERE columns IS NULL")
    with opened(path, create=False) as ledger:
        assert "run 'R1' has the events 1 to 766" in ledger.verify().reason


@pytest.mark.parametrize("statement", ["last_seq = NULL", "last_seq = last_seq - 1", "first_seq = 2"])
def test_a_changed_bound_of_a_run_that_has_ended_is_found(path, opened, make_event, statement):
    with opened(path) as ledger:
        ledger.append([make_event("run.started")])
        ledger.append([make_event("task.replied")])
        ledger.append([make_event("run.completed")])
    change(path, f"UPDATE runs SET {statement}")
    with opened(path, create=False) as ledger:
        assert "run 'R1' has the events 1 to 3, but the table runs has" in ledger.verify().reason


def test_a_content_of_an_earlier_line_is_known_and_an_erased_content_is_counted(path, opened, make_subject, make_event):
    first, second = subjects(make_subject, *range(150)), subjects(make_subject, *reversed(range(50, 250)))
    with opened(path) as ledger:
        ledger.append(first)
        ledger.append(make_subject(300))
        ledger.append(second)
        ledger.append(make_subject(7))
        assert ledger.verify().ok
        for subject in (first[3 * 60].subject_id, second[0].subject_id):
            ledger.erase(subject, None, lambda digests: make_event("content.erased", {"digests": digests}))
        result = ledger.verify()
    assert (result.ok, result.absent) == (True, 3)  # two lines had the first content


def test_small_appends_are_compressed_before_a_large_append(path, opened, make_subject, make_event):
    with opened(path) as ledger:
        for _ in range(3):
            ledger.append([make_event("task.replied", {"text": "x" * 99})])
        ledger.append(subjects(make_subject, *range(200)))
        assert ledger.verify().ok
    assert rows(path, "SELECT lines, size > length(body) FROM blocks ORDER BY first") == [(3, 1), (201, 1)]


def test_two_writers_take_turns_and_seal_small_appends(path, opened, make_event, make_subject):
    events = [make_event("task.replied", {"text": str(number)}, run_id=f"R{number % 2}") for number in range(700)]
    events[100:101] = subjects(make_subject, 1)
    with opened(path) as first, opened(path) as second:
        for number, event in enumerate(events):
            (second if number % 2 else first).append([event])
        assert [entry.event for entry in second.read(Query())] == events
        assert [entry.event for entry in first.read(Query(run_id="R1"))] == [
            event for event in events if event.run_id == "R1"
        ]
        assert first.verify().ok
    assert rows(path, "SELECT count(*) < 600 FROM blocks") == [(1,)]


def test_a_content_is_stored_once(path, opened, make_subject):
    events = [*subjects(make_subject, *range(150)), *subjects(make_subject, *range(150), run_id="R2")]
    with opened(path) as ledger:
        ledger.append(events[:450])
        ledger.append(events[450:])
        assert [entry.event for entry in ledger.read(Query())] == events
        assert ledger.verify().ok
    assert rows(path, "SELECT count(*) FROM contents") == [(150,)]


def test_large_appends_of_new_contents_do_not_look_for_them(path, opened, make_subject, monkeypatch):
    lookups = []

    def looked_up(texts, digests):
        lookups.append(len(digests))
        return unknown(texts, digests)

    monkeypatch.setattr("dicast_ledger.format4.writer.unknown", looked_up)
    numbers = [range(110), range(110, 220), range(200, 330), range(300), range(330, 450), range(450, 570)]
    batches = [subjects(make_subject, *part, run_id=f"R{place}") for place, part in enumerate(numbers)]
    with opened(path) as ledger:
        for batch in batches:
            ledger.append(batch)
        assert [entry.event for entry in ledger.read(Query())] == [event for batch in batches for event in batch]
        assert ledger.verify().ok
    assert lookups == [110, 130, 300, 120]  # the second and the last append have new contents only, the third has not
    assert rows(path, "SELECT count(*) FROM contents") == [(570,)]
    assert sum(len(lines_in(*row)) for row in rows(path, "SELECT size, body FROM texts")) == 570


def test_contents_whose_digests_begin_alike_are_told_apart(path, opened, make_subject, monkeypatch):
    monkeypatch.setattr("dicast_ledger.format4.texts.KEY_BYTES", 1)
    monkeypatch.setattr("dicast_ledger.format4.contents.KEY_BYTES", 1)
    events = subjects(make_subject, *range(120))
    with opened(path) as ledger:
        for event in events[:60]:
            ledger.append([event])
        ledger.append(events[60:])
        assert [entry.event for entry in ledger.read(Query())] == events
        assert ledger.verify().ok


def test_a_maker_of_a_failed_append_is_written_again(path, opened, make_event, make_subject):
    with opened(path) as ledger:
        bad = make_event("spend.reserved", {"reservation_id": "1"})
        with pytest.raises(LedgerError):
            ledger.append([*make_subject(1), bad])
        assert ledger.head() is None
        ledger.append(make_subject(2))
        assert ledger.verify().ok
        assert len(list(ledger.read(Query()))) == 3


@pytest.mark.parametrize("fault", ["json", "busy"])
def test_a_maker_of_an_append_that_never_began_is_written_again(path, opened, make_event, make_subject, fault):
    with opened(path, busy_timeout=0) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        events = make_subject(1)
        if fault == "json":
            events.append(make_event("task.replied", {"text": {1, 2}}))
        else:
            other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError):
            ledger.append(events)
        if fault == "busy":
            other.execute("ROLLBACK")
        ledger.append(make_subject(2))
        assert ledger.verify().ok
        assert [entry.event.subject_id for entry in ledger.read(Query())] == ["row-0002"] * 3


def mixed(make_subject, make_event):
    return [
        make_event("run.started", {"name": "naïve", "n": 1.5e300}),
        *subjects(
            make_subject, 1, 2, scores=[{"metric": "m", "value": 0.1 + 0.2, "rollout": 0, "details": 'a "quoted"'}]
        ),
        make_subject(3)[0],
        make_event(
            "feedback.explicit", {"text": "\u2028 und\n", "big": 2**60, "none": None}, session_id="s", turn_id="t"
        ),
        make_event("subject.read", {"ä": {"content": None}, "digest": "0", "content": {"output": "é"}, "z": [1.0, {}]}),
        make_event("subject.read", {"content": 'a "text"', "digest": "1"}),
        make_event("subject.read", {"content": 0.1 + 0.2, "digest": "2"}),
        *subjects(make_subject, 4, 5, raw=None),
    ]


def test_the_view_events_has_the_columns_and_payloads_of_the_events(path, opened, make_subject, make_event):
    events = mixed(make_subject, make_event)
    with opened(path) as ledger:
        ledger.append(events[:4])
        ledger.append(events[4:])
    stored = rows(path, f"SELECT seq, {', '.join(COLUMNS)}, payload, prev, digest FROM events ORDER BY seq")
    assert stored == [(*row, None, None) for row in as_rows(events)]


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
def test_the_sqlite3_shell_reads_verdicts_and_payloads(path, opened, make_subject, make_event):
    events = mixed(make_subject, make_event)
    with opened(path) as ledger:
        ledger.append(events)
    command = ["sqlite3", "-separator", "|", str(path)]
    query = "SELECT subject_id, score FROM verdicts ORDER BY seq"
    output = subprocess.run([*command, query], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["row-0001|0.0001", "row-0002|0.0002", "row-0004|0.0004", "row-0005|0.0005"]
    payloads = subprocess.run([*command, "SELECT payload FROM events ORDER BY seq"], capture_output=True, check=True)
    assert payloads.stdout.splitlines() == [orjson.dumps(event.payload) for event in events]


@pytest.fixture(scope="module")
def intact(tmp_path_factory, opened, make_subject, make_event):
    """Return the path of a ledger with three compressed blocks and a small one; event 901 begins the last block."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    with opened(path) as ledger:
        for start in (0, 100, 200):
            ledger.append(subjects(make_subject, *range(start, start + 100)))
        ledger.append([make_event("run.completed", {"ok": True})])
        assert ledger.verify().ok
    return path


@pytest.fixture
def filled(intact, path):
    """Return the path of a copy of the whole ledger."""
    shutil.copy(intact, path)
    return path


@pytest.mark.parametrize(
    "column", ["last", "lines", "run_id", "types", "low", "high", "began", "ended", "prev", "digest", "marks"]
)
@pytest.mark.parametrize("value", ["NULL", "'x'", "7", "zeroblob(32)"])
def test_a_changed_column_of_a_block_is_found(filled, opened, column, value):
    change(filled, f"UPDATE blocks SET {column} = {value} WHERE first = 301")
    with opened(filled, create=False) as ledger:
        result = ledger.verify()
    assert (result.ok, result.bad_seq) == (False, 301), result.reason


@pytest.mark.parametrize(
    ("statements", "seq"),
    [
        (["UPDATE blocks SET body = substr(body, 1, 50) || x'00' || substr(body, 52) WHERE first = 301"], 301),
        (["UPDATE blocks SET size = size - 1 WHERE first = 301"], 301),
        (["UPDATE blocks SET body = CAST(replace(body, 'true', 'fals') AS BLOB) WHERE first = 901"], 901),
        (["UPDATE blocks SET body = body || x'00' WHERE first = 301"], 301),
        (["DELETE FROM blocks WHERE first = 301"], 301),
        (["UPDATE blocks SET first = 7 WHERE first = 301"], 301),
        (["DELETE FROM blocks WHERE first = 1"], 1),
        (["UPDATE blocks SET body = (SELECT body FROM blocks WHERE first = 1) WHERE first = 301"], 301),
        (
            [
                "UPDATE blocks SET first = 0 WHERE first = 301",
                "UPDATE blocks SET first = 301 WHERE first = 601",
                "UPDATE blocks SET first = 601 WHERE first = 0",
            ],
            301,
        ),
        (["UPDATE makers SET line = replace(line, 'metrics', 'metricz')"], 901),
        (["INSERT INTO makers VALUES ('x', 'y')"], 901),
        (["DELETE FROM makers"], 901),
        (["UPDATE texts SET body = x'00' WHERE id = 1"], 901),
        (["DELETE FROM texts WHERE id = 1"], 901),
        (["UPDATE contents SET place = place + 1 WHERE key IN (SELECT key FROM contents LIMIT 1)"], 901),
        (["UPDATE contents SET key = 'x' WHERE key IN (SELECT key FROM contents LIMIT 1)"], 901),
        (["UPDATE runs SET last_seq = 5"], 1),
        (["INSERT INTO runs VALUES ('R9', 1, 2)"], 901),
        (["INSERT INTO spend VALUES ('run:R1', 'usd', '1')"], 901),
    ],
)
def test_a_change_is_found_with_its_place(filled, opened, statements, seq):
    change(filled, *statements)
    with opened(filled, create=False) as ledger:
        result = ledger.verify()
    assert (result.ok, result.bad_seq) == (False, seq), result.reason


def test_a_changed_line_is_named(filled, opened):
    ((size, body),) = rows(filled, "SELECT size, body FROM blocks WHERE first = 301")
    lines = lines_in(size, body)
    lines[40] = lines[40].replace(b"0.01", b"0.99")
    raw = b"[\n" + b",\n".join(lines) + b"\n]"
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("UPDATE blocks SET size = ?, body = ? WHERE first = 301", (len(raw), raw))
        connection.commit()
    with opened(filled, create=False) as ledger:
        result = ledger.verify()
    assert result.bad_seq == 301 + 3 * 40
    assert "line 41 of the block from event 301 was changed" in result.reason


def test_a_cut_end_is_found_with_the_head(filled, opened):
    with opened(filled, create=False) as ledger:
        head = ledger.head()
    change(
        filled, "DELETE FROM blocks WHERE first = 901", "UPDATE runs SET last_seq = 900", "UPDATE counted SET seq = 900"
    )
    with opened(filled, create=False) as ledger:
        assert ledger.verify().ok
        assert ledger.verify(head.digest).bad_seq == 901


def test_a_reader_of_a_damaged_block_names_it(filled, opened):
    change(filled, "UPDATE blocks SET body = x'00' WHERE first = 301")
    with opened(filled, create=False) as ledger, pytest.raises(LedgerError, match="the block from event 301.*verify"):
        list(ledger.read(Query()))


def test_a_query_for_a_subject_reads_its_blocks_only(filled, opened):
    change(filled, "UPDATE blocks SET body = x'00' WHERE first = 301")
    with opened(filled, create=False) as ledger:
        entries = list(ledger.read(Query(subject_id="row-0250")))
    assert [entry.event.type for entry in entries] == ["subject.read", "eval.started", "eval.completed"]
    assert [entry.seq for entry in entries] == [751, 752, 753]


def columns_of(columns):
    """Return the columns as rows with the names and origins in place of their numbers."""
    names = ["seqs", "times", "flags", "scores", "confidences", "usd", "msat"]
    numbers = [list(getattr(columns, name)) for name in names]
    origins = [columns.origins[code] for code in columns.codes]
    rows = [*zip(columns.ids, origins, *numbers, strict=True)]
    return [repr(row) for row in rows], columns.exact  # NaN is a raw score that the proxies held back


@pytest.mark.parametrize("run_id", [None, "R1", "R2", "R9"])
def test_columns_from_lines_are_the_columns_of_the_events(path, opened, make_subject, make_event, run_id):
    about = {"subject_kind": "row", "subject_id": "f", "judge": "metrics"}
    events = [
        make_event("run.started", {}),
        *subjects(make_subject, *range(30)),
        *subjects(make_subject, *range(20, 40), run_id="R2"),
        make_event("eval.failed", {"eval_id": "F", **about}),
        *subjects(make_subject, 50, signals={"escalated": True}),
        *subjects(make_subject, 51, judge_cost_usd="0.123456789012345"),
        *subjects(make_subject, 52, score=None, raw=None),
        *subjects(make_subject, 53, score=None),
        *subjects(make_subject, 54, score=7),
        *subjects(make_subject, 55, signals={"metrics": {"m": 1.0}, "rollouts": [1.0]}, score=1),
        *subjects(make_subject, 56, signals={"metrics": {"m": 1.0}, "flags_negative": ["explicit_thumbs_down"]}),
        *make_subject(57)[1:],
    ]
    with opened(path) as ledger:
        ledger.append(events)
        expected = VerdictColumns().add(ledger.read(Query(run_id, ("eval.completed", "eval.failed"))))
        assert columns_of(ledger.verdict_columns(run_id)) == columns_of(expected)
        assert len(expected.codes) == {None: 57, "R1": 37, "R2": 20, "R9": 0}[run_id]


@pytest.mark.parametrize("run_id", [None, "R1", "R9"])
@pytest.mark.parametrize("types", [("subject.read",), ("subject.read", "llm.call_completed", "record.failed")])
def test_activity_from_lines_is_the_activity_of_the_events(path, opened, make_subject, make_event, run_id, types):
    with opened(path) as ledger:
        ledger.append([*subjects(make_subject, *range(120)), *subjects(make_subject, 7, run_id="R2")])
        ledger.append([make_event("llm.call_completed", {"model": "m"}, turn_id="t"), make_event("subject.read", {})])
        expected = ActivityColumns().add(ledger.read(Query(run_id, types)))
        columns = ledger.activity_columns(run_id, types)
    for name in ("seqs", "content_hashes", "ids"):
        assert list(getattr(columns, name)) == list(getattr(expected, name)), name
    assert [columns.origins[code] for code in columns.codes] == [expected.origins[code] for code in expected.codes]


@pytest.mark.parametrize("digest", ["ab", "A1" * 32, "0x" + "1f" * 31, "1_2" * 21, " " * 8 + "ab" * 28])
def test_activity_of_another_digest_is_that_of_the_event(path, opened, make_subject, digest):
    events = subjects(make_subject, *range(120))
    events[3] = attrs.evolve(events[3], payload={**events[3].payload, "digest": digest})
    with opened(path) as ledger:
        ledger.append(events)
        expected = ActivityColumns().add(ledger.read(Query(types=("subject.read",))))
        assert ledger.activity_columns(None, ("subject.read",)).content_hashes == expected.content_hashes
        assert ledger.verify().ok


def test_open_judgments_are_the_started_ones_without_an_end(path, opened, make_subject, make_event):
    with opened(path) as ledger:
        ledger.append(subjects(make_subject, *range(3)))
        for number, run_id in enumerate(("R1", "R1", "R2")):
            ledger.append([make_event("eval.started", {"eval_id": f"O{number}"}, run_id=run_id)])
        ledger.append([make_event("eval.failed", {"eval_id": "O0"})])
        assert [entry.seq for entry in ledger.open_judgments()] == [11, 12]
        assert [entry.event.payload["eval_id"] for entry in ledger.open_judgments("R2")] == ["O2"]


def test_open_judgments_of_compressed_blocks_end_in_later_blocks(path, opened, make_event):
    started = [make_event("eval.started", {"eval_id": f"O{number}"}, subject_id=str(number)) for number in range(150)]
    ends = [make_event("eval.completed", {"eval_id": f"O{number}"}) for number in range(0, 150, 2)]
    with opened(path) as ledger:
        ledger.append([*started[:140], *ends[:20]])
        ledger.append([*started[140:], *ends[20:], *[make_event("run.paused", {})] * 60])
        entries = ledger.open_judgments()
        assert ledger.verify().ok
    assert [entry.event for entry in entries] == started[1::2]


def test_the_digest_of_the_last_event_of_a_line_is_that_of_the_line(path, opened, make_subject, make_event):
    with opened(path) as ledger:
        heads = [ledger.append(subjects(make_subject, 1, 2)), ledger.append([make_event("run.completed", {})])]
        assert [ledger.digest_of(head.seq) for head in heads] == [head.digest for head in heads]
        assert ledger.verify(ledger.digest_of(3)).ok
        assert [ledger.digest_of(seq) for seq in (0, 2, 99)] == [None, None, None]
        assert [entry.digest for entry in ledger.read(Query(after=5))] == ["", heads[-1].digest]


def test_names_of_columns_are_in_the_order_of_the_lines(path, opened, make_subject):
    """Another process makes the same columns, although it has another order of sets."""
    events = [
        attrs.evolve(event, session_id=f"session {number % 40}")
        for number in range(150)
        for event in make_subject(number)
    ]
    with opened(path) as ledger:
        ledger.append(events)
        assert ledger.verify().ok
    ((columns,),) = rows(path, "SELECT columns FROM blocks")
    names = orjson.loads(StoredColumns.of(columns).names())
    assert names == list(dict.fromkeys([*(f"row-{n:04}" for n in range(150)), *(f"session {n}" for n in range(40))]))
