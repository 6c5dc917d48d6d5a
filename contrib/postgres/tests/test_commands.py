"""The commands on a ledger in PostgreSQL: everything that reads a ledger works on it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import psycopg
import pytest
from click.testing import CliRunner

from dicast import LedgerRefused
from dicast_postgres import versions
from dicast_postgres.command import migrate

pytestmark = pytest.mark.slow

PIPELINE = {"source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": ["proxy/format", "diff/match"]}
SESSIONS = [
    {"messages": [{"role": "user", "content": f"Question {n}"}, {"role": "assistant", "content": f"Answer {n}"}]}
    for n in range(12)
]


class Team:
    """A ledger whose place every command takes from $DICAST_LEDGER."""

    def __init__(self, folder, url, schema):
        self.folder, self.url, self.schema = folder, url, schema

    def call(self, *words, code=0):
        command = [sys.executable, "-m", "dicast", *map(str, words)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def json(self, *words, code=0):
        return json.loads(self.call(*words, "--json", code=code))

    def query(self, statement):
        with psycopg.connect(self.url, autocommit=True, options=f"-csearch_path={self.schema}") as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def team(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    team = Team(tmp_path, server.url, server.schema())
    monkeypatch.setenv("DICAST_LEDGER", json.dumps({"postgres/ledger": {"url": team.url, "schema": team.schema}}))
    rows = [{"id": f"r{n}", "output": f"text {n}", "reference": f"text {n - n % 3}"} for n in range(30)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "p.yaml").write_text(json.dumps(PIPELINE))
    return team


def test_a_run_is_shown_listed_reported_compared_and_verified(team):
    first, second = team.json("run", "p.yaml"), team.json("run", "p.yaml")
    assert [run["run_id"] for run in team.json("runs")["runs"]] == [second["run_id"], first["run_id"]]
    assert team.json("show", "last")["score"] == second["score"]
    assert team.json("show", "r7")["subject"]["id"] == "r7"
    assert len(team.json("verdicts", "--run", "last")["verdicts"]) == 30
    assert "metrics" in team.call("compare")
    assert "30 of 30 rows" in team.call("report", "--out", "report.html")
    team.call("baseline", "save", "main")
    assert [item["name"] for item in team.json("baseline", "list")["baselines"]] == ["main"]
    assert "total" in team.call("cost")
    document = team.json("ledger", "verify", "--head", first["ledger"]["head"]["digest"])
    assert (document["ok"], document["first_bad"]) == (True, None)


def test_the_views_have_the_exported_events(team):
    (team.folder / "chats.jsonl").write_text("".join(json.dumps(record) + "\n" for record in SESSIONS))
    (team.folder / "turns.yaml").write_text(
        "source: {traces/messages: {path: chats.jsonl}}\njudges: [heuristic/turn]\n"
    )
    team.call("run", "turns.yaml")
    team.call("run", "p.yaml")
    exported = [json.loads(line) for line in team.call("ledger", "export").splitlines()]
    names = [
        "seq",
        "id",
        "type",
        "time",
        "run_id",
        "session_id",
        "turn_id",
        "subject_kind",
        "subject_id",
        "sensitivity",
    ]
    rows = team.query(f"SELECT {', '.join(names)}, payload FROM events ORDER BY seq")
    assert [dict(zip(names, row, strict=False)) for row in rows] == [
        {name: event[name] for name in names} for event in exported
    ]
    payloads = [json.dumps(event["payload"], separators=(",", ":"), ensure_ascii=False) for event in exported]
    assert [json.dumps(json.loads(row[-1]), separators=(",", ":"), ensure_ascii=False) for row in rows] == payloads
    assert (
        team.query("SELECT count(*) FROM lines, json_array_elements(traces) AS item WHERE json_array_length(item) = 7")[
            0
        ][0]
        > 0
    )
    verdicts = team.json("verdicts")["verdicts"]
    assert sorted(team.query("SELECT subject_id, judge, score FROM verdicts")) == sorted(
        (verdict["subject_id"], verdict["judge"], verdict["score"]) for verdict in verdicts
    )
    assert {kind for (kind,) in team.query("SELECT DISTINCT kind FROM lines")} >= {"0", "1", "2", "4"}


def test_shards_of_a_shared_ledger_are_merged_into_another(team):
    for shard in ("1/2", "2/2"):
        team.call("run", "p.yaml", "--shard", shard)
    whole = team.json("run", "p.yaml", "--ledger", "whole.db")
    place = json.dumps({"postgres/ledger": {"url": team.url, "schema": team.schema}})
    merged = json.dumps({"postgres/ledger": {"url": team.url, "schema": f"{team.schema}merged"}})
    document = team.json("merge", place, "--ledger", merged)
    same = ("subjects", "scored", "failed", "score", "labels", "metrics", "judges", "aggregates")
    assert {key: document[key] for key in same} == {key: whole[key] for key in same}
    assert team.json("ledger", "verify", "--ledger", merged)["ok"]


def test_labels_are_recorded_and_read(team):
    team.call("run", "p.yaml")
    (team.folder / "labels.csv").write_text("subject_id,score,labeller\nr1,1,ann\nr2,0,ann\n")
    team.call("labels", "import", "labels.csv")
    assert "2 subjects" in team.call("agreement")
    assert team.json("ledger", "verify")["ok"]


def test_a_missing_ledger_is_refused_and_not_made(team):
    assert "no ledger" in team.json("runs", code=2)["error"]["message"]
    assert team.query(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{team.schema}'") == [(0,)]


def test_a_server_that_is_not_there_is_named_without_the_password(team):
    place = "postgresql://me:hunter2@127.0.0.1:1/db"
    message = team.json("runs", "--ledger", place, code=2)["error"]["message"]
    assert "postgresql://127.0.0.1:1/db" in message
    assert "hunter2" not in message


def test_a_url_that_cannot_be_read_is_not_quoted(team):
    message = team.json("runs", "--ledger", "postgresql://me:hunter2@h/db?hunter3", code=2)["error"]["message"]
    assert "url cannot be read" in message
    assert "hunter" not in message


def test_another_version_is_refused_by_name(team):
    team.call("run", "p.yaml")
    team.query("UPDATE version SET number = 99 RETURNING number")
    assert "version 99" in team.json("runs", code=2)["error"]["message"]
    assert "upgrade dicast-postgres" in team.json("ledger", "migrate", code=2)["error"]["message"]
    team.query("UPDATE version SET number = 0 RETURNING number")
    assert "dicast ledger migrate" in team.json("run", "p.yaml", code=2)["error"]["message"]
    assert team.query("SELECT number FROM version") == [(0,)]


def test_migrate_makes_the_newest_version_in_one_transaction(team, monkeypatch):
    team.call("run", "p.yaml")
    assert team.json("ledger", "migrate") == {"version_before": versions.VERSION, "version": versions.VERSION}
    team.query("UPDATE version SET number = 0 RETURNING number")
    later = dict.fromkeys(range(1, versions.VERSION), "SELECT 1")
    monkeypatch.setattr(versions, "STEPS", {0: "CREATE TABLE made (n int); SELECT 1/0", **later})
    with pytest.raises(LedgerRefused, match="division by zero"):
        CliRunner().invoke(migrate, [], catch_exceptions=False)
    assert team.query("SELECT to_regclass('made')") == [(None,)]
    monkeypatch.setattr(versions, "STEPS", {0: "CREATE TABLE made (n int)", **later})
    assert (
        f"version 0 is now version {versions.VERSION}" in CliRunner().invoke(migrate, [], catch_exceptions=False).output
    )
    assert team.query("SELECT to_regclass('made')::text") == [("made",)]


VERSION_2 = """UPDATE version SET number = 2 RETURNING number; ALTER TABLE blocks DROP columns; DROP FUNCTION add_block;
    CREATE FUNCTION add_block (text, bigint, bigint, text[], bytea, bytea, text, text, bytea, text) RETURNS void LANGUAGE sql AS ''"""
"""Statements that make a schema of version 2."""


def test_migrate_adds_columns_to_version_2(team):
    (team.folder / "rows.jsonl").write_text(
        "".join(f'{{"id": "{n}", "output": "a", "reference": "a"}}\n' for n in range(200))
    )
    team.call("run", "p.yaml")
    team.query(VERSION_2)
    assert "dicast ledger migrate" in team.json("run", "p.yaml", code=2)["error"]["message"]
    assert team.json("ledger", "migrate") == {"version_before": 2, "version": versions.VERSION}
    assert team.json("run", "p.yaml")["scored"] == 200
    assert {row["scored"] for row in team.json("runs")["runs"]} == {200}
    assert team.query("SELECT columns IS NULL, count(*) FROM blocks WHERE lines >= 100 GROUP BY 1 ORDER BY 1") == [
        (False, 1),
        (True, 1),
    ]
    assert team.json("ledger", "verify")["ok"]


def test_migrate_makes_the_functions_of_version_1_anew(team):
    team.call("run", "p.yaml")
    team.query(VERSION_2)
    team.query(
        "UPDATE version SET number = 1 RETURNING number;"
        " DROP FUNCTION decide, expired_reservations, lock_scopes, hold_amounts, close_reservations;"
        " CREATE FUNCTION decide (text, numeric, text, jsonb) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$;"
        " CREATE FUNCTION expired_reservations (timestamptz, boolean) RETURNS TABLE (number bigint) LANGUAGE sql AS $$ SELECT 1::bigint $$"
    )
    assert team.json("ledger", "migrate") == {"version_before": 1, "version": versions.VERSION}
    query = "SELECT DISTINCT prorettype::regtype::text FROM pg_proc WHERE proname = 'expired_reservations'"
    assert team.query(query) == [("bigint[]",)]
    assert team.json("run", "p.yaml")["scored"] == 30
    assert team.json("ledger", "verify")["ok"]


def test_migrate_refuses_another_ledger(team):
    assert "postgres/ledger" in team.json("ledger", "migrate", "--ledger", "file.db", code=2)["error"]["message"]


def test_a_reserved_word_is_the_name_of_a_schema(team, monkeypatch):
    place = json.dumps({"postgres/ledger": {"url": team.url, "schema": 'select "x"'}})
    team.call("run", "p.yaml", "--ledger", place)
    assert team.json("ledger", "verify", "--ledger", place)["ok"]


@contextmanager
def served(team):
    """Serve the ledger, and yield a function that returns the runs by id."""
    command = [sys.executable, "-m", "dicast", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=team.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        address = next(line for line in server.stdout if "?token=" in line).split()[-1]
        root, _, token = address.partition("?token=")

        def runs():
            request = urllib.request.Request(f"{root}runs", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request) as answer:
                return {row["run_id"]: row for row in json.loads(answer.read())["data"]}

        try:
            yield runs
        finally:
            server.terminate()


def test_serve_answers_about_runs_of_several_processes_at_once(team):
    team.call("run", "p.yaml")
    with served(team) as runs:
        words = [sys.executable, "-m", "dicast", "run", "p.yaml", "--json"]
        processes = [subprocess.Popen(words, cwd=team.folder, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        ids = {json.loads(process.communicate()[0])["run_id"] for process in processes}
        rows = runs()
    assert ids <= rows.keys()
    assert {(rows[id_]["state"], rows[id_]["scored"]) for id_ in ids} == {("completed", 30)}


def test_serve_tells_live_runs_of_other_writers_from_dead_ones(team):
    slow = {
        **PIPELINE,
        "task": {"task/command": {"command": ["sleep", "60"], "timeout": 90}},  # of a killed run, too
        "executor": {"dicast/async": {"concurrency": 1}},
    }
    (team.folder / "slow.yaml").write_text(json.dumps(slow))
    words = [sys.executable, "-m", "dicast", "run", "slow.yaml", "--json"]
    alive = "SELECT run_id, owner FROM leases WHERE until > now()"
    completed = team.json("run", "p.yaml")["run_id"]
    with served(team) as runs:
        processes = [subprocess.Popen(words, cwd=team.folder, stdout=subprocess.DEVNULL) for _ in range(3)]
        try:
            until = time.monotonic() + 120
            while len(runs()) <= len(processes) and time.monotonic() < until:
                time.sleep(0.2)
            owners = {int(owner.split()[1]): id_ for id_, owner in team.query(alive)}
            running = dict.fromkeys(owners.values(), "running") | {completed: "completed"}
            assert {id_: row["state"] for id_, row in runs().items()} == running
            local, away = processes[0].pid, processes[1].pid
            for number in (0, 1):
                processes[number].kill()
                processes[number].wait()
            # a machine that nobody here can ask: its lease decides
            team.query(f"UPDATE leases SET owner = 'away 1 other 0' WHERE run_id = '{owners[away]}' RETURNING 1")
            expected, until = running | {owners[local]: "dead"}, time.monotonic() + 120
            while (states := {id_: row["state"] for id_, row in runs().items()}) == running:
                assert time.monotonic() < until
                time.sleep(0.2)
            assert states == expected
            team.query(f"UPDATE leases SET until = now() - interval '1 s' WHERE run_id = '{owners[away]}' RETURNING 1")
            until = time.monotonic() + 120
            while (state := runs()[owners[away]]["state"]) == "running" and time.monotonic() < until:
                time.sleep(0.2)
            assert state == "dead"
        finally:
            for process in processes:
                process.kill()
                process.wait()


def test_erase_removes_the_texts_of_a_subject_from_the_tables(team):
    rows = [{"id": f"r{n}", "output": f"secret {n} of a person"} for n in range(3)]
    (team.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = team.json("run", "p.yaml", "--set", "metrics=[proxy/format]")["ledger"]["head"]
    document = team.json("ledger", "erase", "r1", "--reason", "request")
    assert (len(document["digests"]), document["events_with_texts"]) == (1, {})
    assert team.query("SELECT count(*) FROM texts WHERE body LIKE '%secret 1%'") == [(0,)]
    assert team.query("SELECT count(*) FROM texts WHERE body LIKE '%secret%'") == [(2,)]
    assert team.json("ledger", "verify", "--head", head["digest"])["ok"]
    assert "secret 1" not in team.call("ledger", "export")
    assert "secret 2" in team.call("ledger", "export")
    assert team.json("ledger", "erase", "r1", "--reason", "again")["digests"] == []
