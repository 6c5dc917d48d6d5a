"""Ledgers with given events, and the commands on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dicast import Event
from dicast.testing import MemoryLedger

RUBRIC = {"rubric_id": "turn-heuristic-v1", "rubric_version": "1.2.0"}


class Written:
    """Builder of a ledger. Each ``judged`` adds a verdict with the events around it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._numbers = count(1)

    def tell(self, type: str, payload: dict[str, Any], **columns: Any) -> None:
        columns = {"time": "2026-03-01T12:00:00.000Z", "run_id": "R1"} | columns
        self.events.append(Event(id=f"E{next(self._numbers):08d}", type=type, payload=payload, **columns))

    def run(self, run_id: str = "R1", **started: Any) -> None:
        self.tell("run.started", {"name": "a-run", **started}, run_id=run_id)

    def read(self, id: str, text: str, *, kind: str = "turn", **columns: Any) -> None:
        payload = {"digest": sha256(text.encode()).hexdigest(), "content": {"output": text}}
        self.tell("subject.read", payload, subject_kind=kind, subject_id=id, **columns)

    def started(self, id: str, judge: str = "helpful", *, kind: str = "turn", rubric=RUBRIC, **columns: Any) -> str:
        eval_id = f"V{next(self._numbers):08d}"
        payload = {"eval_id": eval_id, "subject_kind": kind, "subject_id": id, "judge": judge, **rubric}
        self.tell("eval.started", payload, subject_kind=kind, subject_id=id, **columns)
        return eval_id

    def judged(
        self,
        id: str,
        score: float,
        judge: str = "helpful",
        *,
        kind: str = "turn",
        confidence: float = 1.0,
        cost: str | None = "0",
        msat: str = "0",
        signals: dict[str, Any] | None = None,
        judge_kind: str = "llm",
        judge_model: str | None = "grader",
        rubric: dict[str, str] = RUBRIC,
        fingerprint: str = "0" * 64,
        **columns: Any,
    ) -> None:
        eval_id = self.started(id, judge, kind=kind, rubric=rubric, **columns)
        payload = {
            "eval_id": eval_id,
            "subject_kind": kind,
            "subject_id": id,
            "judge": judge,
            "score": score,
            "confidence": confidence,
            "judge_kind": judge_kind,
            "judge_model": judge_model,
            "judge_cost_usd": cost,
            "judge_cost_msat": msat,
            "signals": signals or {},
            "fingerprint": fingerprint,
            **rubric,
        }
        self.tell("eval.completed", payload, subject_kind=kind, subject_id=id, **columns)

    def failed(self, id: str, judge: str = "helpful", *, kind: str = "turn", rubric=RUBRIC, **columns: Any) -> None:
        eval_id = self.started(id, judge, kind=kind, rubric=rubric, **columns)
        payload = {
            "eval_id": eval_id,
            "subject_kind": kind,
            "subject_id": id,
            "judge": judge,
            "failure_mode": "timeout",
        }
        self.tell("eval.failed", payload, subject_kind=kind, subject_id=id, **columns)

    def routed(self, turn: str, model: str, **columns: Any) -> None:
        self.tell("route.decided", {"chosen_model": model}, session_id="S1", turn_id=turn, **columns)

    def called(self, turn: str, model: str, **columns: Any) -> None:
        self.tell("llm.call_completed", {"model": model}, session_id="S1", turn_id=turn, **columns)

    def thumbed(
        self, turn: str, rating: str = "thumbs_down", time: str = "2026-03-01T12:00:00.000Z", **payload: Any
    ) -> None:
        thumb = {"scope": "turn", "subject_turn_id": turn, "rating": rating} | payload
        self.tell("feedback.explicit", thumb, session_id="S1", turn_id=turn, time=time)


@pytest.fixture(scope="session")
def make_ledger() -> type[Written]:
    """Return the builder of ledgers, for a test that needs several."""
    return Written


@pytest.fixture
def ledger() -> Written:
    """Return a builder of a ledger."""
    return Written()


@pytest.fixture
def ask(ledger: Written, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that runs a command on the ledger and returns its document, or with ``as_json=False`` its output."""
    memory = MemoryLedger()

    async def with_live(function: Callable[..., Any]) -> Any:
        async with memory.open() as live:
            live.append(ledger.events)
            ledger.events.clear()
            return function(live)

    def run(command: click.Command, *arguments: str, as_json: bool = True) -> Any:
        module = f"dicast_quality.{command.name}"
        monkeypatch.setattr(f"{module}.read_ledger", lambda path, function: asyncio.run(with_live(function)))
        options = [*arguments, *(["--json"] if as_json else [])]
        done = CliRunner().invoke(command, options, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if as_json else done.output

    return run


@pytest.fixture(autouse=True, params=["one by one", "a column at a time"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the way of computing figures. Every test of this plugin runs in both ways."""
    monkeypatch.setattr("dicast.reading.columns.MANY_ROWS", 1 if request.param == "a column at a time" else 2**62)
    return str(request.param)
