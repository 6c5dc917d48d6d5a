"""A watch whose judge costs money, stopped and killed while answers are on their way."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import pytest

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


DICAST = Path(sys.executable).with_name("dicast")
SESSIONS, CONCURRENT, SECONDS = 12, 4, 200.0
PIPELINE = """\
source: {{traces/events: {{path: trace.jsonl, subjects: [turn, session]}}}}
judges:
- llm/judge:
    as: paid
    on: [turn]
    rubric: turn-llm-v1
    model: {{openai/chat: {{base_url: "{url}", model: m, price: {{input_per_mtok: 1, output_per_mtok: 1}}}}}}
- heuristic/session: {{children: paid}}
executor: {{dicast/async: {{concurrency: {at_once}}}}}
ledger: {{ledger/sqlite: {{path: watched.db}}}}
"""


def rows(folder):
    if not (folder / "watched.db").exists():
        return []
    with closing(connect(folder / "watched.db")) as database:
        try:
            rows_ = database.execute("SELECT type, subject_kind, subject_id, payload FROM events ORDER BY seq")
            return [(type, kind, id, json.loads(payload)) for type, kind, id, payload in rows_]
        except sqlite3.OperationalError:
            return []  # it is just being made


def wait_for(condition, process):
    until = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_being_judged_is_judged_by_the_next_watch_and_bought_once(tmp_path, chat_server, how):
    payload_ = {
        "stop_reason": "end_turn",
        "signals_extra": {"user_prompt_text": "Where?", "final_response_text": "There."},
    }
    with (tmp_path / "trace.jsonl").open("w") as trace:
        for number in range(SESSIONS):
            common = {"session_id": f"s{number}", "time": "2026-01-31T12:00:00Z"}
            turn = {"type": "turn.completed", "turn_id": f"t{number}", "payload": payload_}
            end = {"type": "session.ended", "payload": {"disposition": "completed"}}
            trace.write("".join(json.dumps(event_ | common) + "\n" for event_ in (turn, end)))
    (tmp_path / "watch.yaml").write_text(PIPELINE.format(url=chat_server.url, at_once=CONCURRENT))
    chat_server.latency = 0.4

    def watch():
        return subprocess.Popen([DICAST, "watch", "watch.yaml"], cwd=tmp_path, stderr=subprocess.DEVNULL)

    requests_ = 0
    for _ in range(2):
        with watch() as process:
            wait_for(lambda: chat_server.count >= requests_ + CONCURRENT, process)  # noqa: B023 - called at once
            process.send_signal(how)
            assert process.wait(SECONDS) == (130 if how == signal.SIGINT else -how)
        requests_ = chat_server.count
    with watch() as process:
        wait_for(lambda: [row[:2] for row in rows(tmp_path)].count(("eval.completed", "session")) == SESSIONS, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    rows_ = rows(tmp_path)
    started = Counter(payload["eval_id"] for type, _, _, payload in rows_ if type == "eval.started")
    ends = [(kind, id, payload["eval_id"]) for type, kind, id, payload in rows_ if type == "eval.completed"]
    assert sorted(eval_id for *_, eval_id in ends) == sorted(started)
    assert Counter(end[:2] for end in ends).total() == len({end[:2] for end in ends}) == 2 * SESSIONS
    assert set(started.values()) == {1}
    assert chat_server.count <= SESSIONS + 2 * CONCURRENT  # each stop loses what was on its way, and no more
    settled = Counter(id for type, _, id, payload in rows_ if type == "spend.settled" and payload.get("reply"))
    assert settled == Counter(f"t{number}" for number in range(SESSIONS))
