"""A process is killed while it sends; the resumed run completes the trace."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter

import pytest

pytestmark = pytest.mark.slow

ROWS = 6_000


@pytest.fixture
def start(tmp_path, receiver):
    """Start ``dicast run`` over many rows in its own process."""
    rows = "".join(json.dumps({"id": f"r{number}", "output": "Ankara"}) + "\n" for number in range(ROWS))
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "run.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\n"
        "metrics: [proxy/format]\n"
        f"sinks: [telemetry/otel: {{endpoint: '{receiver.url}'}}]\n"
    )
    started = []

    def start(*arguments):
        command = [sys.executable, "-m", "dicast", "run", "run.yaml", "--json", *arguments]
        started.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for(condition):
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def finish(process) -> tuple[int, dict]:
    out, err = process.communicate(timeout=200)
    assert out, err.decode()
    return process.returncode, json.loads(out)


def sent(receiver) -> Counter[object]:
    """Return how often the span of each subject has arrived."""
    return Counter(receiver.attributes(span).get("dicast.subject.id", span.name) for span in receiver.spans())


def assert_whole(receiver, document):
    """Check that a receiver keyed by trace and span has each span once, and that spans of one key are equal, except the run's."""
    spans = {(span.trace_id, span.span_id): span for span in receiver.spans()}
    counts = Counter(receiver.attributes(span).get("dicast.subject.id", span.name) for span in spans.values())
    assert counts == Counter([*(f"r{number}" for number in range(ROWS)), "dicast run"])
    assert all(spans[span.trace_id, span.span_id] == span for span in receiver.spans() if span.name == "row")
    assert len({span.trace_id for span in spans.values()}) == 1
    [run] = [span for span in spans.values() if span.name == "dicast run"]
    assert receiver.attributes(run)["dicast.subjects"] == receiver.attributes(run)["dicast.scored"] == ROWS
    assert document["sinks"]["telemetry/otel"] == {"written": ROWS + 1, "lost": 0}


def test_a_trace_is_whole_after_a_kill_while_a_slow_collector_is_sent_to(start, receiver):
    receiver.seconds = 0.2
    process = start()
    wait_for(lambda: len(receiver.requests) >= 3)
    process.kill()
    process.communicate()
    before = sent(receiver)
    assert 0 < len(before) < ROWS
    receiver.seconds = 0.0
    code, document = finish(start("--resume"))
    assert code == 0
    assert_whole(receiver, document)
    assert {count for id, count in sent(receiver).items() if id in before} == {2}


def test_what_a_killed_process_had_lost_is_sent_by_the_next(start, receiver):
    receiver.answers = [503] * 12  # the first batch, each time that it is tried
    receiver.seconds = 0.2
    process = start()
    wait_for(lambda: receiver.requests)
    process.kill()
    process.communicate()
    receiver.answers, receiver.seconds = [], 0.0
    code, document = finish(start("--resume"))
    assert code == 0
    assert_whole(receiver, document)


def test_what_is_lost_while_it_is_told_again_is_counted(start, receiver):
    receiver.seconds = 0.2
    process = start()
    wait_for(lambda: len(receiver.requests) >= 3)
    process.kill()
    process.communicate()
    receiver.answers, receiver.seconds = [503] * 12, 0.0
    code, document = finish(start("--resume"))
    status = document["sinks"]["telemetry/otel"]
    assert code == 4
    assert status["lost"] > 0
    assert "503" in status["error"]
    assert "dicast run" in sent(receiver)
