from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from decimal import Decimal

import attrs
import pytest

from dicast import ConfigError, Entry, Event, RunContext, Secret
from dicast_azure import Monitor, rows

KEY = "7c1f4f5e-3f0a-4d59-9d4a-0123456789ab"


def event(type, payload, id=None, number=1) -> Event:
    return Event(f"{number:026d}", type, f"2026-01-02T03:04:{number:02d}.678Z", "r1", payload, "s1" if id else None, None,
                 "row" if id else None, id)  # fmt: skip


STARTED = event("run.started", {"task": "prompt/chat", "fingerprints": {"data": "d1"}, "security_level": "official"})
RECORD = {
    "row": {"id": "q1", "input": "the question"},
    "response": {"content": "the answer"},
    "responses": {
        "tone": {
            "content": "the answer",
            "metrics": {"score": 4, "latency_seconds": 0.25, "usage": {"prompt_tokens": 7}},
        },
        "truth": {"content": "the answer", "metrics": {}},
    },
    "metrics": {"score": 4},
}
FAILED = {"row": {"id": "q2"}, "error": "the server said no", "failure_mode": "judge_call_failed",
          "retry": {"attempts": 3, "max_attempts": 3, "history": []}}  # fmt: skip
AGGREGATE = event(
    "aggregate.completed", {"label": "score_stats", "name": "stats/score_stats", "result": {"overall": {"mean": 0.5}}}
)
COMPARISON = event("comparison.completed", {"label": "score_delta", "name": "stats/score_delta", "baseline": "r0",
                                            "result": {"criteria": {"tone": 0.3}}})  # fmt: skip
COMPLETED = event("run.completed", {"subjects": 2, "failed": 1, "cost": {"usd": Decimal("0.10"), "msat": 0}, "failed_subjects": [
    {"subject_kind": "row", "subject_id": f"q{n}", "failure_mode": "timeout", "error_message": "the words"} for n in range(5)]}, number=9)  # fmt: skip
RUN = [
    STARTED,
    event("record.completed", RECORD, "q1", 2),
    event("record.failed", FAILED, "q2", 3),
    AGGREGATE,
    COMPARISON,
    COMPLETED,
]


def send(ingested, *batches, run=None) -> list[int]:
    async def go() -> list[int]:
        monitor = Monitor(Secret(ingested.connection_string))
        async with monitor.open(run or RunContext("r1", "nightly", None)) as live:
            return [await live.write(batch) for batch in batches] + [live.close()]

    return asyncio.run(go())


def test_the_rows_of_an_experiment_arrive_under_their_names(ingested):
    assert send(ingested, RUN[:3], RUN[3:]) == [8, 3, 0]
    assert [name for name, _ in ingested.rows()] == [
        "experiment_start",
        *["llm_request", "llm_response"] * 3,
        "llm_retry_exhausted",
        "baseline_nightly_score_delta",
        "experiment_nightly_aggregates",
        "experiment_complete",
    ]
    assert {envelope["data"]["baseType"] for envelope in ingested.envelopes} == {"EventData"}
    assert {envelope["iKey"] for envelope in ingested.envelopes} == {KEY}
    assert all(row["experiment"] == "nightly" and row["security_level"] == "official" for _, row in ingested.rows())


def test_a_response_has_its_requests_sequence_its_duration_and_its_metrics(ingested):
    send(ingested, RUN)
    rows = ingested.rows()
    responses = [row for name, row in rows if name == "llm_response"]
    assert [row["azure_sequence"] for row in responses] == ["az-1", "az-2", "az-3"]
    assert [row["sequence"] for name, row in rows if name == "llm_request"] == ["az-1", "az-2", "az-3"]
    first = responses[0]
    assert (first["criterion"], first["subject_id"], first["duration"], first["metric_score"]) == (
        "tone",
        "q1",
        "0.25",
        "4",
    )
    assert json.loads(first["metric_usage"]) == {"prompt_tokens": 7}
    assert first["timestamp"] == "2026-01-02T03:04:02.678Z"
    assert responses[2]["error"] == "judge_call_failed"
    [exhausted] = [row for name, row in rows if name == "llm_retry_exhausted"]
    assert (exhausted["attempts"], exhausted["max_attempts"]) == ("3", "3")


def test_the_end_has_counts_costs_aggregates_and_the_first_three_failures(ingested):
    send(ingested, RUN)
    rows = dict(ingested.rows())
    complete = rows["experiment_complete"]
    assert (complete["rows"], complete["failures"], complete["cost_usd"], complete["cost_msat"]) == (
        "2",
        "1",
        "0.10",
        "0",
    )
    assert json.loads(complete["aggregates"]) == {"score_stats": {"overall": {"mean": 0.5}}}
    assert [failure["subject_id"] for failure in json.loads(complete["failures_detail"])] == ["q0", "q1", "q2"]
    assert json.loads(rows["experiment_nightly_aggregates"]["score_stats"]) == {"overall": {"mean": 0.5}}
    assert json.loads(rows["baseline_nightly_score_delta"]["criteria"]) == {"tone": 0.3}


def test_no_text_is_sent(ingested):
    send(ingested, RUN)
    sent = json.dumps(ingested.envelopes)
    assert [text for text in ("the question", "the answer", "the server said no", "the words") if text in sent] == []


def test_nothing_but_rows_is_sent_and_nothing_is_read_from_the_environment(ingested, monkeypatch):
    elsewhere = f"InstrumentationKey={KEY[:-2]}00;IngestionEndpoint=http://127.0.0.1:9"
    monkeypatch.setenv("APPLICATIONINSIGHTS_CONNECTION_STRING", elsewhere)
    monkeypatch.setenv("APPLICATIONINSIGHTS_AUTHENTICATION_STRING", "Authorization=AAD")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    called, connect = [], socket.socket.connect

    def watched(self, address):
        called.append(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setenv("APPLICATIONINSIGHTS_METRIC_NAMESPACE_OPT_IN", "true")
    before, threads = dict(os.environ), threading.active_count()
    send(ingested, RUN)
    send(ingested, [SUITE_STARTED, *RUN[1:]], run=of_suite(name="trial/plain"))
    [metric] = [
        envelope["data"]["baseData"] for envelope in ingested.envelopes if envelope["data"]["baseType"] == "MetricData"
    ]
    assert metric["metrics"] == [{"name": "experiment_count", "value": 2, "count": 1}]  # without a namespace
    assert set(ingested.paths) == {"POST /v2.1/track"}
    assert {f"http://{host}:{port}" for host, port in called} == {ingested.endpoint}
    assert dict(os.environ) == before
    assert threading.active_count() <= threads + 1


def test_a_batch_that_failed_is_sent_when_told_again(ingested):
    ingested.answers = [503]

    async def go() -> int:
        async with Monitor(Secret(ingested.connection_string)).open(RunContext("r1", "nightly", None)) as live:
            with pytest.raises(Exception, match="did not accept 11 rows"):
                await live.write(RUN)
            return await live.write(RUN)

    assert asyncio.run(go()) == 11
    assert len(ingested.rows()) == 11
    assert dict(ingested.rows())["llm_retry_exhausted"]["azure_sequence"] == "az-3"


def test_a_batch_whose_conversion_failed_is_converted_and_sent_by_the_next_try(ingested, monkeypatch):
    original, calls = rows._prefixed, []

    def failed_once(metrics):
        calls.append(metrics)
        if len(calls) == 2:
            raise TimeoutError("the conversion took too long")
        return original(metrics)

    monkeypatch.setattr(rows, "_prefixed", failed_once)

    async def go() -> int:
        async with Monitor(Secret(ingested.connection_string)).open(RunContext("r1", "nightly", None)) as live:
            with pytest.raises(TimeoutError):
                await live.write(RUN)
            return await live.write(RUN)

    assert asyncio.run(go()) == 11
    assert len(ingested.rows()) == 11
    requests = [row["azure_sequence"] for name, row in ingested.rows() if name == "llm_request"]
    assert requests == ["az-1", "az-2", "az-3"]


@pytest.mark.parametrize("status", [206, 307, 400, 401, 402, 404, 500])
def test_what_the_endpoint_does_not_take_whole_is_an_error(ingested, status):
    ingested.answers = [status]
    with pytest.raises(Exception, match="did not accept"):
        send(ingested, RUN)
    assert set(ingested.paths) == {"POST /v2.1/track"}


def test_an_endpoint_that_cannot_be_reached_is_an_error():
    async def go() -> None:
        unreachable = f"InstrumentationKey={KEY};IngestionEndpoint=http://127.0.0.1:9"
        async with Monitor(Secret(unreachable)).open(RunContext("r1", "nightly", None)) as live:
            await live.write(RUN)

    with pytest.raises(Exception, match="did not accept"):
        asyncio.run(go())


def taken_up(*stops) -> RunContext:
    """Return the context of a run that is resumed after these stops."""
    return RunContext(
        "r1", "nightly", None, resumed=True, read=lambda query: iter([Entry(1, stop, "", "") for stop in stops])
    )


def test_what_is_told_again_is_sent_again_as_it_was(ingested):
    send(ingested, RUN[:2])
    first = ingested.rows()
    send(ingested, RUN, run=taken_up())
    again = ingested.rows()[len(first) :]
    assert again[: len(first)] == first
    keys = [(name, row["event_id"], row.get("criterion")) for name, row in again]
    assert len(set(keys)) == len(keys) == 11
    assert dict(again)["llm_response"]["azure_sequence"] == "az-3"


@pytest.mark.parametrize(("lost", "again"), [(0, 0), (1, 5)])
def test_what_came_before_an_orderly_stop_is_sent_again_only_where_a_sink_had_lost_something(ingested, lost, again):
    sinks = {"azure/monitor": {"written": 9, "lost": lost}}
    stop = event("run.stopped", {"reason": "interrupted", "sinks": sinks}, number=4)
    send(ingested, [*RUN[:2], stop, *RUN[2:]], run=taken_up(stop))
    rows = ingested.rows()
    assert len(rows) == again + 6
    assert dict(rows)["llm_response"]["azure_sequence"] == "az-3"
    assert dict(rows)["experiment_complete"]["security_level"] == "official"
    assert [name for name, _ in rows].count("experiment_complete") == 1


@pytest.mark.slow
def test_what_was_under_way_at_a_kill_is_sent_by_the_process_that_takes_the_run_up(ingested, tmp_path):
    rows = 1_500
    (tmp_path / "rows.jsonl").write_text(
        "".join(f'{{"id": "r{n}", "output": {{"score": 0.5}}}}\n' for n in range(rows))
    )
    (tmp_path / "run.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nextractors: [score_extractor/scores]\n"
        f"sinks: [azure/monitor: {{connection_string: '{ingested.connection_string}'}}]\n"
    )
    command = [sys.executable, "-m", "dicast", "run", "run.yaml", "--json"]
    ingested.seconds = 0.3
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 100
        while len(ingested.paths) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    assert 0 < len(ingested.rows()) < 2 * rows
    ingested.seconds = 0.0
    done = subprocess.run([*command, "--resume"], cwd=tmp_path, stdout=subprocess.PIPE, check=True, timeout=200)
    arrived = {(name, row["event_id"], row.get("criterion")): row for name, row in ingested.rows()}
    assert len({row["subject_id"] for (name, *_), row in arrived.items() if name == "llm_response"}) == rows
    assert len(arrived) == 2 * rows + 2
    assert json.loads(done.stdout)["sinks"]["azure/monitor"] == {"written": 2 * rows + 2, "lost": 0}


SUITE = {"id": "suite1", "experiments": ["plain", "strict"]}
SUITE_STARTED = event("run.started", {**STARTED.payload, "suite": SUITE})


def of_suite(*earlier, name="trial/strict") -> RunContext:
    """Return the context of a run of the suite, in a ledger with the *earlier* runs: each run's name and the payloads of its ends."""
    events_by_type: dict[str, list[Event]] = {"run.started": [], "run.completed": []}
    for number, (other, *ends) in enumerate([*earlier, (name,)], 1):
        run_id = "r1" if other == name else f"other{number}"
        events_by_type["run.started"].append(
            Event(f"s{number}", "run.started", STARTED.time, run_id, {"name": other, "suite": SUITE})
        )
        for end in ends:
            events_by_type["run.completed"].append(Event(f"e{number}", "run.completed", STARTED.time, run_id, end))
    events_by_type["run.started"].append(
        Event("s0", "run.started", STARTED.time, "alien", {"name": "trial/plain", "suite": None})
    )
    events_by_type["run.completed"].append(
        Event("e0", "run.completed", STARTED.time, "alien", {"subjects": 100, "failed": 100, "cost": {}})
    )

    def read(query):
        assert query.types
        events = [
            event_
            for type_ in query.types
            for event_ in events_by_type.get(type_, [])
            if query.run_id in (None, event_.run_id)
        ]
        events = events[::-1] if query.newest_first else events
        return iter([Entry(1, event_, "", "") for event_ in events[: query.limit]])

    return RunContext("r1", name, None, read=read)


PLAIN = {"subjects": 6, "failed": 2, "cost": {"usd": "0.25", "msat": "0"}}


def test_a_suites_first_run_says_before_its_beginning_what_the_suite_has(ingested):
    assert send(ingested, [SUITE_STARTED, COMPLETED], run=of_suite(name="trial/plain")) == [4, 0]
    rows = ingested.rows()
    assert [name for name, _ in rows] == ["suite_preflight", "experiment_start", "experiment_complete"]
    (_, preflight) = rows[0]
    assert (preflight["suite"], json.loads(preflight["experiments"])) == ("suite1", ["plain", "strict"])
    assert preflight["experiment_count"] == "2"
    [(name, value, properties)] = ingested.metrics()
    assert (name, value, properties["suite"], properties["event_id"]) == (
        "experiment_count",
        2,
        "suite1",
        SUITE_STARTED.id,
    )
    assert {row["suite"] for _, row in rows} == {"suite1"}
    assert {envelope["iKey"] for envelope in ingested.envelopes} == {KEY}


def test_a_suites_last_run_sums_up_the_suite_with_its_end(ingested):
    before = {**PLAIN, "failed": 6}  # what it came to before its failures were retried
    send(ingested, [SUITE_STARTED, COMPLETED], run=of_suite(("trial/plain", before, PLAIN)))
    rows = ingested.rows()
    assert [name for name, _ in rows] == ["experiment_start", "experiment_complete", "suite_summary"]
    summary = rows[-1][1]
    assert (summary["suite"], summary["rows"], summary["failures"]) == ("suite1", "8", "3")
    assert (summary["cost_usd"], summary["cost_msat"]) == ("0.35", "0")
    assert (summary["experiment_count"], summary["completed"]) == ("2", "2")
    assert "missing" not in summary
    assert ingested.metrics() == []


def test_a_suite_is_summed_up_without_what_has_not_completed_and_says_so(ingested):
    send(ingested, [SUITE_STARTED, COMPLETED], run=of_suite(("trial/plain",)))
    summary = dict(ingested.rows())["suite_summary"]
    assert (summary["completed"], json.loads(summary["missing"]), summary["rows"]) == ("1", ["plain"], "2")


def test_a_sum_of_costs_of_which_one_is_unknown_is_left_out(ingested):
    send(
        ingested, [SUITE_STARTED, COMPLETED], run=of_suite(("trial/plain", {**PLAIN, "cost": {"usd": None, "msat": 0}}))
    )
    summary = dict(ingested.rows())["suite_summary"]
    assert "cost_usd" not in summary
    assert summary["cost_msat"] == "0"


def test_a_suite_is_summed_up_again_when_an_earlier_run_of_it_is_completed_late(ingested):
    send(ingested, [SUITE_STARTED, COMPLETED], run=of_suite(("trial/strict", PLAIN), name="trial/plain"))
    summary = dict(ingested.rows())["suite_summary"]
    assert (summary["completed"], summary["rows"]) == ("2", "8")


def test_a_suite_whose_last_run_was_stopped_is_not_summed_up(ingested):
    stop = event("run.stopped", {"reason": "interrupted", "subjects": 1, "failed": 0, "cost": {}}, number=9)
    send(ingested, [SUITE_STARTED, stop], run=of_suite(("trial/plain", PLAIN)))
    assert [name for name, _ in ingested.rows()] == ["experiment_start", "experiment_complete"]


def test_a_run_that_is_of_no_suite_says_nothing_of_one(ingested):
    send(ingested, [event("run.started", {**STARTED.payload, "suite": None}), COMPLETED])
    assert [name for name, _ in ingested.rows()] == ["experiment_start", "experiment_complete"]
    assert ingested.metrics() == []
    assert not any("suite" in row for _, row in ingested.rows())


@pytest.mark.parametrize("answers", [[503], [200, 503]])
def test_a_suites_beginning_of_which_a_part_was_not_taken_is_sent_again_whole(ingested, answers):
    ingested.answers = answers

    async def go() -> int:
        async with Monitor(Secret(ingested.connection_string)).open(of_suite(name="trial/plain")) as live:
            with pytest.raises(Exception, match="did not accept 3 rows"):
                await live.write([SUITE_STARTED])
            return await live.write([SUITE_STARTED])

    assert asyncio.run(go()) == 3
    assert {name for name, _ in ingested.rows()} == {"suite_preflight", "experiment_start"}
    assert [(name, value) for name, value, _ in ingested.metrics()] == [("experiment_count", 2)]


def test_what_was_sent_of_a_suite_before_an_orderly_stop_is_not_sent_again(ingested):
    stop = event(
        "run.stopped", {"reason": "interrupted", "sinks": {"azure/monitor": {"written": 3, "lost": 0}}}, number=4
    )
    context = of_suite(("trial/strict", PLAIN), name="trial/plain")
    both = lambda query: iter([Entry(1, stop, "", "")]) if "run.stopped" in query.types else context.read(query)  # noqa: E731
    again = attrs.evolve(context, resumed=True, read=both)
    send(ingested, [SUITE_STARTED, stop, COMPLETED], run=again)
    assert [name for name, _ in ingested.rows()] == ["experiment_complete", "suite_summary"]
    assert ingested.metrics() == []


@pytest.mark.slow
def test_a_suite_of_two_is_told_from_its_preflight_to_its_summary(ingested, tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"id": "r{n}", "output": {{"score": 0.5}}}}\n' for n in range(3)))
    (tmp_path / "run.yaml").write_text(
        "name: trial\nsource: {rows/jsonl: {path: rows.jsonl}}\nextractors: [score_extractor/scores]\n"
        f"sinks: [azure/monitor: {{connection_string: '{ingested.connection_string}'}}]\n"
        "experiments: {plain: {}, strict: {}}\n"
    )
    command = [sys.executable, "-m", "dicast", "run", "run.yaml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True, timeout=200)
    names = [(name, row["experiment"]) for name, row in ingested.rows() if not name.startswith("llm_")]
    assert names == [
        ("suite_preflight", "trial/plain"),
        ("experiment_start", "trial/plain"),
        ("experiment_complete", "trial/plain"),
        ("experiment_start", "trial/strict"),
        ("experiment_complete", "trial/strict"),
        ("suite_summary", "trial/strict"),
    ]
    rows = dict(ingested.rows())
    assert json.loads(rows["suite_preflight"]["experiments"]) == ["plain", "strict"]
    summary = rows["suite_summary"]
    assert (summary["rows"], summary["failures"], summary["completed"], summary["cost_usd"]) == ("6", "0", "2", "0")
    assert len({row["suite"] for _, row in ingested.rows()}) == 1
    assert [(name, value) for name, value, _ in ingested.metrics()] == [("experiment_count", 2)]
    told_lost = [
        experiment["sinks"]["azure/monitor"]["lost"] for experiment in json.loads(done.stdout)["experiments"].values()
    ]
    assert told_lost == [0, 0]


@pytest.mark.parametrize("text", ["", KEY, f"InstrumentationKey={KEY}", "InstrumentationKey=x;IngestionEndpoint=http://localhost",
                                   f"InstrumentationKey={KEY};IngestionEndpoint=localhost", ";;=="])  # fmt: skip
def test_a_connection_string_names_its_key_and_its_endpoint(text):
    with pytest.raises(ConfigError, match="InstrumentationKey") as caught:
        Monitor(Secret(text))
    assert KEY not in str(caught.value)
