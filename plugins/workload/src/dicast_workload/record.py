"""One finished run of a workload, as the harness wrote it down, made into a subject."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import orjson

from dicast import DataError, Problem, Subject, identifier, nearest

from .assertions import RunFacts, TurnFacts, check, outcome
from .definition import Definition, refuse_misspelt
from .documents import Fault, dotted
from .sections import Section

TEXTS = ("output", "final_response_text", "assistant_response_text")
"""Names of the final text; the first that holds one counts."""

PINNED = ("suite_version", "commit", "branch", "dirty", "pricing_version", "temperature", "seed_passes")
"""Of these a suite's runs have one value each."""

TIMES = ("start", "end")
PROVENANCE = (*PINNED, "models", "seed", *TIMES)
COUNTS = ("llm_calls", "hard_failures", "delegate_calls")
AMOUNTS = ("cost_usd", "baseline_cost_usd")
OWN_KEYS = (
    "workload",
    "run",
    "model",
    "input",
    "session_id",
    "per_turn_scores",
    "assertion_failures",
    "assertions_checked",
    "turns",
)
KEYS = (*OWN_KEYS, *TEXTS, *PROVENANCE, *COUNTS, *AMOUNTS, "provenance")
_ELSEWHERE = frozenset((*TEXTS, *PROVENANCE, "input", "session_id"))
"""Keys that are not in a subject's context under their own name."""


@attrs.frozen
class Reader:
    """Makes subjects of runs. *workloads* is the suite, None without a suite."""

    workloads: Mapping[str, Definition] | None

    def subject(self, record: Mapping[str, Any]) -> Subject:
        """Return the subject that *record* describes.

        :raises DataError: (without a place) with all its faults.
        """
        faults: list[Fault] = []
        run = Section((), record, faults)
        refuse_misspelt(run, KEYS, (), faults)
        name = self._workload(run, faults)
        definition = (self.workloads or {}).get(name)
        money = {key: run.amount(key) for key in AMOUNTS}
        facts = _facts(run, money["cost_usd"])
        model, session_id = run.text("model"), run.text("session_id")
        id_ = _id(record, name, model, faults)
        _check_judged(run, faults)
        provenance = _provenance(run, definition, faults)
        if faults:
            raise DataError(
                Problem(fault.message, path=dotted(fault.path) or None, value=fault.value, hint=fault.hint)
                for fault in faults
            )
        context = {key: value for key, value in record.items() if key not in _ELSEWHERE}
        context |= {"provenance": provenance}
        context |= {key: None if amount is None else format(amount, "f") for key, amount in money.items()}
        prompt = record.get("input")
        if definition is not None:
            context |= _defined(definition, facts, record)
            prompt = "\n\n".join(definition.prompts) or None if prompt is None else prompt
        return Subject("workload", id_, prompt, _final(record), context=context, session_id=session_id)

    def _workload(self, run: Section, faults: list[Fault]) -> str:
        name = run.text("workload")
        if not name and not faults:
            faults.append(Fault(("workload",), "the run needs 'workload', the name of the workload of this run"))
        elif name and self.workloads is not None and name not in self.workloads:
            names = ", ".join(self.workloads)
            message = f"unknown workload {name!r} (the suite has {names})"
            faults.append(Fault(("workload",), message, name, nearest(name, self.workloads)))
        return name or ""


def _id(record: Mapping[str, Any], workload: str, model: str | None, faults: list[Fault]) -> str:
    """Return a run's own id. A number is unique for this workload and model alone, so the id then has all three."""
    run = record.get("run")
    try:
        run_id = identifier(None if isinstance(run, bool) else run, "run")
    except DataError as error:
        faults += [Fault(("run",), problem.message, run) for problem in error.problems]
        return ""
    return run_id if isinstance(run, str) else "/".join(filter(None, (workload, model, run_id)))


def _facts(run: Section, cost: Decimal | None) -> RunFacts:
    llm_calls, hard_failures, delegate_calls = map(run.count, COUNTS)
    turns = None if run.data.get("turns") is None else tuple(map(_turn, run.sections("turns")))
    return RunFacts(_as_text(_final(run.data)), cost, llm_calls, hard_failures, delegate_calls, turns)


def _turn(turn: Section) -> TurnFacts:
    """Calls are counted, or listed."""
    calls = turn.data.get("tool_calls")
    listed = len(calls) if isinstance(calls, list) else turn.count("tool_calls")
    counted = turn.count("tool_call_count")
    text = _as_text(_text(turn.data))
    return TurnFacts(listed if counted is None else counted, text, turn.text("stop_reason"))


def _check_judged(run: Section, faults: list[Fault]) -> None:
    """Refuse values that heuristic/workload would refuse, before the run starts."""
    scores = run.data.get("per_turn_scores")
    if scores is not None and not (isinstance(scores, list) and all(map(_is_score, scores))):
        faults.append(Fault(("per_turn_scores",), "per_turn_scores is a list of numbers from 0 to 1", scores))
    for name in ("assertion_failures", "assertions_checked"):
        if not isinstance(run.data.get(name), list):
            run.count(name)


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _provenance(run: Section, definition: Definition | None, faults: list[Fault]) -> dict[str, object]:
    """Return the provenance of the run, from its top level or from ``provenance``, and its suite's version."""
    top_level = {key: run.data[key] for key in PROVENANCE if run.data.get(key) is not None}
    under = {key: value for key, value in run.section("provenance").data.items() if value is not None}
    for key in top_level.keys() & under.keys():
        if top_level[key] != under[key] or isinstance(top_level[key], bool) != isinstance(under[key], bool):
            message = f"{key} is {under[key]!r:.80} here and {top_level[key]!r:.80} beside the other keys; keep one"
            faults.append(Fault(("provenance", key), message, under[key]))
    for key in TIMES:
        for path, values in (((key,), top_level), (("provenance", key), under)):
            if key in values and instant(values[key]) is None:
                faults.append(Fault(path, f"{key} is an ISO 8601 time, not {values[key]!r:.80}", values[key]))
    values = top_level | under
    if definition is not None and definition.suite_version is not None:
        values.setdefault("suite_version", definition.suite_version)
    return values


def instant(time: object) -> datetime | None:
    """Return the instant of an ISO 8601 *time*, UTC without an offset; None for any other value."""
    try:
        parsed = datetime.fromisoformat(time)  # type: ignore[arg-type]  # what is no text is a TypeError
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _defined(definition: Definition, facts: RunFacts, record: Mapping[str, Any]) -> dict[str, object]:
    """Return the suite's additions to a run: the outcome of the assertions, and the way it is judged."""
    block = definition.evaluate
    hints = {key: block[key] for key in ("grounding_tokens", "forbidden_grounding") if block.get(key)}
    judged = {"evaluate": dict(block), "signal_strength": definition.signal_strength, **hints}
    return judged | outcome(check(definition, facts), record)


def _final(record: Mapping[str, Any]) -> object:
    """Return the final text, ``""`` if its key is empty; without such a key the last turn's text, None without a text."""
    text_ = _text(record)
    turns = record.get("turns")
    if text_ is None and isinstance(turns, list) and turns and isinstance(turns[-1], Mapping):
        return _text(turns[-1])
    return text_


def _text(record: Mapping[str, Any]) -> object:
    texts = [record[key] for key in TEXTS if key in record]
    return next((text for text in texts if text), "") if texts else None


def _as_text(output: object) -> str | None:
    return output if output is None or isinstance(output, str) else orjson.dumps(output).decode()
