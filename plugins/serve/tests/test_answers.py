"""Answers of the API equal the output of the commands and the ledger's rows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from time import monotonic, sleep

import jsonschema
import pytest
from click.testing import CliRunner

import dicast
from dicast_serve.command import serve

from .conftest import trace

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


COMMANDS = entry_points(group="dicast.commands")

LABELLING = {"authorization": "Bearer labelling-token-0123456789"}


def rows_of(path, *types):
    """Return the payloads of the rows of *types*, with their places."""
    with closing(connect(path)) as connection:
        records = connection.execute("SELECT seq, type, run_id, subject_id, payload FROM events ORDER BY seq")
        return [(*row[:4], json.loads(row[4])) for row in records if row[1] in types]


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("command", "arguments", "path"),
    [
        ("quality", ["--from", "2026-01-01", "--to", "2030-01-01"], "/analytics/quality?from=2026-01-01&to=2030-01-01"),
        ("quality", ["--from", "2026-01-01", "--to", "2030-01-01", "--group-by", "rubric_id", "--judge", "a", "--latest"],
         "/analytics/quality?from=2026-01-01&to=2030-01-01&group_by=rubric_id&judge=a&latest=true"),
        ("cost", ["--include-eval", "--from", "2026-01-01", "--to", "2030-01-01"],
         "/analytics/cost?include_eval=true&from=2026-01-01&to=2030-01-01"),
        ("cost", ["--group-by", "session", "--run", "last"], "/analytics/cost?group_by=session&run=last"),
        ("agreement", ["--judge", "a", "--judge", "b"], "/analytics/agreement?judge=a&judge=b"),
    ],
)  # fmt: skip
def test_the_api_says_what_the_command_prints(client, ledger, command, arguments, path):
    printed = CliRunner().invoke(
        COMMANDS[command].load(), [*arguments, "--ledger", str(ledger), "--json"], catch_exceptions=False
    )
    assert client.get(path).json() == rounded(json.loads(printed.stdout))


def test_two_runs_are_compared_as_the_command_does(client, ledger):
    first, second = (run["run_id"] for run in reversed(client.get("/runs").json()["data"]))
    printed = CliRunner().invoke(
        COMMANDS["compare"].load(), [first, second, "--ledger", str(ledger), "--json"], catch_exceptions=False
    )
    assert client.get(f"/compare?a={first}&b={second}").json() == rounded(json.loads(printed.stdout))


def test_rows_are_those_of_the_ledger_page_by_page(client, ledger):
    run_id = client.get("/runs?limit=1").json()["data"][0]["run_id"]
    expected = [
        (seq, subject, payload["judge"], payload["score"])
        for seq, _, run, subject, payload in rows_of(ledger, "eval.completed")
        if run == run_id
    ]
    rows, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/runs/{run_id}/rows?limit=3{cursor and f'&cursor={cursor}'}").json()
        rows += [(row["seq"], row["subject_id"], row["judge"], row["score"]) for row in page["data"]]
        cursor = page["next_cursor"]
    assert rows == expected
    assert page["total"] == len(expected) == 4


def test_rows_are_chosen(client):
    rows = client.get("/runs/last/rows?judge=a&subject=s/2").json()
    assert [(row["judge"], row["subject_id"]) for row in rows["data"]] == [("a", "s/2")]
    assert client.get("/runs/last/rows?max_score=0.1").json()["total"] == 0
    assert client.get("/runs/last/rows?failed=true").json()["total"] == 0


def test_runs_come_page_by_page(client):
    first = client.get("/runs?limit=1").json()
    second = client.get(f"/runs?limit=1&cursor={first['next_cursor']}").json()
    assert [first["data"][0]["name"], second["data"][0]["name"]] == ["two", "one"]
    assert second["next_cursor"] is None


def test_a_run_has_its_document(client):
    document = client.get("/runs/last").json()
    assert document["run"]["name"] == document["document"]["name"] == "two"
    assert document["document"]["gate"]["passed"] is True


def test_a_turn_has_every_verdict_whole_with_its_place_in_the_chain(client, ledger):
    data = client.get("/analytics/turns/s%2F1").json()["data"]
    expected = [(seq, payload) for seq, _, _, subject, payload in rows_of(ledger, "eval.completed") if subject == "s/1"]
    assert (data["turn_id"], data["session_id"], data["content"]["output"]) == ("s/1", "s", "In Australia, 1.")
    assert [evaluation["chain"]["seq"] for evaluation in data["evaluations"]] == [seq for seq, _ in expected]
    for evaluation, (_, payload) in zip(data["evaluations"], expected, strict=True):
        assert {name: evaluation[name] for name in payload if name in evaluation} == rounded(payload)


def test_savings_join_cost_and_quality(client):
    data = {row["chosen_model"]: row for row in client.get("/analytics/savings").json()["data"]}
    assert {name: row["agent_usd_total"] for name, row in data.items()} == {"small": "0.0012", "large": "0.0012"}
    assert {name: row["verdict_count"] for name, row in data.items()} == {"small": 4, "large": 4}


def test_nothing_is_open_after_two_runs(client):
    answer = client.get("/analytics/backlog").json()
    assert (answer["open"], answer["data"]) == (0, [])


def test_every_wrong_parameter_is_named_at_once(client):
    done = client.get("/analytics/quality?form=2026&group_by=modl&min_confidence=nan&floor=0.5&floor=0.6")
    assert done.status_code == 400
    errors = {error["parameter"]: (error["hint"], error["value"]) for error in done.json()["error"]["errors"]}
    assert errors == {
        "form": ("from", None),
        "group_by": ("model", "modl"),
        "min_confidence": (None, "nan"),
        "floor": (None, "0.5"),
    }


@pytest.mark.parametrize(
    ("path", "parameter", "value"),
    [
        ("/analytics/quality?from=2027-01-01", "from", "2027-01-01T00:00:00+00:00"),
        ("/analytics/quality?judge=e", "judge", "e"),
        ("/analytics/quality?subject_kind=tuna", "subject_kind", "tuna"),
        ("/analytics/agreement?subject_kind=turn", "judge", None),
        ("/analytics/agreement/days?judge=a&between=rubrics", "judge", ["a"]),
        ("/analytics/agreement?between=runs", "between", "runs"),
        ("/compare?a={old}&b={new}&compare=x", "compare", "x"),
        ("/compare?a={old}&b={new}", "allow_incomparable", None),
    ],
)
def test_what_is_wrong_is_said_of_parameters_and_not_of_options(client, ledger, path, parameter, value):
    dicast.run(
        {
            "source": {"traces/events": {"path": str(trace(ledger.parent)), "subjects": ["turn"]}},
            "judges": [{"heuristic/turn": {"as": judge}} for judge in "cd"],
            "ledger": {"ledger/sqlite": {"path": str(ledger)}},
        }
    )
    new, old = (client.get("/runs").json()["data"][place]["run_id"] for place in (0, -1))
    done = client.get(path.format(old=old, new=new))
    assert done.status_code == 409, done.text
    (error,) = done.json()["error"]["errors"]
    assert (error["parameter"], error["value"]) == (parameter, value)
    for text in (error["message"], done.json()["error"]["message"]):
        assert "--" not in text.replace("the command's --gold FILE", "")


def test_an_answer_is_not_sent_again_until_the_ledger_grows(client):
    first = client.get("/runs")
    tag = {"if-none-match": first.headers["etag"]}
    assert client.get("/runs", headers=tag).status_code == 304
    label = {"subject_id": "s/1", "score": 0.25}
    assert client.post("/labels", json=label, headers=LABELLING).status_code == 201
    again = client.get("/runs", headers=tag)
    assert again.status_code == 200
    assert again.json()["data"][0]["name"] == "labels"


@pytest.mark.parametrize("path", ["/judges", "/runs"])
def test_an_answer_that_the_client_has_is_known_by_weak_tags_and_any(client, path):
    tag = client.get(path).headers["etag"]
    for value in (f"W/{tag}", f'"x", W/{tag}', f'W/"x",{tag}', "*"):
        answer = client.get(path, headers={"if-none-match": value})
        assert (answer.status_code, answer.headers["etag"]) == (304, tag), value
    assert client.get(path, headers=[("if-none-match", '"x"'), ("if-none-match", f"W/{tag}")]).status_code == 304
    for value in ('W/"x"', '"*"', tag.strip('"'), ""):
        assert client.get(path, headers={"if-none-match": value}).status_code == 200, value


def test_of_what_is_not_there_the_client_has_nothing(client):
    assert client.get("/runs/nothing", headers={"if-none-match": "*"}).status_code == 404
    assert client.get("/analytics/turns/nothing", headers={"if-none-match": "*"}).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/runs?limit=1", "/runs/last"])
def test_a_run_whose_lease_ends_goes_on_no_longer_though_the_ledger_stands_still(client, ledger, path):
    def client_as(**headers):
        answer = client.get(path, headers=headers)
        document = answer.json() if answer.status_code == 200 else {}
        return answer, (document.get("run") or document.get("data", [{}])[0]).get("state")

    assert client_as()[1] == "completed"
    until = (datetime.now(UTC) + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE leases SET owner = 'elsewhere 1 another-machine 1', until = ?", (until,))
    end = monotonic() + 100
    while client_as()[1] != "running":
        assert monotonic() < end
    first, _ = client_as()
    tag = {"if-none-match": first.headers["etag"]}
    assert client_as(**tag)[0].status_code == 304
    while client_as(**tag)[0].status_code == 304:
        assert monotonic() < end
        sleep(0.2)
    assert client_as(**tag)[1] == "completed"


def test_a_persons_verdict_enters_agreement(client):
    done = client.post(
        "/labels", json={"subject_id": "s/1", "score": 0.25, "reason": "It is wrong."}, headers=LABELLING
    )
    verdict = done.json()["verdict"]
    assert (verdict["judge_kind"], verdict["basis"], verdict["score"]) == ("human", "human", 0.25)
    assert verdict["signals"] == {"reason": "It is wrong."}
    document = client.get("/analytics/agreement?judge=a&judge=human").json()
    assert (document["n"], document["different_content"]) == (1, 0)


def test_a_persons_verdict_is_a_label_that_other_commands_read(client, ledger):
    for judge, score in (("ann", 1), ("ann", 0.5), ("ben", 0)):
        label = {"subject_id": "s/1", "score": score, "judge": judge}
        assert client.post("/labels", json=label, headers=LABELLING).status_code == 201
    printed = CliRunner().invoke(COMMANDS["labels"].load(), ["export", "--ledger", str(ledger)], catch_exceptions=False)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [(entry["subject_id"], entry["labeller"], entry["score"]) for entry in lines] == [
        ("s/1", "ann", 0.5),
        ("s/1", "ben", 0.0),
    ]
    assert {
        (entry["subject_kind"], entry["session_id"], entry["drawn"], entry.get("weight", 1)) for entry in lines
    } == {("turn", "s", None, 1)}


def test_a_person_has_no_judges_name(client, ledger):
    label = {"subject_id": "s/1", "score": 1, "judge": "a"}
    done = client.post("/labels", json=label, headers=LABELLING)
    assert done.status_code == 409
    (error,) = done.json()["error"]["errors"]
    assert (error["parameter"], error["value"]) == ("judge", "a")
    assert "heuristic" in error["message"]
    assert not rows_of(ledger, "label.given")
    for _ in range(2):  # a person's own name is taken again
        assert client.post("/labels", json={**label, "judge": "ann"}, headers=LABELLING).status_code == 201


def test_labels_need_their_own_token_and_a_right_body(client):
    assert client.post("/labels", json={"subject_id": "s/1", "score": 1}).status_code == 403
    done = client.post("/labels", json={"subject_id": "s/1", "scre": 2, "judge": "a b"}, headers=LABELLING)
    assert done.status_code == 400
    assert [error["parameter"] for error in done.json()["error"]["errors"]] == ["scre", "score", "judge"]
    assert client.post("/labels", json={"subject_id": "nobody", "score": 1}, headers=LABELLING).status_code == 404


def test_once_json_prints_one_answer(ledger):
    done = CliRunner().invoke(serve, ["--ledger", str(ledger), "--once-json", "/runs?limit=1"], catch_exceptions=False)
    assert json.loads(done.stdout)["data"][0]["name"] == "two"


def test_the_description_is_of_every_route(client):
    description = client.get("/openapi.json").json()
    assert {"/analytics/quality", "/analytics/turns/{id}", "/runs/{run_id}/rows", "/labels", "/events"} <= set(
        description["paths"]
    )
    for path, item in description["paths"].items():
        for operation in item.values():
            for parameter in operation["parameters"]:
                jsonschema.Draft202012Validator.check_schema(parameter["schema"])
                assert ("{{{}}}".format(parameter["name"]) in path) == (parameter["in"] == "path")


def test_rationales_are_in_one_place_alone(client, ledger):
    from dicast_serve.documents import without_rationale

    value = {"signals": {"rationale_redacted": "because", "x": [{"rationale_redacted": "again"}]}, "score": 1}
    assert without_rationale(value) == {"signals": {"x": [{}]}, "score": 1}
