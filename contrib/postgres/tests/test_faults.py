"""Many writers, killed writers, a killed server and lost answers: caps are exact, and no event is lost or written twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from attrs import evolve

from dicast import Claim, Event, JudgedRow, LedgerError, Lost, Query, Refusal, Secret
from dicast.testing.ledger_events import make_cap
from dicast.testing.pipeline import typical_records
from dicast.toolkit.ids import stamp
from dicast_postgres import Ledger

pytestmark = pytest.mark.slow

SPENDER = Path(__file__).with_name("spender.py")
SECONDS = 120


def spender(server, schema, number, limit, *, amount="0.01", settles="settle"):
    command = [sys.executable, SPENDER, server.url, schema, f"run-{number}", limit, amount, str(number), settles]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def event(type_, payload, run="A"):
    id_, time_ = stamp()
    return Event(id_, type_, time_, run, payload)


def reservation(amount, lease_until=None, run="A"):
    payload = {
        "reservation_id": stamp()[0],
        "scopes": ["day:1"],
        "amount": amount,
        "unit": "usd",
        "lease_until": lease_until,
    }
    return event("spend.reserved", payload, run)


def sums(connect):
    return connect.execute(
        "SELECT coalesce(sum(spent), 0), coalesce(sum(held), 0) FROM accounts WHERE scope LIKE 'day:%'"
    ).fetchone()


def blocks_in(connect):
    return connect.execute("SELECT count(*) FROM blocks").fetchone()[0]


def test_sixteen_writers_spend_a_cap_to_the_cent(server, component, open_ledger, connect):
    limit = "4.00"
    with open_ledger(component) as ledger:
        processes = [spender(server, component.schema, number, limit, settles="keep") for number in range(16)]
        outputs = [process.communicate(timeout=SECONDS)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * 16
        assert ledger.verify().ok
    granted = [json.loads(line) for output in outputs for line in output.splitlines()]
    assert sum(Decimal(row["amount"]) for row in granted) == Decimal(limit)
    assert sum(sums(connect)) == Decimal(limit)
    assert sum(bool(output) for output in outputs) > 8, "one writer had nearly the whole budget"


def test_killed_writers_never_exceed_the_cap_and_lose_no_answer(server, component, open_ledger, connect):
    rng, limit, answers = random.Random(7), "3.00", []
    with open_ledger(component) as ledger:
        for round_ in range(4):
            before = blocks_in(connect)
            processes = [spender(server, component.schema, 10 * round_ + number, limit) for number in range(4)]
            least, deadline = before + rng.randint(10, 60), time.monotonic() + SECONDS
            while blocks_in(connect) < least and time.monotonic() < deadline:
                time.sleep(0.01)
                assert sum(sums(connect)) <= Decimal(limit)
            for process in processes:
                process.kill()
                # the last line may be cut off
                answers += [json.loads(line) for line in process.communicate()[0].split("\n")[:-1]]
        connect.execute("UPDATE leases SET until = now() - interval '1 second'")
        ledger.reserve([Claim(reservation("0"), [])], Lost(*stamp()))
        verification = ledger.verify()
        assert verification.ok, verification
        ids = Counter((entry.event.type, entry.event.payload.get("reservation_id")) for entry in ledger.read(Query()))
        assert list(ledger.reservations(None))[:-1] == [], "the reservations of killed writers ended with their leases"
    assert set(ids.values()) == {1}
    assert len(answers) > 20
    for answer in answers:
        (key, *_) = answer
        type_ = "spend.reserved" if key == "reserved" else key
        assert ids[type_, answer[key]] == 1
    spent, held = sums(connect)
    assert held == 0
    assert spent <= Decimal(limit)


def test_writers_that_start_at_once_make_the_tables_once(component, open_ledger):
    faults, start = [], threading.Barrier(8)

    def run(number):
        try:
            start.wait(SECONDS)
            with open_ledger(component) as ledger:
                ledger.append([event("note", {"n": number}, f"run-{number}")])
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert faults == []
    with open_ledger(component) as ledger:
        assert sorted(entry.event.payload["n"] for entry in ledger.read(Query())) == list(range(8))


def test_the_escrow_of_a_dead_writer_is_there_for_others(component, open_ledger, connect):
    cap = make_cap("100", scope="day:1")
    with open_ledger(component) as first, open_ledger(component) as second:
        first.take_lease("A", "first", 600, lambda lease: False)
        assert first.reserve([Claim(reservation("1"), [cap])], Lost(*stamp())) == [None]
        first.reserve([Claim(reservation("0.01"), [cap])], Lost(*stamp()))
        ((escrow,),) = connect.execute("SELECT escrow FROM accounts WHERE escrow > 0").fetchall()
        assert 0 < escrow <= 4
        rest = Claim(reservation("98.99", run="B"), [cap])
        assert second.reserve([rest], Lost(*stamp())) == [None], "the escrow is no spending"
        assert second.reserve([Claim(reservation("0.01", run="B"), [cap])], Lost(*stamp())) == [Refusal(cap, wait=True)]
        assert first.reserve([Claim(reservation("0.01"), [cap])], Lost(*stamp())) == [Refusal(cap, wait=True)]
        assert sums(connect) == (0, 100)


def test_a_smaller_cap_does_not_use_the_escrow_of_a_larger_one(component, open_ledger):
    large, small = make_cap("100", scope="day:1"), make_cap("0.02", scope="day:1")
    with open_ledger(component) as ledger:
        for _ in range(2):
            assert ledger.reserve([Claim(reservation("0.01"), [large])], Lost(*stamp())) == [None]
        assert ledger.reserve([Claim(reservation("0.01"), [small])], Lost(*stamp())) == [Refusal(small, wait=True)]
        assert ledger.reserve([Claim(reservation("0.01"), [small, large])], Lost(*stamp())) == [
            Refusal(small, wait=True)
        ]


@pytest.fixture
def lose_answers(monkeypatch):
    """Return a function after which the next changes are committed, and their answers are lost."""
    execute, left = psycopg.AsyncConnection.execute, [0]

    async def lossy(self, statement, *values, **options):
        cursor = await execute(self, statement, *values, **options)
        if left[0] and any(name in str(statement) for name in ("_blocks(", "reserve_claims", "INTO changes")):
            left[0] -= 1
            await self.close()
            raise psycopg.OperationalError("the connection was lost")
        return cursor

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", lossy)

    def lose(count):
        left[0] = count

    return lose


def test_an_append_whose_answer_is_lost_is_made_once(component, open_ledger, lose_answers):
    with open_ledger(component) as ledger:
        ledger.append([event("run.started", {"n": 0})])
        lose_answers(3)
        head = ledger.append([event("note", {"n": 1}), event("note", {"n": 2})])
        assert head == ledger.head()
        ledger.append([event("note", {"n": 3})])
        assert [entry.event.payload["n"] for entry in ledger.read(Query())] == [0, 1, 2, 3]
        assert ledger.verify().ok


def test_a_reservation_whose_answer_is_lost_is_made_once(component, open_ledger, lose_answers, connect):
    cap = make_cap("0.03", scope="day:1")
    with open_ledger(component) as ledger:
        lose_answers(1)
        claims = [Claim(reservation(amount), [cap]) for amount in ("0.02", "0.02", "0.01")]
        answers = ledger.reserve(claims, Lost(*stamp()), [event("run.started", {})])
        assert answers == [None, Refusal(cap, wait=True), None]
        assert [entry.event.type for entry in ledger.read(Query())] == [
            "run.started",
            "spend.reserved",
            "spend.reserved",
        ]
        assert sums(connect) == (0, Decimal("0.03"))
        assert ledger.verify().ok


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "calls", [("append", "append"), ("append", "reserve"), ("reserve", "append"), ("reserve", "reserve")]
)
def test_events_of_a_change_whose_answer_is_lost_are_appended_once_after_an_error(
    component, open_ledger, lose_answers, connect, calls, count
):
    """The settlement is in the ledger once, however often the server breaks off, and the amount is spent once."""
    cap, claims = make_cap("1", scope="day:1"), []

    def call(ledger, name, events):
        if name == "append":
            return ledger.append(events)
        claims.append(Claim(reservation("0.01"), [cap]))
        return ledger.reserve(claims[-1:], Lost(*stamp()), events)

    first, second = calls
    with open_ledger(evolve(component, timeout=0)) as ledger:
        held = reservation("0.02")
        ledger.reserve([Claim(held, [cap])], Lost(*stamp()), [event("run.started", {})])
        settled = {"reservation_id": held.payload["reservation_id"], "amount": "0.01", "unit": "usd"}
        events = [event("spend.settled", settled), event("note", {"n": 1})]
        lose_answers(count)
        for _ in range(count):
            with pytest.raises(LedgerError, match="the connection was lost"):
                call(ledger, first, events)
        call(ledger, second, [*events, event("note", {"n": 2})])
        call(ledger, second, events)
        rows = [entry.event for entry in ledger.read(Query())]
        assert [row.type for row in rows if row.type != "spend.reserved"] == [
            "run.started",
            "spend.settled",
            "note",
            "note",
        ]
        assert len({row.id for row in rows}) == len(rows)
        assert ledger.verify().ok
        is_granted = {claim.event.id for claim in claims} & {row.id for row in rows}
        assert sums(connect) == (Decimal("0.01"), len(is_granted) * Decimal("0.01"))


def test_judged_rows_of_a_change_whose_answer_is_lost_are_appended_once(component, open_ledger, lose_answers):
    records = list(typical_records())
    ids = [id_ for record in records for id_ in (record.ids if isinstance(record, JudgedRow) else [record.id])]
    with open_ledger(evolve(component, timeout=0)) as ledger:
        lose_answers(1)
        with pytest.raises(LedgerError, match="the connection was lost"):
            ledger.append_judged(records[:3])
        ledger.append_judged(records)
        assert [entry.event.id for entry in ledger.read(Query())] == ids
        assert ledger.verify().ok


def test_a_change_is_made_once_if_its_statement_reaches_the_server_late(component, open_ledger, connect, monkeypatch):
    """The statement of a broken connection is executed after the writer has asked whether it was made."""
    execute, late = psycopg.AsyncConnection.execute, []

    async def hold_back(self, statement, *values, **options):
        if "_blocks(" in str(statement) and not late:
            late.append((statement, *values))
            raise psycopg.OperationalError("the connection was lost")
        cursor = await execute(self, statement, *values, **options)
        if "FROM changes" in str(statement):
            late.append(connect.execute(*late[0]).fetchone())
        return cursor

    events = [event("note", {"n": 1})]
    with open_ledger(evolve(component, timeout=0)) as ledger:
        ledger.append([event("run.started", {})])
        monkeypatch.setattr(psycopg.AsyncConnection, "execute", hold_back)
        with pytest.raises(LedgerError, match="the connection was lost"):
            ledger.append(events)
        ledger.append([*events, event("note", {"n": 2})])
        assert late[1:] == [(0, None)]
        assert [entry.event.payload.get("n") for entry in ledger.read(Query())] == [None, 1, 2]
        assert ledger.verify().ok


READINGS = {
    "reservations": lambda ledger: ledger.reservations(None),
    "lease_of": lambda ledger: ledger.lease_of("A"),
    "head": lambda ledger: ledger.head(),
    "digest_of": lambda ledger: ledger.digest_of(1),
    "read": lambda ledger: list(ledger.read(Query())),
    "newest": lambda ledger: list(ledger.read(Query(newest_first=True, limit=2))),
    "read_judged": lambda ledger: list(ledger.read_judged("A")),
    "open_judgments": lambda ledger: ledger.open_judgments("A"),
    "spent": lambda ledger: list(ledger.spent("A").times),
    "verify": lambda ledger: ledger.verify(),
}


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_is_repeated_after_a_lost_connection(component, open_ledger, monkeypatch, name):
    read, execute, left = READINGS[name], psycopg.Connection.execute, [0]

    def lossy(self, *arguments, **options):
        left[0] -= 1
        if not left[0]:
            self.close()
            raise psycopg.OperationalError("the connection was lost")
        return execute(self, *arguments, **options)

    with open_ledger(component) as ledger:
        ledger.take_lease("A", "first", 600, lambda lease: False)
        ledger.reserve([Claim(reservation("1"), []) for _ in range(3)], Lost(*stamp()), [event("run.started", {})])
        expected, statement = read(ledger), 0
        monkeypatch.setattr(psycopg.Connection, "execute", lossy)
        while left[0] <= 0:  # until all statements of the reading were lost once
            statement += 1
            left[0] = statement
            assert read(ledger) == expected
        assert statement > 2


@pytest.mark.parametrize("newest_first", [False, True])
def test_rows_are_read_once_through_a_kill_of_the_server(own_server, open_ledger, newest_first):
    count, numbers = 130, []
    with open_ledger(Ledger(Secret(own_server.url), timeout=300)) as ledger:
        for number in range(count):
            ledger.append([event("note", {"n": number})])
        for entry in ledger.read(Query(newest_first=newest_first)):
            numbers.append(entry.event.payload["n"])
            if len(numbers) in (1, 70):
                own_server.kill()
                own_server.start()
                ledger.append([event("note", {"n": count})])
    assert numbers == sorted(range(count), reverse=newest_first)


def test_a_writer_goes_on_after_the_server_was_killed(own_server, open_ledger):
    component, numbers = Ledger(Secret(own_server.url), timeout=300), range(400)
    is_done = threading.Event()

    def crash():
        for _ in range(2):
            time.sleep(0.4)
            own_server.kill()
            time.sleep(0.3)
            own_server.start()
        is_done.set()

    with open_ledger(component) as ledger:
        crasher = threading.Thread(target=crash)
        crasher.start()
        count = 0
        while not is_done.is_set() or count < len(numbers):
            ledger.append([event("note", {"n": count})])
            count += 1
        crasher.join()
        assert [entry.event.payload["n"] for entry in ledger.read(Query())] == list(range(count))
        verification = ledger.verify()
    assert (verification.ok, verification.events) == (True, count)


def test_a_reader_of_a_run_waits_for_a_server_that_was_killed(own_server, open_ledger):
    with open_ledger(Ledger(Secret(own_server.url), timeout=300)) as ledger:
        ledger.append([event("run.paused", {"n": 1})])
        own_server.kill()
        restart = threading.Timer(1, own_server.start)
        restart.start()
        assert ledger.head().seq == 1
        restart.join()
        own_server.kill()
        restart = threading.Timer(1, own_server.start)
        restart.start()
        assert [entry.event.payload for entry in ledger.read(Query())] == [{"n": 1}]
        restart.join()


def test_a_server_that_stays_away_is_an_error_by_name(own_server, open_ledger):
    component = Ledger(Secret(own_server.url), timeout=3)
    with open_ledger(component) as ledger:
        ledger.append([event("note", {"n": 0})])
        own_server.kill()
        with pytest.raises(LedgerError, match=r"postgresql:///postgres\?host="):
            ledger.append([event("note", {"n": 1})])
        with pytest.raises(LedgerError, match=r"postgresql:///postgres\?host="):
            list(ledger.read(Query()))
        own_server.start()
        ledger.append([event("note", {"n": 2})])
        assert [entry.event.payload["n"] for entry in ledger.read(Query())] == [0, 2]


def dicast(folder, *words):
    command = [sys.executable, "-m", "dicast", *map(str, words), "--json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_rows(server, least):
    deadline = time.monotonic() + SECONDS
    with psycopg.connect(server.url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            has_table = connection.execute("SELECT to_regclass('dicast.blocks') IS NOT NULL").fetchone()[0]
            lines = "SELECT coalesce(sum(lines), 0) FROM dicast.blocks"
            if has_table and connection.execute(lines).fetchone()[0] > least:
                return
            time.sleep(0.02)
    raise AssertionError("the run records nothing")


@pytest.mark.parametrize("seconds", [60, 0.3])
def test_a_run_survives_a_restart_or_is_resumed(own_server, tmp_path, seconds):
    rows = 12_000
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"id": "{n}", "output": "text {n}"}}\n' for n in range(rows)))
    ledger = {"postgres/ledger": {"url": own_server.url, "timeout": seconds}}
    pipeline = {"source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": ["proxy/format"], "ledger": ledger}
    (tmp_path / "p.yaml").write_text(json.dumps(pipeline))
    run = dicast(tmp_path, "run", "p.yaml")
    wait_for_rows(own_server, 2_000)
    own_server.kill()
    if seconds < 1:
        output, errors = run.communicate(timeout=SECONDS)
        assert run.returncode == 4, output + errors
        own_server.start()
        with psycopg.connect(own_server.url) as connection:
            connection.execute("UPDATE dicast.leases SET until = now() - interval '1 second'")
        run = dicast(tmp_path, "run", "p.yaml", "--resume")
    else:
        own_server.start()
    output, errors = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, output + errors
    document = json.loads(output)
    assert (document["subjects"], document["scored"], document["failed"]) == (rows, rows, 0)
    verified = dicast(tmp_path, "ledger", "verify", "--ledger", json.dumps(ledger))
    assert json.loads(verified.communicate()[0])["ok"]
    with psycopg.connect(own_server.url) as connection:
        query = "SELECT count(*), count(DISTINCT subject_id) FROM dicast.verdicts"
        assert connection.execute(query).fetchone() == (rows, rows)


def test_writers_readers_and_an_erasure_do_not_block_one_another_for_good(component, open_ledger):
    """Texts that come while others are erased stay; nobody ends in a deadlock."""
    subjects = {"subject_kind": "row", "sensitivity": "user_controlled"}

    def write(number):
        with open_ledger(component) as ledger:
            for step in range(30):
                content = {"output": f"text {step} of {number}"}
                reading = Event(
                    *stamp()[:1],
                    "subject.read",
                    stamp()[1],
                    f"run-{number}",
                    {"content": content},
                    subject_id=f"s{number}",
                    **subjects,
                )
                ledger.append([reading])

    def read():
        with open_ledger(component) as ledger:
            for _ in range(30):
                list(ledger.read(Query()))

    faults = []

    def run(work, *arguments):
        try:
            work(*arguments)
        except BaseException as error:
            faults.append(error)

    with open_ledger(component) as ledger:
        works = [(write, 0), (write, 1), (read,), (read,)]
        threads = [threading.Thread(target=run, args=work) for work in works]
        for thread in threads:
            thread.start()
        for _ in range(5):
            ledger.erase("s0", None, lambda digests: event("content.erased", {"digests": list(digests)}, ""))
        for thread in threads:
            thread.join(SECONDS)
        assert faults == []
        contents = [entry.event.payload["content"] for entry in ledger.read(Query("run-1"))]
        assert contents == [{"output": f"text {step} of 1"} for step in range(30)]
        assert ledger.verify().ok
