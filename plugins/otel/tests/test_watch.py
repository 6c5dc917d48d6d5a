"""``dicast watch --otlp`` in its own process, to which the real SDK of OpenTelemetry sends."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from importlib.metadata import entry_points

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")]

KILLS = 20
PIPELINE = """
source: {otel/receiver: {subjects: [turn, session], settle_seconds: 0.1, idle_seconds: 5}}
metrics: [proxy/format]
ledger: {ledger/sqlite: {path: watched.db}}
"""


class Sender(SpanExporter):
    """Exporter that hands each span to the real one until the receiver has acknowledged it."""

    def __init__(self, port):
        self._exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces", timeout=1)

    def export(self, spans):
        while self._exporter.export(spans) is not SpanExportResult.SUCCESS:
            time.sleep(0.05)
        return SpanExportResult.SUCCESS

    def shutdown(self):
        self._exporter.shutdown()


class Agent:
    """A program with conversations of two traces each, whose spans are sent one by one."""

    def __init__(self, port):
        self._provider = TracerProvider()
        self._provider.add_span_processor(SimpleSpanProcessor(Sender(port)))
        self._tracer = self._provider.get_tracer("agent")
        self.answered = []

    def talk(self, number):
        for turn in range(2):
            key = {"gen_ai.conversation.id": f"talk-{number}"}
            with self._tracer.start_as_current_span(
                "invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent", **key}
            ):
                messages = [
                    [{"role": role, "parts": [{"type": "text", "content": f"{role} {turn}"}]}]
                    for role in ("user", "assistant")
                ]
                with self._tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
                    span.set_attribute("gen_ai.input.messages", json.dumps(messages[0]))
                    span.set_attribute("gen_ai.output.messages", json.dumps(messages[1]))
            self.answered.append(f"talk-{number}/{turn + 1}")


def _verdicts(folder):
    with closing(connect(folder / "watched.db")) as database:
        rows = database.execute("SELECT subject_kind, subject_id FROM events WHERE type = 'eval.completed'").fetchall()
    return Counter(rows)


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a watch; all are ended with the test."""
    (tmp_path / "watch.yaml").write_text(PIPELINE)
    processes = []

    def run(*options):
        command = [sys.executable, "-m", "dicast", "watch", "watch.yaml", *options]
        with (tmp_path / f"err{len(processes)}").open("w") as errors:
            processes.append(subprocess.Popen(command, cwd=tmp_path, stdout=errors, stderr=errors))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.wait()


def _wait_for(port):
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("the receiver does not listen")


def test_no_acknowledged_span_is_lost_and_none_is_judged_twice_over_twenty_kills(start, tmp_path, unused_port):
    port, done = unused_port(), threading.Event()
    agents = [Agent(port) for _ in range(4)]

    def work(agent, name):
        number = 0
        while not done.is_set():
            agent.talk(f"{name}-{number}")
            number += 1
            time.sleep(0.05)  # agents without a pause would leave the watch no time

    threads = [threading.Thread(target=work, args=item, daemon=True) for item in zip(agents, "abcd", strict=True)]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    for kill in range(KILLS):
        process = start("--otlp", str(port))
        _wait_for(port)
        while (
            sum(len(agent.answered) for agent in agents) <= 4 * kill
        ):  # a busy machine may answer none in the time that follows
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(chance.uniform(0.05, 1.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = start("--otlp", str(port))
    _wait_for(port)
    done.set()
    for thread in threads:
        thread.join(200)
    process.send_signal(signal.SIGINT)
    process.wait(200)
    last = start("--once")
    assert last.wait(120) in (0, 1, 3), (tmp_path / f"err{KILLS + 1}").read_text()
    verdicts = _verdicts(tmp_path)
    turns = {id_: count for (kind, id_), count in verdicts.items() if kind == "turn"}
    answered = [id_ for agent in agents for id_ in agent.answered]
    assert len(answered) > 4 * KILLS
    assert turns == dict.fromkeys(answered, 1)
    assert all(
        count <= 2 for count in verdicts.values()
    )  # a session that was idle and went on is judged again as a whole


def test_a_watch_without_an_address_and_a_run_are_refused(start, tmp_path):
    assert start().wait(200) == 2
    assert "--otlp 4318" in (tmp_path / "err0").read_text()
