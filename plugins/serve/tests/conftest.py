"""A ledger of small runs, and the application over it, asked without a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import dicast
from dicast_serve.application import application
from dicast_serve.guard import Tokens

READING, LABELLING = "reading-token-0123456789", "labelling-token-0123456789"
HOST = "127.0.0.1:8600"


def trace(folder: Path) -> Path:
    """A session of two turns."""
    lines = []
    for turn, model in ((1, "small"), (2, "large")):
        place = {"session_id": "s", "turn_id": f"s/{turn}", "time": f"2026-03-01T12:0{turn}:00.000Z"}
        texts = {"user_prompt_text": "Where is Canberra?", "final_response_text": f"In Australia, {turn}."}
        lines += [
            {"type": "route.decided", **place, "payload": {"chosen_model": model}},
            {"type": "llm.call_completed", **place, "payload": {"model": model, "cost_usd": "0.0012"}},
            {"type": "turn.completed", **place, "payload": {"stop_reason": "end_turn", "signals_extra": texts}},
        ]
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return a ledger with two runs. Each run judged two turns with two judges."""
    path = tmp_path / "ledger.db"
    for name in ("one", "two"):
        dicast.run(
            {
                "name": name,
                "source": {"traces/events": {"path": str(trace(tmp_path)), "subjects": ["turn"]}},
                "judges": [{"heuristic/turn": {"as": judge}} for judge in "ab"],
                "gate": {"on": "a", "min_score": 0.1},
                "ledger": {"ledger/sqlite": {"path": str(path)}},
            }
        )
    return path


@pytest.fixture
def client(ledger: Path) -> Iterator[TestClient]:
    """Asks the application over the ledger, with the reading token."""
    app = application([ledger], Tokens(READING, LABELLING), [HOST], "dicast_8600")
    with TestClient(app, f"http://{HOST}", raise_server_exceptions=False) as asking:
        asking.headers["authorization"] = f"Bearer {READING}"
        yield asking
