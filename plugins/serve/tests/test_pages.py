"""Requests of the dashboard other than the commands' documents, and the delivery of its files."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from dicast_serve.application import application
from dicast_serve.command import serve
from dicast_serve.guard import Tokens
from dicast_serve.next_run import run_command
from dicast_serve.pages import pages

from .serving import Server

READING, LABELLING = "reading-token-0123456789", "labelling-token-0123456789"
HOST = "127.0.0.1:8600"


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def browser(ledger):
    """Asks as a browser does: with a cookie, and no other sign of the token."""
    app = application([ledger], Tokens(READING, LABELLING), [HOST], "dicast_8600", pages())
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as asking:
        yield asking


def test_agreement_by_day_sums_to_agreement(client):
    for window in ("0", "0.15", "1"):
        total = client.get(f"/analytics/agreement?judge=a&judge=b&window={window}").json()
        days = client.get(f"/analytics/agreement/days?judge=a&judge=b&window={window}").json()
        assert (days["n"], days["within"], days["window"]) == (total["n"], total["within"], total["window"])
        assert sum(first["n"] for first in days["data"]) == total["n"]
        assert all(first["day"] < second["day"] for first, second in pairwise(days["data"]))


def test_agreement_by_day_moves_with_a_persons_verdict(client):
    client.post("/labels", json={"subject_id": "s/1", "score": 0.5}, headers=bearer(LABELLING))
    distance = abs(client.get("/analytics/turns/s/1").json()["data"]["evaluations"][0]["score"] - 0.5)
    for window in (distance - 0.01, distance + 0.01):
        days = client.get(f"/analytics/agreement/days?judge=a&judge=human&window={window:.2f}").json()
        assert (days["n"], days["within"]) == (1, float(window > distance))


def test_agreement_by_day_of_three_judges_is_that_of_their_spread(client):
    client.post("/labels", json={"subject_id": "s/1", "score": 0}, headers=bearer(LABELLING))
    query = "judge=a&judge=b&judge=human"
    total = client.get(f"/analytics/agreement?{query}").json()
    days = client.get(f"/analytics/agreement/days?{query}").json()
    assert (days["n"], days["within"]) == (total["n"], total["within"])


def test_judges_are_counted(client):
    client.post("/labels", json={"subject_id": "s/1", "score": 0.5}, headers=bearer(LABELLING))
    counts = {(row["judge"], row["judge_kind"]): row["count"] for row in client.get("/judges").json()["data"]}
    assert counts == {("a", "heuristic"): 4, ("b", "heuristic"): 4, ("human", "human"): 1}


def test_a_subject_has_the_conversation_that_it_is_part_of(client):
    turns = client.get("/analytics/turns/s/2").json()["data"]["conversation"]
    assert [turn["id"] for turn in turns] == ["s/1", "s/2"]
    assert [(message["role"], message["text"]) for message in turns[1]["messages"]] == [
        ("user", "Where is Canberra?"),
        ("assistant", "In Australia, 2."),
    ]


def test_a_token_says_what_it_allows(client):
    assert client.get("/session").json() == {"may_label": False, "run_command": None}
    assert client.get("/session", headers=bearer(LABELLING)).json() == {"may_label": True, "run_command": None}


def test_the_address_with_the_token_becomes_a_cookie_that_no_script_reads(browser):
    welcome = browser.get(f"/?token={READING}", follow_redirects=False)
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    assert {"httponly", "samesite=strict"} <= {
        part.strip().lower() for part in welcome.headers["set-cookie"].split(";")
    }
    page = browser.get("/")
    assert page.status_code == 200
    assert READING not in page.text
    assert browser.get("/session").json() == {"may_label": False, "run_command": None}
    wrong = browser.get(
        "/?token=another", follow_redirects=False
    )  # the cookie is right: the wrong token leaves the address
    assert (wrong.status_code, wrong.headers["location"], "set-cookie" in wrong.headers) == (303, "/", False)


@pytest.mark.parametrize("path", ["/", "/dashboard.js", "/dashboard.css"])
def test_the_page_needs_the_token_and_runs_nothing_but_its_own_script(browser, path):
    assert browser.get(path).status_code == 401
    browser.get(f"/?token={READING}")
    answer = browser.get(path)
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    for tag in (answer.headers["etag"], f"W/{answer.headers['etag']}", "*"):
        assert browser.get(path, headers={"if-none-match": tag}).status_code == 304


def test_without_a_token_a_browser_reads_what_to_do_and_a_program_reads_json(browser):
    response = browser.get("/", headers={"accept": "text/html"})
    assert (response.status_code, response.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "dicast serve" in response.text
    assert "needs its token" in response.text
    assert "/?token=TOKEN#/runs" in response.text
    assert browser.get("/").json()["error"]["message"].startswith("the request has no token; send the header")
    wrong = browser.get("/?token=another", headers={"accept": "text/html"})
    assert (wrong.status_code, "has another token than your browser" in wrong.text) == (401, True)
    message = browser.get("/runs", headers=bearer("another")).json()["error"]["message"]
    assert message.startswith("the token is not this server's; send the header")


def test_once_json_has_the_new_answers_too(ledger):
    for path in ("/judges", "/analytics/agreement/days?judge=a&judge=b"):
        done = CliRunner().invoke(serve, ["--ledger", str(ledger), "--once-json", path], catch_exceptions=False)
        assert json.loads(done.stdout)["data"]


def test_turns_that_a_watch_has_not_judged_yet_are_counted(tmp_path):
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M")
    turns = [
        {"type": "turn.completed", "time": f"{now}:0{number}.000Z", "session_id": "s", "turn_id": f"s/{number}"}
        for number in (1, 2)
    ]
    lines = [json.dumps({**turn, "payload": {"stop_reason": "end_turn"}}) + "\n" for turn in turns]
    (tmp_path / "trace.jsonl").write_text("".join(lines))
    (tmp_path / "watch.yaml").write_text(
        f"source: {{traces/events: {{path: {tmp_path}/trace.jsonl, subjects: [turn]}}}}\n"
        f"judges: [heuristic/turn]\nledger: {{ledger/sqlite: {{path: {tmp_path}/ledger.db}}}}\n"
    )
    dicast = Path(sys.executable).with_name("dicast")
    watch = [dicast, "watch", "watch.yaml", "--once"]
    subprocess.run(watch, cwd=tmp_path, check=False, capture_output=True)

    def waiting():
        done = CliRunner().invoke(serve, ["--ledger", str(tmp_path / "ledger.db"), "--once-json", "/analytics/backlog"])
        return json.loads(done.stdout)["waiting"]

    assert waiting() == {"turns": 2, "oldest": f"{now}:01.000Z", "more": False}
    end_event = {
        "type": "session.ended",
        "time": f"{now}:09.000Z",
        "session_id": "s",
        "payload": {"disposition": "completed"},
    }
    with (tmp_path / "trace.jsonl").open("a") as file:
        file.write(json.dumps(end_event) + "\n")
    subprocess.run(watch, cwd=tmp_path, check=False, capture_output=True)
    assert waiting() == {"turns": 0, "oldest": None, "more": False}


def test_requests_on_one_connection_are_answered_at_once(ledger):
    server = Server(ledger.parent)
    connection, durations = HTTPConnection("127.0.0.1", server.port, timeout=100), []
    try:
        for _ in range(120):
            began = time.monotonic()
            connection.request("GET", "/session", headers=bearer(READING))
            assert connection.getresponse().read()
            durations.append(time.monotonic() - began)
    finally:
        connection.close()
        server.end()
    assert min(durations[60:]) < 0.03, (
        "the body waits until the client has said that it has the head, which it does after 40 ms"
    )


PIPELINE = "name: shop\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\n"


@pytest.mark.parametrize(
    ("files", "judges", "command"),
    [
        ({}, None, "dicast run pipeline.yaml"),
        ({"other.yaml": "a: 1\n", "shop floor.yaml": PIPELINE}, None, "dicast run 'shop floor.yaml'"),
        ({"shop.yaml": PIPELINE}, Path("judges.yaml"), "dicast run judges.yaml"),
        ({"bytes.yaml": "\udcff", "shop.yml": PIPELINE}, None, "dicast run shop.yml"),
    ],
)
def test_an_empty_ledger_names_the_pipeline_file_of_the_folder(tmp_path, files, judges, command):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert run_command(tmp_path, judges) == command
