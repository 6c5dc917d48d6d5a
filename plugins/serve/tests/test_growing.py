"""Runs that grow while they are read: their tables, searches, progress, and a ledger that no run has written yet."""

from __future__ import annotations

from contextlib import contextmanager

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import dicast
from dicast import Judgment, Query, Subject
from dicast.reading import reader
from dicast_serve.application import application
from dicast_serve.guard import Tokens
from dicast_serve.progress import progress
from dicast_serve.reading import ServedLedger
from dicast_serve.runs import run, runs
from dicast_serve.tables import Tables

HOST, READING = "127.0.0.1:8600", "reading-token-0123456789"


@attrs.frozen
class Paid:
    """A judge that costs a cent and fails on one row."""

    name = "paid"

    def estimate(self, subject):
        return dicast.Cost("0.01")

    def judge(self, subject, children):
        if subject.id == "r3":
            raise ValueError("the endpoint refused")
        return Judgment(int(subject.id[1:]) / 10, 1.0, "llm", cost=dicast.Cost("0.01"))


@attrs.frozen
class Even:
    """A free judge."""

    name = "even"

    def judge(self, subject, children):
        return Judgment(float(int(subject.id[1:]) % 2 == 0), 1.0)


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """The events of a run over eight rows by two judges, in their order."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    rows = [Subject("row", f"r{number}", f"Question {number}", f"Answer {number}") for number in range(8)]
    ledger = {"ledger/sqlite": {"path": str(path)}}
    dicast.run({"name": "nightly", "judges": [Paid(), Even()], "ledger": ledger}, subjects=rows)
    return dicast.read_ledger(path, lambda live: [entry.event for entry in live.read(Query())])


class Counting:
    """A ledger that counts the rows that are read."""

    def __init__(self, ledger):
        self._ledger, self.rows = ledger, 0
        self.tables = Tables()

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    def read(self, query):
        for entry in self._ledger.read(query):
            self.rows += 1
            yield entry


def immediately(coroutine):
    """Return the result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        return result.value
    raise AssertionError("the coroutine waits")


@contextmanager
def new_ledger(path):
    """Open a new ledger, which the test writes."""
    opening = dicast.component("ledger", {"ledger/sqlite": {"path": str(path)}}).open(None, create=True)
    live = immediately(opening.__aenter__())
    try:
        yield Counting(live)
    finally:
        immediately(opening.__aexit__(None, None, None))


def comparable(document):
    return {name: value for name, value in document.items() if name not in ("reading", "pace")}


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.sets(st.integers(3, 60), max_size=6), is_again=st.booleans())
def test_a_table_that_grew_is_the_table_of_the_whole_run(tmp_path_factory, events, cuts, is_again):
    run_id = events[0].run_id
    mine = [event for event in events if event.run_id == run_id]
    last = [attrs.evolve(event, id=f"{event.id}-2") for event in mine if event.type == "eval.completed"][:3]
    mine += last if is_again else []  # three subjects are judged again
    edges = [0, *sorted(cut for cut in cuts if cut < len(mine)), len(mine)]
    edges[1] = max(edges[1], 3)
    with new_ledger(tmp_path_factory.mktemp("growing") / "ledger.db") as ledger:
        for start, end in zip(edges, edges[1:], strict=False):
            ledger.append(mine[start:end])
            table = ledger.tables.get(ledger, run_id, None)
            fresh_table = reader("run_table")(ledger, run_id=run_id)
            assert comparable(table.document) == comparable(fresh_table)
            for word in ("question", "answer", "refused"):
                grown = table.texts(ledger).rows_with_words([word])
                assert grown == Tables().get(ledger, run_id, None).texts(ledger).rows_with_words([word])


def test_only_new_events_of_a_growing_run_are_read(tmp_path, events):
    run_id = events[0].run_id
    with new_ledger(tmp_path / "ledger.db") as ledger:
        ledger.append(events[:-8])
        table = ledger.tables.get(ledger, run_id, None)
        table.texts(ledger)
        progress(ledger, {"run_id": run_id})
        read_before = ledger.rows
        ledger.append(events[-8:])
        ledger.tables.get(ledger, run_id, None).texts(ledger)
        assert 0 < ledger.rows - read_before <= 2 * 8 + 2  # each new event twice at most, and the start of the run


def test_a_table_of_another_ledger_at_the_same_place_is_read_anew(tmp_path, events):
    run_id, tables = events[0].run_id, Tables()
    with new_ledger(tmp_path / "one.db") as one, new_ledger(tmp_path / "two.db") as two:
        one.append(events)
        assert len(tables.get(one, run_id, None).ids) == 8
        starts = [event for event in events if event.type == "run.started"]
        others = [event for event in events if event.subject_id in ("r5", "r6")]
        two.append([*starts, *others])
        two.append([attrs.evolve(event, id=f"{event.id}-2") for event in others for _ in range(1)])
        assert list(tables.get(two, run_id, None).ids) == ["r5", "r6"]


def test_progress_has_the_mean_and_the_cost_so_far(tmp_path, events):
    run_id = events[0].run_id
    with new_ledger(tmp_path / "ledger.db") as ledger:
        until = next(
            number
            for number, event in enumerate(events)
            if event.subject_id == "r4" and event.type in ("eval.completed", "eval.failed")
        )
        ledger.append(events[:until])
        document = progress(ledger, {"run_id": run_id})
        assert (document["judged"], document["state"], document["seconds_left"]) == (4, "dead", None)
        assert document["labels"]["paid"] == {"mean": pytest.approx(0.1), "scored": 3}
        assert document["outcomes"]["none"] == 1
        spent = [event.payload["amount"] for event in events[:until] if event.type == "spend.settled"]
        assert document["cost"]["usd"] == str(sum(map(dicast.Cost, spent), dicast.Cost("0")).amount)


def test_each_answer_about_a_killed_run_has_its_settled_cost_and_at_most_what_is_not_settled(tmp_path, events):
    run_id = events[0].run_id
    settlements = [number for number, event in enumerate(events) if event.type == "spend.settled"]
    start_events = events[: settlements[2] + 1]
    spends = {event.payload["reservation_id"]: event for event in start_events if event.type == "spend.reserved"}
    closed_ids = {event.payload["reservation_id"] for event in start_events if event.type == "spend.settled"}
    open_ = {id_: event for id_, event in spends.items() if id_ not in closed_ids}
    amounts = {"usd": f"{len(open_) * 0.01:.2f}", "msat": "0"}
    listing = {"name": None, "without": None, "without_kind": None, "failing": False, "cursor": None, "limit": 9}
    with new_ledger(tmp_path / "ledger.db") as ledger:
        ledger.append(start_events)
        reservation = next(iter(open_.values()))
        payload = {key: reservation.payload[key] for key in ("reservation_id", "amount", "unit")}
        loss = [attrs.evolve(reservation, id=f"{reservation.id}-lost", type="spend.lost", payload=payload)]
        for events_after in ([], loss):  # open reservations; then one of them lost
            ledger.append(events_after)
            (row,) = runs(ledger, listing)["data"]
            answers = [row, run(ledger, {"run_id": run_id})["run"], progress(ledger, {"run_id": run_id})]
            assert [answer["cost"] for answer in answers] == [{"usd": "0.03", "msat": "0"}] * 3
            assert [answer["unsettled"] for answer in answers] == [amounts] * 3
            costs = reader("cost")(ledger, include_eval=True)
            assert (costs["total_usd"], costs["unsettled_usd"]) == ("0.03", amounts["usd"])


def test_progress_of_a_dead_run_has_the_command_that_resumes_it_with_its_options(tmp_path, events):
    payload = {**events[0].payload, "file": "judged.yaml", "set": ["budget.run=2 usd"], "only": ["paid"]}
    with new_ledger(tmp_path / "ledger.db") as ledger:
        ledger.append([attrs.evolve(events[0], payload=payload), *events[1:4]])
        command = progress(ledger, {"run_id": events[0].run_id})["resume_command"]
    assert command.startswith("dicast run ")
    options = f"--resume {events[0].run_id} --ledger {tmp_path / 'ledger.db'}"
    assert command.endswith(f"judged.yaml --set 'budget.run=2 usd' --only paid {options}")


@pytest.fixture
def client(tmp_path):
    """Asks the application over a ledger that no run has written yet."""
    app = application([tmp_path / "later" / "ledger.db"], Tokens(READING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as asking:
        asking.headers["authorization"] = f"Bearer {READING}"
        yield asking


def test_a_ledger_without_a_file_is_empty_until_a_run_writes_it(client, tmp_path):
    assert client.get("/runs").json() == {"data": [], "next_cursor": None}
    assert client.get("/judges").json() == {"data": []}
    assert client.get("/ledgers").json() == {"data": [{"name": "ledger", "head": None}]}
    assert not (tmp_path / "later").exists()
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "later" / "ledger.db")}}
    dicast.run({"name": "first", "judges": [Even()], "ledger": ledger}, subjects=[Subject("row", "r1", "q", "a")])
    assert [run["name"] for run in client.get("/runs").json()["data"]] == ["first"]
    (tmp_path / "later" / "ledger.db").rename(tmp_path / "moved.db")
    assert client.get("/runs").status_code == 503  # a ledger that is gone is not an empty ledger


def test_progress_of_a_run_that_ended_has_no_rate(tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "output": "x"}\n{"id": "b", "output": "y"}\n')
    source = {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}}
    dicast.run({"name": "rows", "source": source, "metrics": ["proxy/format"], "ledger": ledger})
    document = ServedLedger(tmp_path / "ledger.db").read(lambda live: progress(live, {"run_id": "last"}))
    assert (document["judged"], document["expected"], document["state"]) == (2, 2, "completed")
    assert (document["per_second"], document["seconds_left"]) == (None, None)
