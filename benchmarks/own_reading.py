"""Make the ledger that ``reading`` reads: ``python own_reading.py FOLDER VERDICTS``.

A small trace is run for real; its events are then written again, through the ledger's own ``append``, for as many turns as give so many
verdicts: two judges, in two runs over the same turns, every tenth verdict paid for, one in a hundred failed.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

import dicast
from dicast import Event, Query, read_ledger
from dicast_ledger import Sqlite

BATCH = 10_000
TRACE = (
    ("route.decided", {"chosen_model": "small"}),
    (
        "llm.call_completed",
        {"model": "small", "usage": {"input_tokens": 100, "output_tokens": 20}, "cost_usd": "0.0012"},
    ),
    (
        "turn.completed",
        {
            "stop_reason": "end_turn",
            "tool_call_count": 0,
            "signals_extra": {"user_prompt_text": "Where is Canberra?", "final_response_text": "In Australia."},
        },
    ),
)
JUDGES = ("a", "b")
MODELS = ("small", "middle", "large")


def templates(folder: Path) -> Sequence[Event]:
    """The events of a real run over one turn."""
    lines = [
        {
            "type": type_,
            "time": f"2026-03-01T12:00:0{second}.000Z",
            "session_id": "s",
            "turn_id": "t",
            "payload": payload,
        }
        for second, (type_, payload) in enumerate(TRACE)
    ]
    trace, ledger = folder / "one.jsonl", folder / "one.db"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    dicast.run(
        {
            "name": "nightly",
            "source": {"traces/events": {"path": str(trace), "subjects": ["turn"]}},
            "judges": [{"heuristic/turn": {"as": judge}} for judge in JUDGES],
            "gate": {"on": "a", "min_score": 0.1},
            "ledger": {"ledger/sqlite": {"path": str(ledger)}},
        }
    )
    return read_ledger(ledger, lambda live: [entry.event for entry in live.read(Query())])


class Telling:
    """Writes the recorded events again, for other turns and at other times."""

    def __init__(self, events: Sequence[Event], verdicts: int) -> None:
        self._events, self._turns = events, max(1, verdicts // 4)
        self._draw, self._number = random.Random(7), 0
        self._began = datetime.now(UTC) - timedelta(hours=2)

    def events(self) -> Iterator[Event]:
        """The events of two runs, the second over the same turns as the first."""
        for run in ("01RUNAAAAAAAAAAAAAAAAAAAAA", "01RUNBBBBBBBBBBBBBBBBBBBBB"):
            first, *turn, last = self._events
            yield self._event(first, run)
            for number in range(self._turns):
                yield from self._turn(turn, run, number)
            whole = {**last.payload, "run_id": run, "subjects": self._turns, "scored": self._turns}
            yield self._event(last, run, payload=whole)

    def _event(self, event: Event, run: str, **fields: Any) -> Event:
        self._number += 1
        time = self._began + timedelta(milliseconds=self._number // 1000)
        written = f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"
        given = {"id": f"{self._number:026d}", "time": written, "run_id": run, **fields}
        return attrs.evolve(event, **given)

    def _turn(self, events: Sequence[Event], run: str, number: int) -> Iterator[Event]:
        session, turn = f"session-{number // 5}", f"session-{number // 5}/{number % 5}"
        place = {"session_id": session, "turn_id": turn}
        for event in events:
            payload = dict(event.payload)
            if event.subject_kind is None:
                if "chosen_model" in payload:
                    payload["chosen_model"] = MODELS[number % 3]
                yield self._event(event, run, payload=payload, **place)
                continue
            if event.type == "subject.read":
                payload["digest"] = f"{number:064x}"
                payload["content"] = {
                    "input": "Where is Canberra?",
                    "output": f"In Australia, {number}.",
                    "context": {},
                }
            else:
                payload |= {"eval_id": f"{run[5]}{number:024d}{payload['judge']}", "subject_id": turn}
            yield from self._judged(event, run, payload, place | {"subject_id": turn})

    def _judged(self, event: Event, run: str, payload: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
        if event.type == "eval.completed":
            if self._draw.random() < 0.01:
                kept = {
                    key: payload[key] for key in ("eval_id", "subject_kind", "subject_id", "judge", "judge_cost_usd")
                }
                failed = {**kept, "failure_mode": "timeout", "error_message": "no answer", "judge_latency_ms": 0}
                yield self._event(event, run, type="eval.failed", payload=failed, **place)
                return
            payload |= {"score": round(self._draw.random(), 4), "confidence": round(self._draw.random(), 2)}
            if self._draw.random() < 0.1:
                payload |= {"judge_kind": "llm", "judge_model": "grader", "judge_cost_usd": "0.0004"}
                paid = {
                    "reservation_id": None,
                    "amount": "0.0004",
                    "unit": "usd",
                    "eval_id": payload["eval_id"],
                    "calls": 1,
                    "judge": payload["judge"],
                    "model": "grader",
                    "tokens": 300,
                    "metric": payload["judge"],
                }
                yield self._event(event, run, type="spend.settled", payload=paid, **place)
        yield self._event(event, run, payload=payload, **place)


async def write(folder: Path, verdicts: int) -> None:
    """The ledger ``ledger.db`` in *folder*."""
    batch = []
    async with Sqlite(folder / "ledger.db").open() as ledger:
        for event in Telling(await asyncio.to_thread(templates, folder), verdicts).events():
            batch.append(event)
            if len(batch) == BATCH:
                ledger.append(batch)
                batch = []
        ledger.append(batch)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
