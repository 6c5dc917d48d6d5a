"""``dicast sql`` reads the tables of a ledger, changes no other file, and refuses a wrong query before it reads the ledger."""

from __future__ import annotations

import csv
import json
from decimal import Decimal

import attrs
import duckdb
import pytest
from click.testing import CliRunner

import dicast
from dicast import ConfigError, Cost, DataError, Event, Judgment, LedgerRefused, Subject
from dicast_sql.command import MOST, sql
from dicast_sql.database import open_database
from dicast_sql.tables import TABLES

ROWS = 6
PRICE = Cost(Decimal("0.000000000125"))


@attrs.frozen
class Paid:
    """Judge whose verdicts cost 0.000000000125 USD; it fails on the last subject."""

    def estimate(self, subject):
        return PRICE

    def judge(self, subject, children=()):
        if subject.id == f"r{ROWS - 1}":
            raise RuntimeError("on purpose")
        return Judgment(int(subject.id[1:]) / 10, 1.0, "llm", cost=PRICE)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A ledger with a run over six rows, and the run."""
    path = tmp_path_factory.mktemp("judged") / "it's ledger.db"
    rows = [Subject("row", f"r{number}", "question", {"answer": f"Größe {number}\n"}) for number in range(ROWS)]
    pipeline = {"name": "nightly", "judges": [Paid()], "ledger": {"ledger/sqlite": {"path": str(path)}}}
    return path, dicast.run(pipeline, subjects=rows)


@pytest.fixture
def ask(judged):
    """Return a function for the printed text of a query."""

    def run(query, *arguments, ledger=judged[0]):
        done = CliRunner().invoke(sql, [query, "--ledger", str(ledger), *map(str, arguments)], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.output

    return run


@pytest.fixture
def rows_of(ask):
    """Return a function for the rows of a query."""
    return lambda query: json.loads(ask(query, "--json"))["rows"]


def test_verdicts_have_the_values_of_the_run(rows_of, judged):
    _, run = judged
    query = "select count(*), avg(score), sum(judge_cost_usd), min(run_id) from verdicts"
    assert rows_of(query) == [[run.scored, pytest.approx(0.2), "0.000000000625", run.run_id]]


def test_spend_has_the_settled_and_the_lost_amounts_of_the_run(rows_of, judged):
    _, run = judged
    amounts = {type_: Decimal(amount) for type_, amount in rows_of("select type, sum(amount) from spend group by type")}
    assert amounts == {"spend.settled": 5 * PRICE.amount, "spend.lost": PRICE.amount}
    assert [Decimal(run.cost["usd"]), Decimal(run.spend_lost["usd"])] == [5 * PRICE.amount, PRICE.amount]


def test_events_keep_order_and_contents(rows_of):
    types = [type_ for (type_,) in rows_of("select type from events order by seq")]
    assert (types[0], types[-1]) == ("run.started", "run.completed")
    query = "select payload->>'$.content.output.answer', time from events where type = 'subject.read' order by seq"
    answers = rows_of(query)
    assert [answer for answer, _ in answers] == [f"Größe {number}\n" for number in range(ROWS)]
    assert all(time.startswith("20") and "T" in time for _, time in answers)


def test_a_failure_is_no_verdict(rows_of):
    assert rows_of(f"select count(*) from verdicts where subject_id = 'r{ROWS - 1}'") == [[0]]
    assert rows_of("select subject_id from events where type = 'eval.failed'") == [[f"r{ROWS - 1}"]]


def test_names_and_types_of_columns_are_in_the_document(ask):
    document = json.loads(ask("select seq as n, {'a': [1.50, null]} s, true b from verdicts limit 1", "--json"))
    assert [column["name"] for column in document["columns"]] == ["n", "s", "b"]
    assert document["columns"][0]["type"] == "BIGINT"
    assert document["rows"][0][1:] == [{"a": ["1.5", None]}, True]


def test_a_number_that_json_lacks_is_text(rows_of):
    assert rows_of("select 'nan'::double, 170141183460469231731687303715884105727, '\\x01'::blob") == [
        ["nan", "170141183460469231731687303715884105727", "01"]
    ]


def test_the_table_has_the_first_rows_and_names_the_rest(ask):
    lines = ask(f"select range n from range({MOST + 5})").splitlines()
    assert lines[0].strip() == "n"
    assert len(lines) == MOST + 2
    assert "only the first 1,000 rows; add LIMIT, or write all with --out FILE" in lines[-1]
    assert "only the first" not in ask(f"select range n from range({MOST})")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_out_writes_all_rows(ask, tmp_path, suffix):
    out = tmp_path / "it's new" / f"result{suffix}"
    assert "written" in ask("select subject_id, judge_cost_usd from verdicts order by seq -- all", "--out", out)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT subject_id FROM '{str(out).replace(chr(39), chr(39) * 2)}'").fetchall()
    assert [id_ for (id_,) in rows] == [f"r{number}" for number in range(ROWS - 1)]
    if suffix == ".csv":
        with out.open(newline="") as file:
            assert {row["judge_cost_usd"] for row in csv.DictReader(file)} == {"0.000000000125000000"}


def test_out_replaces_no_file(ask, tmp_path, judged):
    out = tmp_path / "result.csv"
    out.write_text("mine")
    with pytest.raises(ConfigError, match=r"result\.csv: it exists; name a new file"):
        ask("from verdicts", "--out", out)
    assert out.read_text() == "mine"
    with pytest.raises(ConfigError, match=r"--out writes \.csv, \.jsonl, \.parquet"):
        ask("from verdicts", "--out", tmp_path / "result.xlsx")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selct 1", "syntax error"),
        ("select judgee from verdicts", 'Candidate bindings: "judge"'),
        ("from verdict", 'Did you mean "verdicts"'),
        ("select 1; select 2", "runs one query"),
        ("", "runs one query"),
        ("drop table verdicts", "start it with SELECT or FROM"),
        ("copy verdicts to 'stolen.csv'", "start it with SELECT or FROM"),
        ("attach 'other.db'", "start it with SELECT or FROM"),
        ("install httpfs", "start it with SELECT or FROM"),
        ("set enable_external_access = true", "start it with SELECT or FROM"),
        ("from read_csv('pyproject.toml')", "Cannot access file"),
        ("from 'https://example.org/a.parquet'", "does not exist|Cannot access|disabled"),
    ],
)
def test_a_wrong_query_is_refused_before_the_ledger_is_read(ask, query, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message) as caught:
        ask(query, ledger=tmp_path / "missing.db")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    [
        "show tables",
        " SHOW TABLES;",
        "select name from (show tables) order by name",
        "select table_name as name from information_schema.tables order by name",
        "select table_name as name from duckdb_tables() order by name",
    ],
)
def test_a_query_about_the_tables_lists_all_tables(rows_of, query):
    assert rows_of(query) == [["events"], ["labels"], ["spend"], ["verdicts"]]


def test_a_table_with_a_computed_name_is_refused(ask):
    with pytest.raises(ConfigError, match="does not exist"):
        ask("select count(*) from query_table('ver' || 'dicts')")


def test_a_query_that_fails_on_the_rows_is_refused(ask):
    with pytest.raises(ConfigError, match="Could not convert string 'r0'"):
        ask("select subject_id::int from verdicts order by seq")


def test_a_missing_ledger_is_refused_and_not_made(ask, tmp_path):
    with pytest.raises(LedgerRefused):
        ask("from verdicts", ledger=tmp_path / "missing.db")
    assert list(tmp_path.iterdir()) == []


def test_the_ledger_stays_as_it_is(ask, judged):
    before = judged[0].read_bytes()
    ask("select count(*) from verdicts join events using (seq)")
    assert judged[0].read_bytes() == before


def rows_in(ledger, query):
    with open_database(query) as database:
        database.fill(ledger)
        return database.result().rows


class Given:
    """A ledger of given events."""

    def __init__(self, *events):
        self._entries = [dicast.Entry(number, event, "", "") for number, event in enumerate(events, 1)]

    def read(self, query):
        return (entry for entry in self._entries if not query.types or entry.event.type in query.types)


def make_event(type_, payload, run_id="run", number=1):
    return Event(f"id{number}", type_, "2026-03-01T12:00:00.000Z", run_id, payload)


def test_a_retracted_label_stays_and_is_marked():
    payload = {"subject": "s1", "subject_kind": "row", "score": 1.0, "labeller": "ann", "blind": True}
    ledger = Given(
        make_event("label.given", payload, "a"),
        make_event("label.given", payload | {"adjudicated": True}, "b", 2),
        make_event("label.retracted", {"label_run": "a", "subject": "s1", "subject_kind": "row"}, "c", 3),
    )
    query = "select run_id, subject_id, labeller, blind, adjudicated, retracted from labels order by seq"
    assert rows_in(ledger, query) == [("a", "s1", "ann", True, False, True), ("b", "s1", "ann", True, True, False)]


def test_a_lost_reservation_is_spend_and_an_open_one_is_not():
    ledger = Given(
        make_event("spend.reserved", {"reservation_id": "r", "amount": "9", "unit": "usd"}),
        make_event("spend.lost", {"reservation_id": "r", "amount": "9", "unit": "usd"}, number=2),
        make_event("spend.settled", {"reservation_id": "q", "amount": None, "unit": "usd"}, number=3),
    )
    assert rows_in(ledger, "select type, amount from spend order by seq") == [
        ("spend.lost", Decimal(9)),
        ("spend.settled", None),
    ]


@pytest.mark.parametrize("amount", ["0.0000000000000000001", "NaN", "much"])
def test_an_amount_that_would_be_rounded_is_refused(amount):
    ledger = Given(make_event("spend.settled", {"amount": amount, "unit": "usd"}))
    with pytest.raises(DataError, match="event id1, amount: the amount"):
        rows_in(ledger, "from spend")


def test_a_line_longer_than_duckdb_expects_is_read():
    ledger = Given(make_event("subject.read", {"content": {"output": "x" * (1 << 25)}}))
    assert rows_in(ledger, "select length(payload->>'$.content.output') from events") == [(1 << 25,)]


def test_only_the_named_tables_are_read():
    class Watched(Given):
        types = ()

        def read(self, query):
            self.types += tuple(query.types)
            return super().read(query)

    ledger = Watched()
    assert rows_in(ledger, 'select (select count(*) from Verdicts), "score" from "labels"') == []
    assert set(ledger.types) == {"eval.completed", "label.given", "label.retracted"}


def test_a_ledger_of_another_class_is_read():
    with open_database("select 1 from events") as database:
        assert sorted(TABLES) == ["events", "labels", "spend", "verdicts"]
        database.fill(Given())
        assert database.result().rows == []
