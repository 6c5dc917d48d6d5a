"""The table of a run: one row for each subject, filtered, sorted and paged by the server."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import dicast
from dicast import Judgment, Query, Subject
from dicast_serve.application import application
from dicast_serve.guard import Tokens
from dicast_serve.reading import ServedLedger
from dicast_serve.tables import Tables, Texts

HOST, READING = "127.0.0.1:8600", "reading-token-0123456789"
SCORES = {"old": [0.9, 0.2, 0.6, 0.7, None, 0.4], "new": [0.1, 0.8, 0.6, None, 0.5, 0.3]}
"""Scores of the judge ``good`` by run; None is a failure."""


@attrs.frozen
class Good:
    """A judge with the scores of one run."""

    run: str
    name = "good"
    judge_kind = "llm"

    def judge(self, subject, children):
        score = SCORES[self.run][int(subject.id.removeprefix("r"))]
        if score is None:
            raise ValueError("the endpoint refused")
        return Judgment(score, 0.9, "llm", signals={"rationale_redacted": f"Reason of {subject.id}: it is {score}"})


@attrs.frozen
class Even:
    """A judge that passes every second subject."""

    name = "even"

    def judge(self, subject, children):
        return Judgment(float(int(subject.id.removeprefix("r")) % 2 == 0), 1.0)


@attrs.frozen
class Kind:
    """A judge that passes everything."""

    name = "all"

    def judge(self, subject, children):
        return Judgment(1.0, 1.0)


@pytest.fixture(scope="module")
def ledger_path(tmp_path_factory):
    """A ledger with the runs ``old`` and ``new`` over six rows."""
    path = tmp_path_factory.mktemp("tables") / "ledger.db"
    for run in SCORES:
        rows = [
            Subject(
                "row", f"r{number}", f"Question {number}?", f"The {run} answer {number} is Zürich", reference="Bern"
            )
            for number in range(6)
        ]
        judges = [Good(run), Even()]
        gate = {"on": "good", "min_score": 0.5}
        ledger = {"ledger/sqlite": {"path": str(path)}}
        dicast.run({"name": run, "judges": judges, "gate": gate, "ledger": ledger}, subjects=rows)
    return path


@pytest.fixture(scope="module")
def ask(ledger_path):
    """Return a function that returns the answer to a path, by default with status 200."""
    app = application([ledger_path], Tokens(READING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as client:

        def answer(path, status=200):
            response = client.get(path, headers={"authorization": f"Bearer {READING}"})
            assert response.status_code == status, response.text
            return response.json()

        yield answer


def ids(document):
    return [row["subject_id"] for row in document["data"]]


def test_a_row_has_the_values_the_texts_and_the_reason_of_its_subject(ask):
    document = ask("/runs/new/subjects")
    assert (document["label"], document["total"], document["matched"], document["baseline"]) == ("good", 6, 6, None)
    row = next(row for row in document["data"] if row["subject_id"] == "r1")
    assert row["values"] == {"good": 0.8, "even": 0.0}
    assert (row["score"], row["outcome"], row["odds"]) == (0.8, "pass", True)
    texts = row["input"], row["output"], row["reference"], row["reason"]
    assert texts == ("Question 1?", "The new answer 1 is Zürich", "Bern", "Reason of r1: it is 0.8")


def test_the_worst_come_first_and_the_order_can_be_chosen(ask):
    assert ids(ask("/runs/new/subjects"))[:3] == ["r3", "r0", "r5"]  # without a score, then the lowest
    assert ids(ask("/runs/new/subjects?sort=subject&down=true")) == ["r5", "r4", "r3", "r2", "r1", "r0"]
    assert ids(ask("/runs/new/subjects?sort=score&down=true"))[-1] == "r3"  # a missing score is last in both directions
    assert ids(ask("/runs/new/subjects?sort=value&by=even"))[:3] == ["r1", "r3", "r5"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("outcome=pass", {"r1", "r2", "r4"}),
        ("outcome=none", {"r3"}),
        ("odds=true", {"r0", "r1"}),
        ("label=even&max_value=0.5", {"r1", "r3", "r5"}),
        ("q=zürich r4", {"r4"}),
        ("q=REASON ANSWER", {"r0", "r1", "r2", "r4", "r5"}),
        ("q=%20", {"r0", "r1", "r2", "r3", "r4", "r5"}),
        ("q=answer [23] is&regex=true", {"r2", "r3"}),
        ("q=it is 0.8&outcome=fail", set()),
        ("subject_kind=turn", set()),
    ],
)
def test_rows_are_filtered(ask, query, expected):
    document = ask(f"/runs/new/subjects?sort=seq&{query}")
    assert set(ids(document)) == expected
    assert document["matched"] == len(expected)


def test_the_basis_is_of_the_score_or_of_the_chosen_label(ask):
    score, even = ask("/runs/new/subjects"), ask("/runs/new/subjects?label=even")
    assert score["bases"] == {"model": 5}
    assert even["bases"] == {"truth": 6}
    assert {row["basis"] for row in even["data"]} == {"truth"}
    assert ask("/runs/new/subjects?basis=truth")["matched"] == 0
    assert ask("/runs/new/subjects?basis=model")["matched"] == 5
    assert ask("/runs/new/subjects?label=even&basis=truth")["matched"] == 6
    assert ask("/runs/new/subjects?label=even&basis=model")["matched"] == 0


def test_counts_are_of_the_rows_that_each_further_filter_would_leave(ask):
    counts = ask("/runs/new/subjects?baseline=old&outcome=pass&q=question")["counts"]
    assert counts == {"all": 6, "pass": 3, "fail": 2, "none": 1, "open": 0, "fixed": 1, "regressed": 1, "odds": 2}


def test_a_chosen_label_gives_its_outcomes_scores_and_reasons(ask):
    document = ask("/runs/new/subjects?label=even")
    assert document["counts"] == {**document["counts"], "all": 6, "pass": 3, "fail": 3, "none": 0}
    assert document["score_label"] == "even"
    assert ids(document)[:3] == ["r1", "r3", "r5"]
    assert [(row["outcome"], row["score"], row["reason"]) for row in document["data"][:1]] == [("fail", 0.0, "")]
    assert set(ids(ask("/runs/new/subjects?label=even&outcome=fail"))) == {"r1", "r3", "r5"}
    (failed,) = ask("/runs/new/subjects?label=good&outcome=none")["data"]
    assert failed["subject_id"] == "r3"
    assert failed["score"] is None
    assert "the endpoint refused" in failed["reason"]
    around = ask("/runs/new/neighbors?kind=row&subject=r3&label=even")
    assert (around["place"], around["matched"]) == (2, 6)


def test_a_subject_has_its_outcome_and_that_of_each_label_with_its_line(ask):
    fail, none = (ask(f"/runs/new/neighbors?kind=row&subject={id}") for id in ("r5", "r3"))
    assert fail["outcome"] == "fail"
    assert {item["label"]: (item["outcome"], item["pass_at"]) for item in fail["labels"]} == {
        "good": ("fail", 0.5),
        "even": ("fail", 0.5),
    }
    assert none["outcome"] == "none"
    assert {item["label"]: item["outcome"] for item in none["labels"]} == {"good": "none", "even": "fail"}
    absent = ask("/runs/new/neighbors?kind=row&subject=r9")
    assert (absent["outcome"], absent["labels"]) == (None, [])


def test_the_failures_of_a_judge_are_listed_next_to_the_label_of_the_gate(tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    rows = [Subject("row", f"r{number}", "?", "!") for number in range(6)]
    file = {"name": "both", "judges": [Good("new"), Even()], "gate": {"on": "even", "min_score": 0.5}, "ledger": ledger}
    dicast.run(file, subjects=rows)
    app = application([tmp_path / "ledger.db"], Tokens(READING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}") as client:
        client.headers["authorization"] = f"Bearer {READING}"
        failed = client.get("/runs/last/subjects?label=good&outcome=none").json()
        searched = client.get("/runs/last/subjects?q=reason it is 0.5").json()
        refused = client.get("/runs/last/subjects?q=endpoint refused").json()
    assert ids(failed) == ["r3"]
    assert failed["counts"] == {**failed["counts"], "pass": 3, "fail": 2, "none": 1}
    assert "the endpoint refused" in failed["data"][0]["reason"]
    assert (ids(searched), ids(refused)) == (["r4"], ["r3"])


def test_a_baseline_gives_changes_flips_and_its_outputs(ask):
    document = ask("/runs/new/subjects?baseline=old&sort=change")
    rows = {row["subject_id"]: row for row in document["data"]}
    assert ids(document)[:2] == ["r0", "r5"]
    assert set(ids(document)[-2:]) == {"r3", "r4"}  # without a score in one of the runs
    flips = {id: row["flip"] for id, row in rows.items() if row["flip"]}
    assert flips == {"r0": "regressed", "r1": "fixed"}
    assert (rows["r0"]["was"], rows["r0"]["change"], rows["r3"]["change"]) == (0.9, -0.8, None)
    assert rows["r0"]["baseline_output"] == "The old answer 0 is Zürich"
    assert ids(ask("/runs/new/subjects?baseline=old&change=regressed")) == ["r0"]
    assert ids(ask("/runs/new/subjects?baseline=old&change=any&label=even")) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["worst", "seq", "subject", "outcome", "score", "value", "change"]),
    st.booleans(),
    st.sampled_from(["", "outcome=pass", "change=fixed", "q=answer", "odds=true"]),
    st.integers(1, 7),
)
def test_pages_and_neighbors_are_of_one_list(ask, sort, down, chosen, limit):
    query = f"baseline=old&sort={sort}&down={str(down).lower()}&{chosen}".rstrip("&")
    whole = [row["subject_id"] for row in ask(f"/runs/new/subjects?{query}")["data"]]
    paged, cursor = [], 0
    while cursor is not None:
        document = ask(f"/runs/new/subjects?{query}&limit={limit}&cursor={cursor}")
        paged, cursor = paged + ids(document), document["next_cursor"]
    assert paged == whole
    for place, id in enumerate(whole):
        around = ask(f"/runs/new/neighbors?{query}&kind=row&subject={id}")
        expected = [whole[at] if 0 <= at < len(whole) else None for at in (place - 1, place + 1)]
        assert [around[name] and around[name]["subject_id"] for name in ("previous", "next")] == expected
        assert (around["place"], around["matched"]) == (place + 1, len(whole))


def test_a_subject_outside_the_list_has_no_neighbors(ask):
    around = ask("/runs/new/neighbors?kind=row&subject=r0&outcome=pass")
    assert (around["place"], around["previous"], around["next"], around["matched"]) == (None, None, None, 3)


def test_texts_are_whole_on_request(ask, tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    row = Subject("row", "long", "?", "x" * 5000)
    dicast.run({"judges": [Kind()], "ledger": ledger}, subjects=[row])
    app = application([tmp_path / "ledger.db"], Tokens(READING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}") as client:
        client.headers["authorization"] = f"Bearer {READING}"
        lengths = [
            len(client.get(f"/runs/last/subjects?texts={texts}").json()["data"][0]["output"])
            for texts in ("start", "whole")
        ]
    assert lengths == [240, 5000]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/runs/new/subjects?q=(a&regex=true", 400, "q: '(a' is not a regular expression"),
        ("/runs/new/subjects?label=goood", 409, "label: the run has no values of 'goood'; it has good, even"),
    ],
)
def test_a_wrong_search_or_label_is_named(ask, path, status, message):
    assert message in ask(path, status)["error"]["message"]


def test_an_unknown_run_or_baseline_is_not_found(ask):
    ask("/runs/nothing/subjects", 404)
    ask("/runs/new/subjects?baseline=nothing", 404)


def test_the_trend_is_of_the_label_of_the_gate(ask):
    trend = ask("/analytics/trend?name=new")
    assert (trend["label"], trend["labels"]) == ("good", ["good", "even"])
    (point,) = trend["data"]
    assert (point["mean"], point["scored"], point["failed"], point["gate"]) == (0.46, 5, 1, "undecided")
    assert point["pass_ci_low"] < point["pass_rate"] < point["pass_ci_high"]
    assert ask("/analytics/trend?name=new&label=even")["data"][0]["mean"] == 0.5
    assert "they have good, even" in ask("/analytics/trend?name=new&label=evven", 409)["error"]["message"]


def test_a_listed_run_has_the_label_of_its_gate(ask):
    assert {run["gate_label"] for run in ask("/runs")["data"]} == {"good"}
    assert ask("/runs/new")["run"]["gate_label"] == "good"


def test_a_subject_lists_its_runs(ask):
    runs = ask("/analytics/turns/r0?subject_kind=row")["data"]["runs"]
    assert [run["name"] for run in runs] == ["new", "old"]
    assert len({run["output_digest"] for run in runs}) == 2


def test_a_table_is_read_once_until_its_run_grows(ledger_path):
    tables, served = Tables(), ServedLedger(ledger_path)

    def table(live):
        run_id = next(entry.event.run_id for entry in live.read(Query(types=("run.started",), newest_first=True)))
        return tables.get(live, run_id, None)

    assert served.read(table) is served.read(table)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=1200), st.text(min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_a_search_finds_the_rows_whose_text_has_the_word(texts, word):
    word = word.lower().replace("\0", " ")
    found = Texts()
    for row, text in enumerate(texts):
        found.add(row, text)
    expected = {row for row, text in enumerate(texts) if word in text.lower().replace("\0", " ")}
    assert found.rows_with_words([word]) == expected


GATES = [
    ("a", 0.9),
    ("b", 0.9),
    ("b", 0.1),
    ("c", 0.9),
    *((f"later-{number}", 0.1) for number in range(7)),
    ("c", None),
]
"""Names of runs with the line of their gates, the oldest first. Every run has a mean of .5."""


@pytest.fixture(scope="module")
def gates_path(tmp_path_factory):
    """A ledger of runs with one metric, whose gates passed and failed."""
    path = tmp_path_factory.mktemp("gates") / "ledger.db"
    rows = [Subject("row", f"r{number}", "q", "yes" * number) for number in range(2)]
    for name, line in GATES:
        pipeline = {"name": name, "metrics": [{"check/contains": {"as": "match", "value": "yes"}}]}
        gate = {} if line is None else {"gate": {"on": "match", "min_score": line}}
        dicast.run({**pipeline, **gate, "ledger": {"ledger/sqlite": {"path": str(path)}}}, subjects=rows)
    return path


@pytest.fixture(scope="module")
def gates(gates_path):
    """Return a function that returns the answer to a path about that ledger."""
    app = application([gates_path], Tokens(READING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as client:
        yield lambda path: client.get(path, headers={"authorization": f"Bearer {READING}"}).json()


def test_a_failed_pipeline_is_listed_until_a_newer_run_of_it_passes(gates):
    assert [run["name"] for run in gates("/runs?failing=true")["data"]] == ["c", "a"]
    page = gates("/runs?failing=true&limit=1")
    assert [run["name"] for run in page["data"]] == ["c"]
    assert [run["name"] for run in gates(f"/runs?failing=true&cursor={page['next_cursor']}")["data"]] == ["a"]


def test_the_only_metric_is_the_label_metrics_in_every_answer(gates):
    (run,) = gates("/runs?failing=true&limit=1")["data"]
    assert (run["gate_label"], list(run["labels"])) == ("metrics", ["metrics"])
    trend = gates("/analytics/trend?name=a")
    assert (trend["label"], trend["labels"], trend["gate_lines"]) == ("metrics", ["metrics"], {"mean": 0.9})
    assert gates("/analytics/trend?name=a&label=match")["data"] == trend["data"]
