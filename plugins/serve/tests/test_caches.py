"""Caches between answers: the verdicts of a ledger's newest head, and the answers of a round."""

from __future__ import annotations

import json
import shutil

import pytest
from starlette.testclient import TestClient

import dicast
import dicast_serve.columns
from dicast_serve.application import application
from dicast_serve.guard import Tokens

from .conftest import HOST, LABELLING, READING, trace
from .serving import Server

QUALITY = "/analytics/quality?from=2026-01-01&to=2100-01-01&group_by=none"
BOTH = "/analytics/agreement?judge=a&judge=b"


@pytest.fixture
def readings(monkeypatch):
    """Return the readings of a whole ledger's verdicts; the last item is the last result."""
    results = []

    def read_verdicts(ledger, run_id=None):
        columns = dicast.reading.read_verdicts(ledger, run_id)
        if run_id is None:
            results.append(columns)
        return columns

    monkeypatch.setattr(dicast_serve.columns, "read_verdicts", read_verdicts)
    return results


def run(path, name, judges="ab"):
    """Judge the two turns once more."""
    return dicast.run(
        {
            "name": name,
            "source": {"traces/events": {"path": str(trace(path.parent)), "subjects": ["turn"]}},
            "judges": [{"heuristic/turn": {"as": judge}} for judge in judges],
            "ledger": {"ledger/sqlite": {"path": str(path)}},
        }
    )


def count(client, address=QUALITY):
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"][0]["verdict_count"]


def test_answers_at_one_head_are_made_of_verdicts_that_are_read_once(client, ledger, readings):
    assert count(client) == 8
    for address in (f"{QUALITY}&latest=true", BOTH, "/analytics/agreement/days?judge=a&judge=b", "/judges"):
        assert client.get(address).status_code == 200
    assert len(readings) == 1
    run(ledger, "three")
    assert count(client) == 12
    assert client.get(BOTH).json()["n"] == 2
    assert len(readings) == 2


def test_open_judgments_are_read_once_at_one_head(client, ledger, monkeypatch):
    heads = []

    def read_open_judgments(live, run_id=None):
        heads.append(live.head())
        return dicast.reading.read_open_judgments(live, run_id)

    monkeypatch.setattr(dicast_serve.columns, "read_open_judgments", read_open_judgments)
    for _ in range(2):
        for address in (QUALITY, BOTH, "/analytics/backlog", f"{QUALITY}&latest=true"):
            assert client.get(address).status_code == 200
    assert len(heads) == 1
    run(ledger, "three")
    assert client.get("/analytics/backlog").json()["open"] == 0
    assert len(heads) == 2


def test_an_answer_is_the_same_until_the_ledger_grows(client, ledger):
    first = client.get(QUALITY)
    tag = {"if-none-match": first.headers["etag"]}
    assert client.get(QUALITY, headers=tag).status_code == 304
    run(ledger, "three")
    later = client.get(QUALITY, headers=tag)
    assert (later.status_code, later.json()["data"][0]["verdict_count"]) == (200, 12)
    assert later.headers["etag"] != first.headers["etag"]


def test_a_ledger_in_the_place_of_another_is_read_anew(client, ledger, readings, tmp_path):
    assert count(client) == 8
    other = tmp_path / "other" / "ledger.db"
    other.parent.mkdir()
    run(other, "other", "abc")
    for old in ledger.parent.glob("ledger.db*"):
        old.unlink()
    shutil.copy(other, ledger)
    assert count(client) == 6
    assert [row["judge"] for row in client.get("/judges").json()["data"]] == ["a", "b", "c"]
    assert len(readings) == 2


def test_ledgers_are_kept_apart(ledger, readings, tmp_path):
    other = tmp_path / "other.db"
    run(other, "other", "abc")
    app = application([ledger, other], Tokens(READING), [HOST], "dicast")
    with TestClient(app, f"http://{HOST}", headers={"authorization": f"Bearer {READING}"}) as client:
        counts = [count(client, f"{QUALITY}{name}") for name in ("", "&ledger=other", "", "&ledger=other")]
    assert counts == [8, 6, 8, 6]
    assert len(readings) == 2


def test_ledgers_of_one_file_name_are_numbered(ledger, tmp_path):
    other_paths = [
        tmp_path / folder / name for folder, name in (("b", "ledger.db"), ("c", "ledger.db"), ("d", "ledger-2.db"))
    ]
    for path, judges in zip(other_paths, ("a", "ab", "abc"), strict=True):
        path.parent.mkdir()
        run(path, "other", judges)
    app = application([ledger, *other_paths, ledger], Tokens(READING), [HOST], "dicast")
    with TestClient(app, f"http://{HOST}", headers={"authorization": f"Bearer {READING}"}) as client:
        names = [row["name"] for row in client.get("/ledgers").json()["data"]]
        counts = [count(client, f"{QUALITY}&ledger={name}") for name in names]
    assert names == ["ledger", "ledger-2", "ledger-3", "ledger-2-2"]
    assert counts == [8, 2, 4, 6]


def test_people_are_left_out_of_the_figures_and_counted(client):
    label = {"subject_id": "s/1", "subject_kind": "turn", "score": 0}
    headers = {"authorization": f"Bearer {LABELLING}"}
    assert client.post("/labels", json=label, headers=headers).status_code == 201
    everybody, (without_people,) = (
        client.get(f"{QUALITY}{query}").json()["data"] for query in ("", "&without_human=true")
    )
    assert (everybody[0]["verdict_count"], everybody[0]["human_count"]) == (9, 1)
    assert (without_people["verdict_count"], without_people["human_count"]) == (8, 1)
    assert without_people["mean_score"] == pytest.approx(everybody[0]["mean_score"] * 9 / 8, abs=2e-6)


def test_a_round_that_nobody_was_told_of_is_none(client, ledger):
    for name in ("", "r1", "r999999", "\xe4"):
        run(ledger, "more", "a")
        fresh = count(client)
        assert client.get(QUALITY, headers={"dicast-round": name.encode()}).json()["data"][0]["verdict_count"] == fresh


@pytest.mark.slow
def test_all_who_ask_in_a_round_are_given_one_answer(ledger):
    server = Server(ledger.parent)
    try:
        with server.open("/events?brief=true") as stream:
            news = events(stream)
            assert next(news)[0] == "head"
            run(ledger, "three", "abcd")
            received = []
            while not received or received[-1][0] != "round":
                received.append(next(news))
            headers = {"dicast-round": received[-1][1]["name"]}
            first = answer(server, **headers)
            run(ledger, "four")
            assert answer(server, **headers) == first
            assert answer(server) == "20"
            assert 8 <= int(first) <= 16
            seen = [data["seq"] for kind, data in received if kind == "verdict"]
            assert seen == sorted(seen)
    finally:
        server.end()


def events(stream):
    """Each event of a stream: its kind and its data."""
    kind = None
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def answer(server, **headers):
    with server.open(QUALITY, **headers) as response:
        return json.loads(response.read(), parse_int=str)["data"][0]["verdict_count"]


@pytest.mark.slow
@pytest.mark.parametrize(("brief", "event_count"), [("true", 30), ("false", 88)])
def test_of_many_verdicts_the_newest_are_told_to_whoever_wants_it_brief(ledger, brief, event_count):
    run(ledger, "many", [f"j{number:02}" for number in range(40)])
    server = Server(ledger.parent)
    try:
        rows = [row for name in ("one", "two", "many") for row in rows_of(server, name)]
        with server.open(f"/events?after=0&brief={brief}") as stream:
            news = events(stream)
            assert next(news)[0] == "head"
            assert [next(news)[1]["seq"] for _ in range(event_count)] == sorted(rows)[-event_count:]
    finally:
        server.end()


def rows_of(server, name):
    """The rows of the ledger that are verdicts of the run of this name."""
    (listed,) = server.get(f"/runs?name={name}")["data"]
    return [int(row["seq"]) for row in server.get(f"/runs/{listed['run_id']}/rows?limit=1000")["data"]]
