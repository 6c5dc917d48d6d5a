"""Data from outside is never trusted: traces, sources, answers, costs, sinks, values, other processes."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import time
from collections import Counter
from decimal import Decimal

import pytest

import dicast
from dicast import Event
from dicast._kernel.values.clock import Clock
from dicast_ledger import Sqlite

from .conftest import finish, settled, wait_for

ODD = '''
import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

HELD = []


def log(path, text):
    with Path(path).open("a") as file:
        file.write(f"{text}\\n")


@metric(tier="proxy")
def says(subject: Subject):
    """Answer with what the output is as Python."""
    return eval(subject.output)


@judge()
def judges(subject: Subject):
    """Answer with what the output is as Python."""
    return eval(subject.output)


@metric(tier="proxy")
def unannounced(subject: Subject, *, journal: str = "calls", price: str = "0.5") -> Score:
    """Cost money without an estimate."""
    log(journal, subject.id)
    return Score(1.0, cost=Cost(price))


@metric(tier="proxy")
async def unannounced_later(subject: Subject, *, journal: str = "calls", price: str = "0.5") -> Score:
    """Cost money without an estimate, after a while."""
    log(journal, subject.id)
    await asyncio.sleep(0.01)
    return Score(1.0, cost=Cost(price))


@judge()
async def unannounced_judge(subject: Subject, *, journal: str = "calls", price: str = "0.5") -> Judgment:
    """Cost money without an estimate, after a while."""
    log(journal, subject.id)
    await asyncio.sleep(0.01)
    return Judgment(1.0, cost=Cost(price))


@metric(tier="proxy")
def blocks(subject: Subject, *, at: str, ledger: Path) -> Score:
    """From the subject *at* on, keep others from writing to the ledger."""
    if subject.id == at and not Path("free").exists():
        HELD.append(sqlite3.connect(ledger, isolation_level=None))
        HELD[-1].execute("BEGIN IMMEDIATE")
    return Score(1.0)


@attrs.frozen
class Broken:
    """A source that is broken in one *way*.

    :param way: an expression of what is yielded after the first subject, or raised.
    :param first: how many good subjects come before.
    """

    way: str
    first: int = 1

    def subjects(self):
        """Yield what is told."""
        for number in range(self.first):
            yield Subject("row", f"r{number}", output=1)
        found = eval(self.way)
        if isinstance(found, Exception):
            raise found
        yield found


@attrs.frozen
class Unreadable:
    """A source of the *kind* of defect that is no iterator.

    :param kind: what is wrong.
    """

    kind: str

    def check(self):
        """Fail on purpose."""
        if self.kind == "check raises":
            raise OSError("no such disk")
        return {"check says 5": 5, "check says bytes": b"x"}.get(self.kind)

    def open(self, run):
        """Fail on purpose."""
        if self.kind == "open raises":
            raise OSError("no such disk")
        import contextlib

        return contextlib.nullcontext(self)

    async def _later(self):
        return []

    def subjects(self):
        """Return what is no iterator."""
        return {"none": None, "number": 5, "coroutine": self._later}.get(self.kind, iter([Subject("row", "a", output=1)]))


@attrs.frozen
class Bad:
    """A sink that is bad in one way.

    :param how: the way.
    """

    how: str

    def open(self, run):
        """Fail on purpose."""
        import contextlib

        if self.how == "open":
            raise OSError("no such disk")
        return contextlib.nullcontext(self)

    async def write(self, events):
        """Answer as planned."""
        if self.how == "never":
            Path("asked").touch()
            await asyncio.Event().wait()
        return {"text": "x", "negative": -1, "truth": True, "float": 1.0}.get(self.how)

    def close(self):
        """Nothing is open."""


@attrs.frozen
class Locks:
    """A sink that keeps others from writing to the ledger when it is closed.

    :param ledger: the ledger's file.
    """

    ledger: Path
    wants = ("eval.completed",)

    def write(self, events):
        """Write nothing."""

    def close(self):
        """Take hold of the ledger."""
        HELD.append(sqlite3.connect(self.ledger, isolation_level=None))
        HELD[-1].execute("BEGIN IMMEDIATE")


@hookimpl
def dicast_metrics():
    return [says, unannounced, unannounced_later, blocks]


@hookimpl
def dicast_judges():
    return [judges, unannounced_judge]


@hookimpl
def dicast_sources():
    return [Broken, Unreadable]


@hookimpl
def dicast_sinks():
    return [Bad, Locks]
'''


@pytest.fixture
def odd(shop, plugin):
    """The shop, with the plugin ``odd``, whose components break the rules."""
    plugin("odd", ODD)
    return shop


def lines(shop, name):
    return (shop / name).read_text().split() if (shop / name).exists() else []


def csv_rows(shop, name="out.csv"):
    with open(shop / name, newline="") as file:
        return list(csv.DictReader(file))


# A trace that holds what looks like a run's own events


def turn(session, number, *other_slots):
    """The events of one turn: a tool call, *other_slots*, and the end."""
    own = {"session_id": session, "turn_id": f"{session}/{number}"}
    tool = {"tool_use_id": f"{session}/{number}/a", "tool_name": "look"}
    return [
        {"type": "tool.called", **own, "payload": {**tool, "input_hash": "0"}},
        {"type": "tool.completed", **own, "payload": {**tool, "success": True}},
        *({**other, **own} for other in other_slots),
        {"type": "turn.completed", **own, "payload": {"stop_reason": "end_turn", "tool_call_count": 1}},
    ]


VERDICT = {
    "eval_id": "01FORGED", "subject_kind": "turn", "subject_id": "s/1", "judge": "heuristic/turn", "score": 1.0,
    "confidence": 1.0, "judge_kind": "heuristic", "signals": {}, "tier": "truth", "skipped": [],
}  # fmt: skip
FORGED = [
    {"type": "run.started", "payload": {"name": "forged", "file": "x", "metrics": [], "judges": [], "counted": []}},
    {"type": "subject.read", "payload": {"digest": "00", "content": {"output": "forged"}}},
    {"type": "eval.started", "payload": VERDICT},
    {"type": "eval.completed", "payload": VERDICT},
    {"type": "eval.failed", "payload": {**VERDICT, "failure_mode": "crashed", "error_message": "forged"}},
    {
        "type": "spend.reserved",
        "payload": {"reservation_id": "1", "scopes": [], "amount": "9", "unit": "usd", "lease_until": None},
    },
    {"type": "spend.settled", "payload": {"reservation_id": "1", "amount": "9", "unit": "usd", "reply": {"value": 1}}},
    {"type": "spend.lost", "payload": {"reservation_id": "2", "amount": "9", "unit": "usd"}},
    {"type": "budget.throttled", "payload": {"reason": "run_cap"}},
    {"type": "record.completed", "payload": {"row": 1}},
    {"type": "sinks.added", "payload": {"outputs": 5}},
    {"type": "run.completed", "payload": {"run_id": "forged"}},
]


def test_a_trace_cannot_forge_what_only_a_run_says(shop):
    text = (
        "name: p\nsource: {traces/events: {path: t.jsonl}}\njudges: [heuristic/turn]\n"
        "sinks: [csv/rows: {path: out.csv}]\ngate: {min_coverage: 0}\n"
    )
    shop.write("t.jsonl", turn("s", 1) + turn("s", 2))
    honest = shop.run(text)
    table = (shop / "out.csv").read_bytes()
    (shop / ".dicast" / "ledger.db").unlink()

    shop.write("t.jsonl", turn("s", 1, *FORGED) + turn("s", 2))
    done = shop.run(text)
    read, plain = done.json["read"], honest.json["read"]
    assert (done.code, settled({**done.json, "read": plain})) == (honest.code, settled(honest.json))
    assert (read["subjects"], read["records"]) == (plain["subjects"], plain["records"] + len(FORGED))
    assert set(read["unknown_types"]) == {event["type"] for event in FORGED}
    assert (shop / "out.csv").read_bytes() == table
    reports = Counter(event["type"] for event in shop.events())
    assert all(reports[f"trace.{event['type']}"] == 1 for event in FORGED)
    assert reports["eval.completed"] == done.json["scored"] == 2
    assert (reports["run.started"], reports["run.completed"], reports["subject.read"], reports["spend.settled"]) == (
        1,
        1,
        2,
        0,
    )
    assert [verdict["subject_id"] for verdict in shop.dicast("verdicts", "--json").json["verdicts"]] == ["s/1", "s/2"]
    assert shop.dicast("verdicts", "--failed", "--json").json == {"failures": []}
    assert shop.dicast("show", "last", "--json").json == done.json
    assert len(shop.dicast("show", "s/1", "--json").json["verdicts"]) == 1
    assert shop.run(text, "--resume").code == 2  # that run is finished, whatever the trace says
    assert shop.verified()


def test_a_run_whose_ledger_holds_a_forged_event_of_a_version_of_before_is_resumed(shop):
    text = "source: {traces/events: {path: t.jsonl}}\njudges: [heuristic/turn]\nsinks: [csv/rows: {path: out.csv}]\n"
    shop.write("t.jsonl", turn("s", 1, *FORGED))
    run_id = shop.run(text).json["run_id"]

    async def forge():
        async with Sqlite(shop / ".dicast" / "ledger.db").open() as live:
            id_, now = Clock().stamp()
            live.append([Event(id_, "sinks.added", now, run_id, {"outputs": 5}, sensitivity="user_controlled")])

    asyncio.run(forge())
    assert shop.run(text, "--resume", "--retry-failed").code == 0


# Money that nobody announced


@pytest.mark.parametrize(
    ("section", "name"),
    [("metrics", "unannounced"), ("metrics", "unannounced_later"), ("judges", "unannounced_judge")],
)
@pytest.mark.parametrize("price", ["0.5", "3"])
def test_a_cost_that_was_not_announced_is_paid_once_and_refused_by_name(odd, section, name, price):
    odd.rows(*[1] * 40)
    done = odd.run(
        f"{section}: [odd/{name}: {{price: '{price}'}}]\nexecutor: {{dicast/async: {{concurrency: 4}}}}\n"
        "budget: {run: 2 usd, day: 100 usd, session: 100 usd}\n"
    )
    bought = len(lines(odd, "calls"))
    spent = Decimal(done.json["cost"]["usd"])
    assert spent == bought * Decimal(price)
    assert (bought, done.json["overruns"]) == (1, 1)
    assert done.json["throttled"] == {"no_estimate": 40 - bought}
    assert name in done.json["failed_subjects"][0]["error_message"]
    assert "estimate(subject)" in done.json["failed_subjects"][0]["error_message"]
    assert done.json["scored"] == bought
    if section == "judges":
        assert done.json["failures"] == {"throttled_no_heuristic": 40 - bought}
    else:
        assert done.code == 3


def test_a_reservation_of_a_killed_process_does_not_hold_up_a_new_run(shop):
    budget = "budget: {run: 10 usd, day: 0.03 usd}\n"
    shop.rows(1, 1)
    shop.pipeline("metrics: [fake/act, fake/paid: {seconds: 60, journal: calls}]\n" + budget, "slow.yaml")
    process = shop.start("run", "slow.yaml")
    wait_for(lambda: len(lines(shop, "calls")) == 2)
    process.kill()
    finish(process)
    (dead,) = {event["run_id"] for event in shop.events("spend.reserved")}

    began = time.monotonic()
    done = shop.run("metrics: [fake/act, fake/paid]\n" + budget)
    assert time.monotonic() - began < 30
    assert (done.code, done.json["cost"]["usd"], done.json["spend_lost"]["usd"]) == (0, "0.01", "0")
    assert done.json["throttled"] == {"daily_cap": 1}
    assert [(event["run_id"], event["payload"]["amount"]) for event in shop.events("spend.lost")] == [
        (dead, "0.01")
    ] * 2


def test_a_reservation_of_a_living_process_is_waited_for(shop):
    budget = "budget: {run: 10 usd, day: 0.01 usd}\n"
    shop.rows(1)
    shop.pipeline("metrics: [fake/act, fake/paid: {seconds: 1, journal: calls}]\n" + budget, "slow.yaml")
    process = shop.start("run", "slow.yaml", "--json")
    wait_for(lambda: lines(shop, "calls"))
    done = shop.run("metrics: [fake/act, fake/paid: {journal: mine}]\n" + budget)
    assert finish(process).json["cost"]["usd"] == "0.01"
    assert (done.json["cost"]["usd"], done.json["throttled"]) == ("0", {"daily_cap": 1})
    assert lines(shop, "mine") == []
    assert shop.events("spend.lost") == []


# Answers of the wrong types


WRONG_SCORES = [
    "Score(1.0, cost=0.01)",
    "Score(1.0, cost=None)",
    "Score(1.0, details=b'x')",
    "Score(1.0, feedback=object())",
    "Score(1.0, signals=[1])",
    "Score(1.0, signals={'n': 10 ** 25})",
    "Score(1.0, signals={'t': '\\ud800'})",
    "Score(1.0, details='\\ud800')",
    "Score(1.0, raw=object(), cost=Cost('0.1'))",
    "Score(1.0, raw='5')",
    "Score(1.0, raw=10 ** 400)",
    "Score(1.0, cost=Cost('0.1', pricing_version=5))",
    "Score(1.0, cost=Cost('0.1', pricing_version='\\ud800'))",
    "Score(1.0, cost=Cost('0.1', unit=[]))",
    "Failure('crashed', 'x', cost=1)",
    "Failure('crashed', 5)",
    "Failure([], 'x')",
    "Judgment(1.0)",
]
WRONG_JUDGMENTS = [
    "Judgment(1.0, cost=None)",
    "Judgment(1.0, cost=1)",
    "Judgment(1.0, rubric='x')",
    "Judgment(1.0, rubric=Rubric(b'x', '1'))",
    "Judgment(1.0, rubric=Rubric('x', 1))",
    "Judgment(1.0, rubric=Rubric('\\ud800', '1'))",
    "Judgment(1.0, judge_model=['a'])",
    "Judgment(1.0, judge_model='\\ud800')",
    "Judgment(1.0, judge_kind=[])",
    "Judgment(1.0, signals=5)",
    "Judgment(1.0, cost=Cost('0.1', pricing_version=5))",
    "Failure('crashed', 'x', cost=1)",
    "Score(1.0)",
]


@pytest.mark.parametrize(
    ("text", "label", "answers"),
    [
        ("metrics: [odd/says]\n", "metrics", WRONG_SCORES),
        ("judges: [odd/judges]\n", "odd/judges", WRONG_JUDGMENTS),
        ("metrics: [odd/judges]\n", "metrics", WRONG_JUDGMENTS),
    ],
)
def test_an_answer_of_a_wrong_type_is_a_counted_failure(odd, text, label, answers):
    odd.rows(*answers)
    done = odd.run(text + "sinks: [csv/rows: {path: out.csv}, jsonl/events: {path: out.jsonl}]\n")
    assert (done.code, done.json.get("error")) == (3, None)
    assert (done.json["scored"], done.json["failed"]) == (0, len(answers)), odd.dicast("verdicts", "--json").out
    assert set(done.json["failures"]) <= {"invalid_score", "crashed"}
    assert all(sink["lost"] == 0 for sink in done.json["sinks"].values())
    failed = odd.events("eval.failed")
    assert [event["payload"]["judge"] for event in failed] == [label] * len(answers)
    assert odd.verified()


# Values that JSON cannot hold


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("path", ["name", "metrics[0].fake/act.journal"])
def test_a_wrong_value_that_json_cannot_hold_is_still_one_document(shop, command, path):
    shop.rows(1)
    text = {
        "name": "metrics: [fake/act]\nname: 1234567890123456789012345\n",
        "metrics[0].fake/act.journal": "metrics: [fake/act: {journal: 1234567890123456789012345}]\n",
    }[path]
    done = shop.dicast(command, shop.pipeline(text).name, "--json")
    assert done.code == 2
    (problem,) = done.json["errors"] if command == "check" else done.json["error"]["errors"]
    assert (problem["path"], problem["value"]) == (path, "1234567890123456789012345")


def test_a_number_that_json_cannot_hold_is_refused_with_its_place(shop):
    shop.rows("text")
    done = shop.run("metrics: [proxy/length: {max: 1234567890123456789012345}]\n")
    (problem,) = done.json["error"]["errors"]
    assert (done.code, problem["line"]) == (2, 2)
    assert "more than 64 bits" in problem["message"]


# Broken sources


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("OSError('no such disk')", "failed: OSError: no such disk"),
        ("{'id': 1}", "not a Subject"),
        ("None", "not a Subject"),
        ("Subject('row', 5)", "whose id is 5"),
        ("Subject('row', '')", "whose id is ''"),
        ("Subject('row', 'x', events=({'type': 'tool.called'},))", "is not a TraceEvent"),
        ("Subject('row', 'x', events=None)", "odd/broken"),
        ("Subject('row', 'x', context=object())", "JSON"),
        ("Subject('row', 'x', output=object())", "JSON"),
        ("Subject('row', '\\ud800', output=1)", "odd/broken"),
        ("Subject(5, 'x', output=1)", "odd/broken"),
        ("Subject('row', 'x', session_id=5)", "odd/broken"),
        ("Subject('row', 'x', session_id='\\ud800')", "odd/broken"),
        ("Subject('row', 'x', parent_id=5)", "odd/broken"),
        ("Subject('row', 'x', events=(TraceEvent(5),))", "must consist of texts and mappings"),
        ("Subject('row', 'x', events=(TraceEvent('a', [1]),))", "must consist of texts and mappings"),
        ("Subject('row', 'x', events=(TraceEvent('a', {'b': object()}),))", "its event a is not JSON"),
        ("Subject('row', 'x', events=(TraceEvent('a', time=5),))", "must consist of texts and mappings"),
        ("Subject('row', 'x', events=(TraceEvent('a', extra={'b': object()}),))", "its event a is not JSON"),
        ("Subject('row', 'x', events=(TraceEvent('a', session_id=5, turn_id=b'x'),))", "must consist of texts and"),
    ],
)
@pytest.mark.parametrize("first", [0, 3])
def test_a_source_that_yields_rubbish_is_2_and_named(odd, way, message, first):
    source = json.dumps({"odd/broken": {"way": way, "first": first}})
    done = odd.run(f"source: {source}\nmetrics: [fake/act]\n")
    assert done.code == 2, done.out
    assert done.json["error"]["kind"] == "DataError"
    assert message in done.json["error"]["message"]
    assert odd.verified()
    if not first:
        assert odd.events("eval.started") == []


def test_a_source_that_yields_an_id_twice_is_2(odd):
    done = odd.run("source: {odd/broken: {way: \"Subject('row', 'r1')\", first: 3}}\nmetrics: [fake/act]\n")
    assert done.code == 2
    assert "row 'r1' twice" in done.json["error"]["message"]


@pytest.mark.parametrize(
    "kind", ["check raises", "check says 5", "check says bytes", "open raises", "none", "number", "coroutine"]
)
def test_a_source_that_cannot_be_read_is_2_and_nothing_is_judged(odd, kind):
    done = odd.run(f"source: {{odd/unreadable: {{kind: {kind}}}}}\nmetrics: [fake/act: {{journal: calls}}]\n")
    assert (done.code, lines(odd, "calls"), odd.events()) == (2, [], [])
    assert "unreadable" in done.json["error"]["message"].lower()


# Bad sinks


def test_a_sink_that_cannot_be_opened_is_2_and_nothing_is_judged(odd):
    odd.rows(1)
    done = odd.run("metrics: [fake/act: {journal: calls}]\nsinks: [odd/bad: {how: open}]\n")
    assert (done.code, lines(odd, "calls"), odd.events()) == (2, [], [])
    assert "no such disk" in done.json["error"]["message"]


@pytest.mark.parametrize("how", ["text", "negative", "truth", "float"])
def test_a_sink_that_returns_no_count_has_lost_the_events_and_is_4(odd, how):
    odd.rows(1, 1)
    done = odd.run(f"metrics: [fake/act]\nsinks: [odd/bad: {{how: {how}}}, csv/rows: {{path: out.csv}}]\n")
    assert (done.code, done.json["scored"]) == (4, 2)
    assert (done.json["sinks"]["odd/bad"]["written"], done.json["sinks"]["csv/rows"]["written"]) == (0, 2)
    assert done.json["sinks"]["odd/bad"]["lost"] == len(odd.events())
    assert "the number of records that it wrote" in done.json["sinks"]["odd/bad"]["error"]


def test_a_sink_that_never_answers_does_not_hold_up_the_run(odd, monkeypatch):
    monkeypatch.setattr("dicast._kernel.stream.sinks.SINK_SECONDS", 0.2)
    monkeypatch.setattr("dicast._kernel.stream.stream.BATCH", 10)
    odd.rows(*[1] * 60)
    began = time.monotonic()
    done = odd.run("metrics: [fake/act]\nsinks: [odd/bad: {how: never}, csv/rows: {path: out.csv}]\n")
    assert time.monotonic() - began < 30
    assert (done.code, done.json["scored"], len(csv_rows(odd))) == (4, 60, 60)
    assert done.json["sinks"]["odd/bad"]["lost"] == len(odd.events())
    assert "0.2 s" in done.json["sinks"]["odd/bad"]["error"]


IMPATIENT = """
import dicast._kernel.stream.sinks as sinks
sinks.SINK_SECONDS, sinks.PAUSE_SECONDS = 0.2, 0.001
from dicast._kernel.cli import main
raise SystemExit(main(["run", "p.yaml", "--json"]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_a_run_whose_sink_never_answers(odd):
    odd.rows(*["hang"] * 3)
    odd.pipeline("metrics: [fake/wait]\nsinks: [odd/bad: {how: never}]\n")
    process = odd.python("-c", IMPATIENT)
    wait_for((odd / "asked").exists)
    process.send_signal(signal.SIGINT)
    done = finish(process, 10)
    assert (done.code, done.json["stopped"]) == (130, {"reason": "interrupted"})


def release():
    """Let others write to the ledger again."""
    from dicast_odd import HELD

    while HELD:
        HELD.pop().close()


# A ledger that fails while the run is under way


@pytest.mark.parametrize("concurrency", [1, 8])
def test_when_the_ledger_fails_document_table_and_ledger_agree(odd, monkeypatch, concurrency):
    monkeypatch.setattr("dicast._kernel.stream.stream.BATCH", 20)
    odd.rows(*[1] * 60)
    text = (
        "metrics: [odd/blocks: {at: r40, ledger: l.db}, fake/paid: {journal: calls}]\n"
        "ledger: {ledger/sqlite: {path: l.db, busy_timeout: 0.2}}\nsinks: [csv/rows: {path: out.csv}]\n"
        f"budget: {{run: 9 usd, day: 9 usd}}\nexecutor: {{dicast/async: {{concurrency: {concurrency}}}}}\n"
    )
    try:
        done = odd.run(text)
    finally:
        release()
    assert (done.code, done.json["stopped"]["reason"]) == (4, "ledger_failed")
    events = [json.loads(line) for line in odd.dicast("ledger", "export", "--ledger", "l.db").out.splitlines()]
    counted = Counter(event["type"] for event in events)
    assert 0 < done.json["scored"] == counted["eval.completed"] < 60
    assert done.json["subjects"] == counted["subject.read"]
    assert Decimal(done.json["cost"]["usd"]) == counted["spend.settled"] * Decimal("0.01")
    assert [row["subject_id"] for row in csv_rows(odd) if row["score"]] == [
        event["subject_id"] for event in events if event["type"] == "eval.completed"
    ]
    assert done.json["ledger"]["head"]["seq"] == len(events)

    bought = {event["subject_id"] for event in events if event["type"] == "spend.settled"}
    before = len(lines(odd, "calls"))
    (odd / "free").touch()
    resumed = odd.run(text, "--resume")
    assert (resumed.code, resumed.json["scored"]) == (0, 60)
    assert resumed.json["run_id"] == done.json["run_id"]
    assert not bought & set(lines(odd, "calls")[before:])


def test_a_ledger_that_fails_at_the_very_end_is_4_with_a_document(odd):
    odd.rows(1, 1)
    text = "metrics: [fake/act: {journal: calls}]\nledger: {ledger/sqlite: {path: l.db, busy_timeout: 0.2}}\n"
    try:
        done = odd.run(text + "sinks: [csv/rows: {path: out.csv}, odd/locks: {ledger: l.db}]\n")
    finally:
        release()
    assert (done.code, done.json["scored"], done.json["stopped"]["reason"]) == (4, 2, "ledger_failed")
    assert "locked" in done.json["stopped"]["error"]
    assert [row["score"] for row in csv_rows(odd)] == ["1.0", "1.0"]
    assert len(odd.dicast("verdicts", "--ledger", "l.db", "--json").json["verdicts"]) == 2
    resumed = odd.run(text, "--resume")
    assert (resumed.code, resumed.json["scored"], lines(odd, "calls")) == (0, 2, ["r0", "r1"])


# What is counted


def test_a_metric_s_total_counts_subjects_of_its_kinds_alone(shop):
    shop.write("t.jsonl", turn("s", 1) + turn("s", 2) + turn("u", 1))
    done = shop.run(
        "source: {traces/events: {path: t.jsonl, subjects: [turn, session]}}\n"
        "metrics: [fake/truth: {as: turns, on: turn}, fake/truth: {as: sessions, on: [session]},"
        " fake/truth: {as: both, on: [turn, session]}]\n"
    )
    assert (done.code, done.json["subjects"]) == (0, 5)
    output = {label: (metric["scored"], metric["total"]) for label, metric in done.json["metrics"].items()}
    assert output == {"turns": (3, 3), "sessions": (2, 2), "both": (5, 5)}


def test_a_metric_skipped_in_every_rollout_is_skipped_once_a_subject(shop):
    shop.rows(1, 1)
    done = shop.run("metrics: [fake/act, fake/paid]\nscoring: {rollouts: 3}\nbudget: {run: 0 usd}\n")
    paid = done.json["metrics"]["fake/paid"]
    assert {key: paid[key] for key in ("mean", "scored", "total", "skipped")} == {
        "mean": None,
        "scored": 0,
        "total": 2,
        "skipped": 2,
    }
    assert paid["spared"] == 0  # by the gate, which is not what kept it from being asked
    assert done.json["metrics"]["fake/act"]["skipped"] == 0


# The kill switch


@pytest.mark.parametrize("missing", ["data", "pipeline", "plugin"])
def test_the_kill_switch_in_the_environment_reads_nothing_at_all(shop, monkeypatch, missing):
    monkeypatch.setenv("DICAST_DISABLED", "1")
    if missing != "pipeline":
        shop.pipeline("metrics: [fake/act]\n" if missing == "data" else "metrics: [none/such]\n", "nightly.yaml")
    before = sorted(os.listdir(shop.folder))
    done = shop.dicast("run", "nightly.yaml", "--json")
    assert (done.code, done.json["disabled"], done.json["name"], done.json["subjects"]) == (0, True, "nightly", 0)
    assert sorted(os.listdir(shop.folder)) == before
    assert "disabled" in shop.dicast("run", "nightly.yaml").out


def test_the_kill_switch_holds_in_python_too(shop, monkeypatch):
    monkeypatch.setenv("DICAST_DISABLED", "1")
    for pipeline in (shop / "nightly.yaml", "nightly.yaml", {"metrics": ["none/such"]}, "metrics: [none/such]\n"):
        done = dicast.run(pipeline)
        assert (done.exit_code, done.disabled, done.subjects, done.verdicts) == (0, True, 0, [])
        assert done.name == ("pipeline" if "such" in str(pipeline) else "nightly")
    assert os.listdir(shop.folder) == []
