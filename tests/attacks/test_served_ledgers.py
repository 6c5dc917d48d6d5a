"""What ``dicast serve`` answers over a ledger that somebody has edited, filled with hostile texts, moved, cut or locked while it is served."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import dicast
from dicast_serve.application import application
from dicast_serve.guard import Tokens

from . import edits
from .test_edited_ledgers import EDITS, VERDICTS

READING, LABELLING = "the-token-of-this-test", "the-label-token-of-this-test"
HOST = "127.0.0.1:8600"
SECRET = "what no answer may hold"
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "../../../etc/passwd",
    "NaN",
    "1e999",
    "__proto__",
    "constructor",
    "\u202eevil\u202c שלום",
    "🦊👩‍👩‍👧‍👦",
    "a\nb\r\nSet-Cookie: x=y",
    "event: verdict\ndata: {}\n\n",
    "${jndi:ldap://x}{{7*7}}",
    "=cmd|' /C calc'!A0",
    "' OR 1=1 --",
    "\ufeff \u200b",
    "%00%2e%2e%2f",
    "x" * 20_000,
)
PATHS = (
    *("/analytics/quality?subject_kind=row&from=2020-01-01", "/analytics/quality?group_by=none", "/analytics/cost"),
    *("/analytics/cost?include_eval=true&group_by=rubric", "/analytics/savings", "/analytics/backlog", "/judges"),
    *("/runs", "/runs/last", "/runs/last/rows", "/runs/last/rows?order=score", "/compare?a=last&b=last", "/ledgers"),
    *("/analytics/agreement?judge=metrics&between=runs", "/analytics/agreement/days?judge=metrics&judge=human"),
    *("/analytics/turns/row-1?subject_kind=row", "/session", "/openapi.json"),
)
MORE_EDITS = {
    "a cost beyond all bounds": f"UPDATE events SET payload = json_set(payload, '$.judge_cost_usd', '1e999999999') {VERDICTS}",
    "a cost that is none": f"UPDATE events SET payload = json_set(payload, '$.judge_cost_usd', 'NaN') {VERDICTS}",
    "a cost without end": f"UPDATE events SET payload = json_set(payload, '$.judge_cost_msat', '-Infinity') {VERDICTS}",
    "a score of 400 digits": f'UPDATE events SET payload = replace(payload, \'"score":\', \'"score":{"9" * 400},"x":\') {VERDICTS}',
    "a judge of many": f"UPDATE events SET payload = json_set(payload, '$.judge', json('[1]')) {VERDICTS}",
    "signals of text": f"UPDATE events SET payload = json_set(payload, '$.signals', 'x') {VERDICTS}",
    "a name of many": "UPDATE events SET payload = json_set(payload, '$.name', json('[1]')) WHERE type = 'run.started'",
    "a start in no time": "UPDATE events SET time = 'never' WHERE type = 'eval.started'",
}


class Served:
    """The application over ``ledger.db`` in a folder."""

    def __init__(self, folder):
        self.path = folder / "ledger.db"
        app = application([self.path], Tokens(READING, LABELLING), [HOST], "dicast")
        self.client = TestClient(app, f"http://{HOST}", raise_server_exceptions=False)
        self.client.headers["authorization"] = f"Bearer {READING}"

    def ask(self, path):
        """Status and document of an answer, which is JSON without NaN and without infinity."""
        answer = self.client.get(path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        return answer.status_code, json.loads(answer.content, parse_constant=pytest.fail)


def written(folder, ids):
    """A ledger of a run over rows with these ids, which are its texts, too."""
    rows = [{"id": id, "output": id, "input": id, "context": {id[:50]: 2**64 - 1}} for id in ids]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dicast.run(
        {
            "name": HOSTILE[0],
            "source": {"rows/jsonl": {"path": str(folder / "rows.jsonl")}},
            "metrics": ["proxy/format"],
            "ledger": {"ledger/sqlite": {"path": str(folder / "ledger.db")}},
        }
    )
    return Served(folder)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return written(folder, [f"row-{number}" for number in range(3)]).path


def test_an_untouched_ledger_is_answered_from(plain):
    served = Served(plain.parent)
    assert {path: served.ask(path)[0] for path in PATHS if "compare" not in path and "agreement" not in path} == {
        path: 200 for path in PATHS if "compare" not in path and "agreement" not in path
    }


@pytest.mark.parametrize("edit", {**EDITS, **MORE_EDITS})
def test_an_edited_ledger_breaks_no_answer(tmp_path, plain, edit):
    shutil.copy(plain, tmp_path / "ledger.db")
    edits.edit(tmp_path / "ledger.db", {**EDITS, **MORE_EDITS}[edit])
    served = Served(tmp_path)
    for path in PATHS:
        status, found = served.ask(path)
        assert status in (200, 404, 409, 503), (path, found)
        assert "defect" not in found.get("error", {}).get("message", ""), (path, found)


@pytest.mark.slow
def test_hostile_texts_are_data_in_every_answer(tmp_path):
    served = written(tmp_path, HOSTILE)
    for path in PATHS:
        status, found = served.ask(path)
        assert status in (200, 404, 409), (path, found)
    ids = {row["subject_id"] for row in served.ask("/runs/last/rows?limit=1000")[1]["data"]}
    assert ids == set(HOSTILE)
    for id in HOSTILE:
        if len(id) < 1000 and "%" not in id:  # this client decodes what was encoded twice
            status, found = served.ask(f"/analytics/turns/{quote(id, safe='')}?subject_kind=row")
            assert (status, found["data"]["subject_id"], found["data"]["content"]["output"]) == (200, id, id)
            assert served.ask(f"/runs/last/rows?subject={quote(id, safe='')}")[1]["total"] == 1


def test_a_hostile_id_is_one_line_of_one_event(tmp_path):
    from dicast_serve.live import newer
    from dicast_serve.reading import ServedLedger

    written(tmp_path, HOSTILE)
    news = newer(ServedLedger(tmp_path / "ledger.db"), None).news
    assert len(news) == len(HOSTILE) + 1
    for _, text in news:
        names = [line.partition(b":")[0] for line in text.rstrip(b"\n").split(b"\n")]
        assert names == [b"id", b"event", b"data"]


@pytest.mark.parametrize("what", ["deleted", "replaced", "cut", "no ledger", "a folder"])
def test_a_ledger_that_goes_is_an_honest_error_and_it_recovers(tmp_path, plain, what):
    shutil.copy(plain, tmp_path / "ledger.db")
    served = Served(tmp_path)
    before = {path: served.ask(path) for path in ("/runs", "/judges", "/runs/last/rows")}
    whole = served.path.read_bytes()
    served.path.unlink()
    match what:
        case "replaced":
            served.path.write_bytes(SECRET.encode() * 1000)
        case "cut":
            served.path.write_bytes(whole[: len(whole) // 3 + 100])
        case "no ledger":
            with closing(sqlite3.connect(served.path)) as other:
                other.execute("CREATE TABLE t (x)")
                other.execute("INSERT INTO t VALUES (?)", (SECRET,))
                other.commit()
        case "a folder":
            served.path.mkdir()
    for path in (*before, "/analytics/turns/row-1?subject_kind=row", "/events", "/ledgers"):
        status, found = served.ask(path)
        said = json.dumps(found)
        assert status == 503, (path, found)
        assert "dicast ledger verify" in said
        assert (SECRET in said, str(tmp_path) in said, "row-1" in said) == (False, False, False)
    label = {"subject_id": "row-1", "subject_kind": "row", "score": 1}
    done = served.client.post("/labels", json=label, headers={"authorization": f"Bearer {LABELLING}"})
    assert done.status_code == 503
    if served.path.is_dir():
        served.path.rmdir()
    served.path.unlink(missing_ok=True)
    served.path.write_bytes(whole)
    assert {path: served.ask(path) for path in before} == before


def test_a_ledger_that_another_one_replaces_is_answered_from(tmp_path, plain):
    shutil.copy(plain, tmp_path / "ledger.db")
    served = Served(tmp_path)
    assert served.ask("/runs/last/rows")[1]["total"] == 3
    (tmp_path / "other").mkdir()
    os.replace(written(tmp_path / "other", ["one", "two"]).path, served.path)
    assert [row["subject_id"] for row in served.ask("/runs/last/rows")[1]["data"]] == ["one", "two"]


def test_who_looks_on_is_let_go_when_another_ledger_stands_there(tmp_path, plain):
    from dicast_serve.live import LedgerReplaced, newer
    from dicast_serve.reading import ServedLedger

    shutil.copy(plain, tmp_path / "ledger.db")
    ledger = ServedLedger(tmp_path / "ledger.db")
    head = ledger.head()
    assert newer(ledger, head).news == ()
    (tmp_path / "other").mkdir()
    os.replace(written(tmp_path / "other", [f"other-{number}" for number in range(9)]).path, tmp_path / "ledger.db")
    with pytest.raises(LedgerReplaced):
        newer(ledger, head)


def test_a_viewer_gets_the_verdicts_after_its_head(tmp_path, plain):
    from dicast_serve.live import newer
    from dicast_serve.reading import ServedLedger

    shutil.copy(plain, tmp_path / "ledger.db")
    ledger = ServedLedger(tmp_path / "ledger.db")
    head = ledger.head()
    written(tmp_path, [f"later-{number}" for number in range(150)])
    news = newer(ledger, head)
    assert len(news.news) == 151
    assert news.head == ledger.head()
    assert newer(ledger, news.head).news == ()
    (between,) = [seq for seq, text in news.news if b"later-70" in text]
    digest = ledger.read(lambda live: live.digest_of(between))
    assert len(newer(ledger, dicast.Head(between, digest)).news) == 80


@pytest.mark.slow
def test_a_ledger_that_is_locked_is_answered_from_or_an_error_and_it_recovers(tmp_path, plain):
    shutil.copy(plain, tmp_path / "ledger.db")
    served = Served(tmp_path)
    locked, free = threading.Event(), threading.Event()

    def lock():
        with closing(sqlite3.connect(served.path, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            locked.set()
            free.wait(300)
            other.execute("ROLLBACK")

    holder = threading.Thread(target=lock)
    holder.start()
    locked.wait(100)
    try:
        assert served.ask("/runs")[0] in (200, 503)
    finally:
        free.set()
        holder.join()
    assert served.ask("/runs/last/rows")[1]["total"] == 3


@pytest.mark.parametrize(
    ("site", "method", "path", "is_refused"),
    [
        ("cross-site", "POST", "/labels", True),
        ("same-site", "POST", "/labels", True),
        ("cross-site", "GET", "/runs", True),
        ("cross-site", "GET", "/", False),
        ("same-origin", "GET", "/runs", False),
        ("none", "GET", "/runs", False),
        (None, "GET", "/runs", False),
    ],
)
def test_a_request_that_the_browser_reports_as_another_sites_is_refused(plain, site, method, path, is_refused):
    app = application([plain], Tokens(READING, LABELLING), [HOST], "c")
    headers = {"host": HOST, "authorization": f"Bearer {LABELLING}"} | ({"sec-fetch-site": site} if site else {})
    answer = TestClient(app).request(method, path, headers=headers, json={} if method == "POST" else None)
    assert (answer.status_code == 403) is is_refused, answer.text
