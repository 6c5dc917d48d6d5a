"""Checks that the columns of a ledger equal the columns computed from its events, with all forms of verdicts, readings and open judgments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import attrs

from .._kernel.values import Entry, Event, Query
from .._kernel.values.clock import Clock
from ..reading.activity import ACTIVITY_TYPES, read_activity
from ..reading.open_judgments import read_open_judgments
from ..reading.verdict_columns import read_pricing_version, read_verdicts
from .leases import LeaseConformance
from .ledger_events import make_event
from .pipeline import Bench

_RUNS, _JUDGES = ("run-1", "run-2", "run-3"), ("metrics", "judge")
_OUTCOMES: Sequence[dict[str, Any]] = (
    {"score": 0.25, "confidence": 0.5},
    {"score": 1, "confidence": 1},
    {"score": None, "raw": 12.5, "confidence": 0.0},
    {"score": None, "raw": None, "confidence": 0.0},
    {"score": 1.5, "confidence": 1.0},
    {"score": "high", "confidence": 1.0},
    {"confidence": 1.0},
)
_COSTS: Sequence[dict[str, Any]] = (
    {"judge_cost_usd": "0"},
    {"judge_cost_usd": "0.0125", "judge_cost_msat": "0"},
    {"judge_cost_usd": "1E-15", "judge_cost_msat": "2.5"},
    {"judge_cost_usd": None, "judge_cost_msat": "70"},
)
_SIGNALS: Sequence[dict[str, Any]] = (
    {},
    {"signals": {"escalated": True}},
    {"signals": {"flags_negative": ["explicit_thumbs_down"]}},
    {"signals": {"escalation_skipped": "budget_exhausted"}, "fingerprint": "f1", "judge_pricing_version": "v1"},
)


@attrs.frozen
class EventsOnly:
    """A ledger whose columns readers make from its events."""

    _ledger: Any

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the entries of the ledger."""
        entries: Iterator[Entry] = self._ledger.read(query)
        return entries


def judged_events(clock: Clock, count: int) -> list[Event]:
    """Return *count* events about verdicts, readings, calls and judgments of three runs, the same payloads each time. Some payloads lack members or have odd values."""
    random, events = Random(count), list[Event]()  # test data
    for number in range(count):
        id_ = random.choice((str(number), "row-1", "Zürich \N{SNOWMAN}"))
        about = {"subject_kind": random.choice(("row", "turn")), "subject_id": id_}
        place = {**about, "session_id": random.choice((None, "s1")), "turn_id": random.choice((None, f"t{number}"))}
        run_id = random.choice(_RUNS)
        judged = {"eval_id": f"{run_id} {random.randrange(1 + count // 9)}", "judge": random.choice(_JUDGES), **about}
        origin = {"judge_kind": "llm", "judge_model": None, "rubric_id": "r", "rubric_version": "1"}
        outcome = {**random.choice(_OUTCOMES), **random.choice(_COSTS), **random.choice(_SIGNALS)}
        payloads = {
            "subject.read": random.choice(({"digest": f"{number:064x}", "content": None}, {"digest": "none"}, {})),
            "eval.started": judged,
            "eval.completed": {**judged, **origin, **outcome},
            "eval.failed": random.choice((judged, about)),
            "route.decided": random.choice(({"chosen_model": f"m{number % 3}"}, {})),
            "llm.call_completed": random.choice(({"model": "m", "cost_usd": "0.1"}, {})),
            "record.completed": {},
            "record.failed": {"error": "x"},
            "run.paused": {},
        }
        type_, payload = random.choice([*payloads.items()])
        event = make_event(clock, type_, payload, run_id=run_id, **place)
        events.append(attrs.evolve(event, time=f"2026-01-01T00:{number % 60:02}:00.00{number % 7}Z"))
    return events


def column_values(ledger: Any) -> dict[str, Any]:
    """Return the values of all columns of *ledger*, and of the columns of each run, as text."""
    values = dict[str, Any]()
    for run_id in (None, *_RUNS, "no such run"):
        verdicts = read_verdicts(ledger, run_id)
        numbers = ("seqs", "times", "flags", "scores", "confidences", "usd", "msat")
        values |= {f"{name} of {run_id}": repr([*getattr(verdicts, name)]) for name in numbers}
        origins = [verdicts.origins[code] for code in verdicts.codes]
        values[f"prices of {run_id}"] = read_pricing_version(ledger, run_id)
        values[f"verdicts of {run_id}"] = repr((origins, verdicts.ids, verdicts.exact))
        for types in (ACTIVITY_TYPES, ACTIVITY_TYPES[1:3]):
            activity = read_activity(ledger, run_id, types)
            places = [activity.origins[code] for code in activity.codes]
            figures = [*activity.seqs], [*activity.content_hashes], activity.ids, places
            values[f"{types} of {run_id}"] = repr(figures)
        values[f"open judgments of {run_id}"] = [
            (entry.seq, entry.event.id, entry.event.payload) for entry in read_open_judgments(ledger, run_id)
        ]
    return values


class ColumnConformance(LeaseConformance):
    """Checks for ledgers that keep columns along with their events."""

    def test_columns_are_those_of_its_events(self, component: Any, bench: Bench, clock: Clock) -> None:
        """The columns of verdicts and activity and the open judgments equal the values computed from the events, also in a reopened ledger."""
        events = judged_events(clock, 700)

        async def append(live: Any) -> Any:
            for part in (events[:350], events[350:352], *((event,) for event in events[352:370]), events[370:]):
                live.append(part)
            return column_values(live), column_values(EventsOnly(live))

        async def read(live: Any) -> Any:
            return column_values(live), column_values(EventsOnly(live))

        for use in (append, read):
            values, expected = self.opened(component, bench.folder, use)
            assert [name for name in expected if values[name] != expected[name]] == []
