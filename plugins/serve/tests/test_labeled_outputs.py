"""Labels given over HTTP are about an output, and take nothing away from a subject's page."""

from __future__ import annotations

import json
import sys

import pytest
from starlette.testclient import TestClient

import dicast
from dicast.reading import output_digest
from dicast_serve.application import application
from dicast_serve.guard import Tokens

from .conftest import HOST, LABELLING, READING
from .test_answers import LABELLING as AUTHORIZED
from .test_answers import rows_of


def test_a_label_leaves_the_conversation_of_its_session(client):
    before = client.get("/analytics/turns/s%2F1").json()["data"]
    assert len(before["conversation"]) == 2
    assert client.post("/labels", json={"subject_id": "s/1", "score": 1}, headers=AUTHORIZED).status_code == 201
    after = client.get("/analytics/turns/s%2F1").json()["data"]
    assert after["conversation"] == before["conversation"]
    assert after["run_id"] == before["run_id"]
    assert after["content"] == before["content"]
    assert len(after["evaluations"]) == len(before["evaluations"]) + 1


@pytest.fixture
def task_runs(tmp_path, monkeypatch):
    """The ledger of two runs whose task answers politely in the first and rudely in the second, with their ids."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": f"r{n}", "input": "?"}) + "\n" for n in range(12)))
    (tmp_path / "answer.py").write_text("print(open('style.txt').read())\n")
    runs = []
    for style in ("polite", "rude"):
        (tmp_path / "style.txt").write_text(style)
        done = dicast.run(
            {
                "name": "made",
                "source": {"rows/jsonl": {"path": "rows.jsonl"}},
                "task": {"task/command": {"command": [sys.executable, "answer.py"]}},
                "metrics": [{"check/contains": {"as": "good", "value": "polite"}}],
                "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
            }
        )
        runs.append(done.run_id)
    return tmp_path / "ledger.db", runs


@pytest.fixture
def asking(task_runs):
    app = application([task_runs[0]], Tokens(READING, LABELLING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as client:
        client.headers["authorization"] = f"Bearer {READING}"
        yield client


def page(client, run=None):
    query = "?subject_kind=row" + (f"&run={run}" if run else "")
    return client.get(f"/analytics/turns/r1{query}").json()["data"]


def test_a_subject_is_shown_with_the_output_that_the_task_made_in_the_asked_run(task_runs, asking):
    _, (first, second) = task_runs
    assert (page(asking)["run_id"], page(asking)["content"]["output"], page(asking)["made"]) == (second, "rude", True)
    document = page(asking, first)
    assert (document["content"]["output"], document["output_digest"]) == ("polite", output_digest("polite"))
    digests = {evaluation["run_id"]: evaluation["output_digest"] for evaluation in document["evaluations"]}
    assert digests == {first: output_digest("polite"), second: output_digest("rude")}
    assert asking.get("/analytics/turns/r1?subject_kind=row&run=nope").status_code == 404


def label(client, score, run=None):
    body = {"subject_id": "r1", "subject_kind": "row", "score": score} | ({"run_id": run} if run else {})
    done = client.post("/labels", json=body, headers=AUTHORIZED)
    assert done.status_code == 201, done.text


def test_a_label_has_the_digest_of_the_output_of_its_run(task_runs, asking):
    path, (first, _) = task_runs
    label(asking, 0)
    label(asking, 1, first)
    labels = [payload for *_, payload in rows_of(path, "label.given")]
    assert [record["output_digest"] for record in labels] == [output_digest("rude"), output_digest("polite")]
    assert page(asking)["content"]["output"] == "rude"  # a label's own run is not the one that is shown


def test_agreement_compares_a_label_with_verdicts_on_its_output(task_runs, asking):
    _, (first, _) = task_runs
    label(asking, 1, first)
    document = asking.get("/analytics/agreement?judge=human&judge=metrics").json()
    assert (document["n"], document["different_content"]) == (0, 1)  # the newest verdict is about another output
    label(asking, 0)
    document = asking.get("/analytics/agreement?judge=human&judge=metrics").json()
    assert (document["n"], document["within"]) == (1, 1.0)


def test_a_subject_has_the_word_for_the_end_of_its_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = {"content": "polite", "metrics": {"stop_reason": "max_tokens", "finish_reason": "length"}}
    (tmp_path / "answer.py").write_text(f"import json\nprint(json.dumps({answer!r}))\n")
    (tmp_path / "rows.jsonl").write_text('{"id": "r1", "input": "?", "output": "old", "finish_reason": "stop"}\n')
    pipeline = {
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": [{"check/contains": {"as": "good", "value": "polite"}}],
        "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
    }
    task = {"task": {"task/command": {"command": [sys.executable, "answer.py"]}}}
    runs = [dicast.run({"name": "cut", **pipeline, **options}).run_id for options in ({}, task)]
    app = application([tmp_path / "ledger.db"], Tokens(READING, LABELLING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as client:
        client.headers["authorization"] = f"Bearer {READING}"
        assert [page(client, run)["finish_reason"] for run in runs] == ["stop", "length"]
