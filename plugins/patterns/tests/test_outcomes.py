from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Entry, Event, Query, RunContext
from dicast.testing import run_pipeline
from dicast_patterns import Outcome, Outcomes, Store

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


TIME = "2026-01-02T03:04:05.678Z"


def route(turn: str | None, model: object = "small", id_: str = "00") -> Event:
    return Event(id_, "route.decided", TIME, "run", {"chosen_model": model}, "s", turn)


def verdict(turn: str, eval_id: str, score: float, confidence: float = 0.9, *, kind="turn", judge="turn") -> Event:
    payload = {"eval_id": eval_id, "score": score, "confidence": confidence, "judge": judge}
    return Event(f"e-{eval_id}", "eval.completed", TIME, "run", payload, "s", None, kind, turn)


def written_counts(folder: Path, *batches: list[Event], read=None, resumed=False, **options) -> list[int]:
    """Return the numbers of rows that the sink reports for each batch, and for its close if it is not 0."""

    async def run() -> list[int]:
        context = RunContext("run", "test", folder, resumed=resumed)
        if read is not None:
            context = attrs.evolve(context, read=read)
        async with Outcomes("out/outcomes.db", **options).open(context) as live:
            counts = [live.write(batch) for batch in batches]
            return [*counts, *filter(None, (live.close(), live.close()))]

    return asyncio.run(run())


def outcomes(folder: Path) -> list[Outcome]:
    with closing(Store.opened(folder / "out" / "outcomes.db")) as store:
        return store.outcomes()


def rows(folder: Path, table: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / "out" / "outcomes.db")) as database:
        return database.execute(f"SELECT * FROM {table}").fetchall()


def test_each_model_has_count_and_mean_of_its_turns(tmp_path):
    routes = [route("a"), route("b"), route("c", "large")]
    verdicts = [verdict("a", "01", 1.0), verdict("b", "02", 0.5), verdict("c", "03", 0.25)]
    assert written_counts(tmp_path, [*routes, *verdicts]) == [3]
    assert outcomes(tmp_path) == [Outcome("large", 1, 0.25), Outcome("small", 2, 0.75)]


def test_a_verdict_that_is_told_again_changes_nothing(tmp_path):
    batch = [route("a"), verdict("a", "01", 0.5)]
    assert written_counts(tmp_path, batch, batch) == [1, 0]
    assert written_counts(tmp_path, batch) == [0]
    assert outcomes(tmp_path) == [Outcome("small", 1, 0.5)]


def test_a_newer_verdict_takes_the_place_of_the_older_in_any_order(tmp_path):
    written_counts(
        tmp_path, [route("a"), route("b"), verdict("a", "01", 0.0), verdict("b", "02", 0.5), verdict("a", "03", 1.0)]
    )
    assert outcomes(tmp_path) == [Outcome("small", 2, 0.75)]
    assert written_counts(tmp_path, [verdict("a", "02", 0.0)]) == [0]
    assert outcomes(tmp_path) == [Outcome("small", 2, 0.75)]


def test_an_unsure_verdict_is_kept_and_does_not_count(tmp_path):
    written_counts(tmp_path, [route("a"), verdict("a", "01", 0.0, 0.49)])
    assert outcomes(tmp_path) == []
    assert rows(tmp_path, "turns") == [("a", "01", 0.0, 0.49, None, None, None)]
    written_counts(tmp_path, [verdict("a", "02", 0.5, 0.5), verdict("a", "03", 1.0, 0.1)])
    assert outcomes(tmp_path) == [Outcome("small", 1, 0.5)]
    assert rows(tmp_path, "turns") == [("a", "03", 1.0, 0.1, "small", "02", 0.5)]


def test_how_sure_is_an_option(tmp_path):
    written_counts(tmp_path, [route("a"), verdict("a", "01", 1.0, 0.6)], min_confidence=0.7)
    assert outcomes(tmp_path) == []
    written_counts(tmp_path, [route("b"), verdict("b", "02", 1.0, 0.0)], min_confidence=0)
    assert outcomes(tmp_path) == [Outcome("small", 1, 1.0)]


def test_a_turn_that_nobody_routed_is_reported_once_and_kept_nowhere(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        unknown = [verdict(turn, f"0{turn}", 1.0) for turn in ("1", "2", "1")]
        assert written_counts(tmp_path, [route("a"), *unknown], [verdict("2", "09", 0.5), verdict("a", "10", 1.0)]) == [
            0,
            1,
        ]
    (record,) = caplog.records
    assert record.getMessage().endswith("2 turns have verdicts and no route.decided, so they count for no model: 1, 2")
    assert [row[0] for row in rows(tmp_path, "turns")] == ["a"]


def test_only_the_first_of_many_unknown_turns_are_named(tmp_path, caplog):
    written_counts(tmp_path, [verdict(str(number), f"{number:02}", 1.0) for number in range(9)])
    assert caplog.records[0].getMessage().endswith("model: 0, 1, 2, 3, 4, …")


def test_an_incomplete_route_says_nothing(tmp_path):
    written_counts(tmp_path, [route(None), route("a", None), route("b", ""), verdict("a", "01", 1.0)])
    assert rows(tmp_path, "routes") == rows(tmp_path, "turns") == []


def test_a_model_is_looked_for_in_what_earlier_runs_told(tmp_path):
    queries = []

    def read(query):
        queries.append(query.types)
        return iter([Entry(1, route("a", "large"), "", ""), Entry(2, route("b", "large"), "", "")])

    batch = [route("b"), verdict("a", "01", 1.0), verdict("b", "02", 0.5), verdict("c", "03", 0.5)]
    written_counts(tmp_path, batch, read=read)
    assert outcomes(tmp_path) == [Outcome("large", 1, 1.0), Outcome("small", 1, 0.5)]
    assert queries == [("route.decided",)]


@pytest.mark.parametrize("backwards", [False, True])
def test_of_several_routes_the_last_counts_wherever_they_are_told(tmp_path, backwards):
    routes = [route("a", "large", "01"), route("a", "small", "02"), route("a", None, "03")]
    routes = routes[::-1] if backwards else routes
    written_counts(tmp_path / "live", [*routes, verdict("a", "04", 1.0)])
    written_counts(
        tmp_path / "late", [verdict("a", "04", 1.0)], read=lambda _: (Entry(1, batch, "", "") for batch in routes)
    )
    assert outcomes(tmp_path / "live") == outcomes(tmp_path / "late") == [Outcome("small", 1, 1.0)]


def ledger_of(*events: Event):
    """Reads *events*, as the run's ledger does."""

    def read(query: Query):
        return iter([Entry(1, event, "", "") for event in events if event.type in query.types])

    return read


def test_a_run_that_is_taken_up_brings_what_only_the_ledger_has(tmp_path):
    first = [route("a"), verdict("a", "01", 1.0)]
    lost = [route("b", "large", "02"), verdict("b", "03", 0.5), verdict("a", "04", 0.5)]
    written_counts(tmp_path, first)
    assert written_counts(tmp_path, [verdict("b", "05", 0.25)], read=ledger_of(*first, *lost), resumed=True) == [1, 2]
    assert outcomes(tmp_path) == [Outcome("large", 1, 0.25), Outcome("small", 1, 0.5)]
    assert written_counts(tmp_path, read=ledger_of(*first, *lost), resumed=True) == []


def test_a_new_run_leaves_the_ledger_alone(tmp_path):
    assert written_counts(tmp_path, read=ledger_of(route("a"), verdict("a", "01", 1.0))) == []
    assert outcomes(tmp_path) == []


def test_an_older_run_that_is_taken_up_takes_nothing_from_a_newer_one(tmp_path):
    older = [route("a", "large", "01"), verdict("a", "02", 0.0)]
    written_counts(tmp_path, [route("a", "small", "03"), verdict("a", "04", 1.0)])
    written_counts(tmp_path, read=ledger_of(*older), resumed=True)
    assert outcomes(tmp_path) == [Outcome("small", 1, 1.0)]
    written_counts(tmp_path, [verdict("a", "05", 0.5)])
    assert outcomes(tmp_path) == [Outcome("small", 1, 0.5)]


def test_only_turns_count_and_only_the_judge_that_is_named(tmp_path):
    events = [route("a"), verdict("a", "01", 0.0, kind="session"), verdict("a", "02", 0.0, judge="other")]
    assert written_counts(tmp_path, [*events, verdict("a", "01", 1.0)], judge="turn") == [1]
    assert outcomes(tmp_path) == [Outcome("small", 1, 1.0)]


def test_a_turn_that_was_routed_anew_counts_for_its_new_model(tmp_path):
    written_counts(tmp_path, [route("a"), verdict("a", "01", 1.0), route("a", "large", "01"), verdict("a", "02", 0.5)])
    assert outcomes(tmp_path) == [Outcome("large", 1, 0.5)]
    assert rows(tmp_path, "models") == [("large", 1, 0.5), ("small", 0, 0.0)]


def test_a_batch_that_fails_is_not_taken_in_part(tmp_path):
    broken = attrs.evolve(verdict("a", "02", 0.5), payload={})

    async def run() -> None:
        async with Outcomes("out/outcomes.db").open(RunContext("run", "test", tmp_path)) as live:
            with pytest.raises(KeyError):
                live.write([route("a"), verdict("a", "01", 1.0), broken])
            assert outcomes(tmp_path) == []
            live.write([route("a"), verdict("a", "01", 1.0)])

    asyncio.run(run())
    assert outcomes(tmp_path) == [Outcome("small", 1, 1.0)]


@pytest.mark.parametrize("options", [{"min_confidence": 1.5}, {"min_confidence": -0.1}])
def test_confidence_outside_of_its_range_is_refused(options):
    with pytest.raises(ConfigError, match="min_confidence"):
        Outcomes("x", **options)


def test_another_kind_of_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "out" / "outcomes.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(ConfigError, match="another program"):
        written_counts(tmp_path)
    path.write_bytes(b"no database at all, but long enough to be read as one" * 50)
    with pytest.raises(ConfigError, match=r"cannot write .*outcomes\.db"):
        written_counts(tmp_path)


@pytest.mark.parametrize(
    ("version", "advice"), [(1, "give patterns/outcomes a new file"), (3, "upgrade dicast-patterns")]
)
def test_another_format_is_refused(tmp_path, version, advice):
    written_counts(tmp_path)
    with closing(sqlite3.connect(tmp_path / "out" / "outcomes.db")) as database:
        database.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(ConfigError, match=advice):
        written_counts(tmp_path)


def expected(verdicts: list[Event], routed: dict[str, str]) -> dict[str, tuple[int, float]]:
    """The mean over each turn's newest verdict that counts, by definition."""
    newest: dict[str, Event] = {}
    for event in sorted(verdicts, key=lambda event: event.payload["eval_id"]):
        if event.payload["confidence"] >= 0.5 and event.subject_id in routed:
            newest[event.subject_id] = event
    scores: dict[str, list[float]] = {}
    for turn, event in newest.items():
        scores.setdefault(routed[turn], []).append(event.payload["score"])
    return {model: (len(values), sum(values) / len(values)) for model, values in scores.items()}


@settings(deadline=None)  # files are written
@given(st.data())
def test_mean_is_that_of_the_newest_verdicts_whatever_the_order_and_however_often(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("outcomes")
    routed = data.draw(st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["small", "large"])))
    drawn = data.draw(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1), st.sampled_from([0.2, 0.5, 0.9]))))
    verdicts = [verdict(turn, f"{number:04}", score, sure) for number, (turn, score, sure) in enumerate(drawn)]
    again = data.draw(st.lists(st.sampled_from(verdicts))) if verdicts else []
    order = data.draw(st.permutations([*verdicts, *again]))
    cut = data.draw(st.integers(0, len(order)))
    written_counts(folder, [*(route(*pair) for pair in routed.items()), *order[:cut]])
    written_counts(folder, order[cut:])
    means_ = {outcome_.model: (outcome_.count, pytest.approx(outcome_.mean, abs=1e-9)) for outcome_ in outcomes(folder)}
    assert expected(verdicts, routed) == means_


def test_mean_stays_exact_over_many_evaluations(tmp_path):
    scores = [((number * 7919) % 1000) / 1000 for number in range(6000)]
    events = [verdict(str(number % 60), f"{number:06}", score) for number, score in enumerate(scores)]
    written_counts(tmp_path, [*(route(str(turn)) for turn in range(60)), *events])
    (outcome,) = outcomes(tmp_path)
    assert (outcome.count, outcome.mean) == (60, pytest.approx(sum(scores[-60:]) / 60, abs=1e-9))


def write_alone(folder: Path, first: int) -> None:
    for number in range(first, first + 50):
        written_counts(folder, [route(str(number)), verdict(str(number), f"{number:04}", number % 2)])


@pytest.mark.slow
def test_runs_at_the_same_time_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))  # where the processes find this module
    fresh = multiprocessing.get_context("spawn")
    processes = [fresh.Process(target=write_alone, args=(tmp_path, first)) for first in (0, 50, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert outcomes(tmp_path) == [Outcome("small", 150, pytest.approx(0.5, abs=1e-9))]


def trace(folder: Path, *turns: tuple[str, str, int]) -> Path:
    """A trace of turns, each with its model and how many tools it called."""
    lines = []
    for turn, model, calls in turns:
        about = {"session_id": "s", "turn_id": turn, "time": TIME}
        lines.append({**about, "type": "route.decided", "payload": {"chosen_model": model}})
        completed = {"stop_reason": "end_turn", "tool_call_count": calls}
        lines.append({**about, "type": "turn.completed", "payload": completed})
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


TURNS = [("t1", "small", 0), ("t2", "large", 25), ("t3", "large", 0)]
MEANS = {"large": (2, round((1.0 + 1.4 / 1.5) / 2, 6)), "small": (1, 1.0)}


def means(folder: Path) -> dict[str, tuple[int, float]]:
    return {outcome_.model: (outcome_.count, round(outcome_.mean, 6)) for outcome_ in outcomes(folder)}


def test_a_whole_run_fills_the_file(tmp_path):
    pipeline = f"""
source: {{traces/events: {{path: {trace(tmp_path, *TURNS)}}}}}
judges: [heuristic/turn]
sinks: [patterns/outcomes: {{path: {tmp_path}/out/outcomes.db}}]
"""
    for _ in range(2):
        done = run_pipeline(pipeline)
        assert done.document["sinks"] == {"patterns/outcomes": {"written": 3, "lost": 0}}
        assert means(tmp_path) == MEANS


def test_what_was_judged_again_from_the_ledger_counts(tmp_path):
    rest = f"""
sinks: [patterns/outcomes: {{path: {tmp_path}/out/outcomes.db}}]
ledger: {{ledger/sqlite: {{path: {tmp_path}/ledger.db}}}}
"""
    run_pipeline(f"source: {{traces/events: {{path: {trace(tmp_path, *TURNS)}}}}}\njudges: [heuristic/turn]" + rest)
    strict = tmp_path / "strict.yaml"
    text = dicast.rubric("turn-heuristic-v1").text.replace("id: turn-heuristic-v1", "id: strict")
    strict.write_text(text.replace("max_tool_calls: 20", "max_tool_calls: 30"))
    done = run_pipeline(
        f"source: {{traces/recorded: {{subject: turn}}}}\njudges: [heuristic/turn: {{rubric: {strict}}}]" + rest
    )
    assert done.document["sinks"] == {"patterns/outcomes": {"written": 3, "lost": 0}}
    assert means(tmp_path) == {"large": (2, 1.0), "small": (1, 1.0)}


KILLED = """
import os, signal, sys
from dicast_patterns import outcomes
outcomes.Feed.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.argv[0] = "dicast"
import runpy
runpy.run_module("dicast", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("first", "again"), [(["run"], ["--resume"]), (["watch", "--once"], [])])
def test_no_verdict_is_lost_with_a_process_that_is_killed(tmp_path, first, again):
    trace(tmp_path, *TURNS)
    (tmp_path / "p.yaml").write_text("""
source: {traces/events: {path: trace.jsonl}}
judges: [heuristic/turn]
sinks: [patterns/outcomes: {path: out/outcomes.db}]
ledger: {ledger/sqlite: {path: ledger.db}}
""")
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    command = [*first, "p.yaml", "--json"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *command], check=False, **options)
    assert killed.returncode == -signal.SIGKILL
    with closing(connect(tmp_path / "ledger.db")) as ledger:
        assert ledger.execute("SELECT count(*) FROM events WHERE type = 'eval.completed'").fetchone() == (3,)
    assert means(tmp_path) == {}
    done = subprocess.run([sys.executable, "-m", "dicast", *command, *again], check=False, **options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sinks"] == {"patterns/outcomes": {"written": 3, "lost": 0}}
    assert means(tmp_path) == MEANS
