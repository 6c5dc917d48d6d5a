"""Judged runs of workloads, read from a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from dicast import ConfigError, Cost, Entry, Event, InvalidCost, Ledger, Query, named_run, nearest, started_runs

KIND = "workload"
_TERMINAL = ("eval.completed", "eval.failed")


@attrs.frozen
class Judged:
    """One run of a workload and its results.

    *score* and *confidence* are of its newest verdict, None without a verdict; amounts are in usd, None if unknown;
    *context* is the whole context from the source.
    """

    id: str
    workload: str
    model: str | None
    score: float | None
    confidence: float | None
    judge_kind: str | None
    cost: Decimal | None
    baseline: Decimal | None
    context: Mapping[str, Any]

    @property
    def saved(self) -> Decimal | None:
        """The cost of the baseline less the cost of the run; negative for a run that was more expensive."""
        return None if self.cost is None or self.baseline is None else self.baseline - self.cost


@attrs.frozen
class Reading:
    """The judged runs of workloads in one or more runs of dicast: their ids and names, the *judge*'s label, and the runs in order."""

    runs: tuple[tuple[str, str], ...]
    judge: str
    judged: tuple[Judged, ...]


def read(ledger: Ledger, run_ids: Sequence[str], label: str | None, only: Sequence[str] = ()) -> Reading:
    """Read the subjects that the runs *run_ids* judged, with the verdicts of the judge *label*; with *only*, only these workloads.

    If a run was judged more than once, the newest verdict counts.

    :raises ConfigError: if a run, the label or a workload is missing, or the label is ambiguous.
    """
    runs = list(dict.fromkeys(_run(ledger, run_id) for run_id in run_ids))
    ends: list[Entry] = []
    contexts: dict[str, Mapping[str, Any]] = {}
    for run_id, _ in runs:
        for entry in ledger.read(Query(run_id, ("subject.read", *_TERMINAL), KIND)):
            event = entry.event
            if event.type == "subject.read":
                contexts[str(event.subject_id)] = _context(event)
            else:
                ends.append(entry)
    terminal = [entry.event for entry in sorted(ends, key=lambda entry: entry.seq)]
    label = _label(terminal, label)
    newest = _newest(event for event in terminal if event.payload["judge"] == label)
    judged = [_judged(event, contexts.get(id_) or _looked_up(ledger, id_)) for id_, event in newest.items()]
    return Reading(tuple(runs), label, tuple(_chosen(judged, only)))


def _run(ledger: Ledger, run_id: str) -> tuple[str, str]:
    """Return the id and the name of the named run; ``last`` is the newest run that judged workloads."""
    if run_id == "last":
        runs = (entry.event.run_id for entry in started_runs(ledger.read))
        run_ = next((run for run in runs if _judged_workloads(ledger, run)), None)
        if run_ is None:
            raise ConfigError("the ledger has no judged workloads; judge some with the source workload/runs")
        run_id = run_
    run_id = named_run(ledger, run_id)
    event = next(ledger.read(Query(run_id=run_id, types=("run.started",), limit=1))).event
    return run_id, str(event.payload.get("name"))


def _judged_workloads(ledger: Ledger, run_id: str) -> bool:
    query = Query(run_id=run_id, types=("eval.started",), subject_kind=KIND, limit=1)
    return next(iter(ledger.read(query)), None) is not None


def _context(event: Event) -> Mapping[str, Any]:
    content = event.payload.get("content")
    if not isinstance(content, Mapping):
        message = (
            f"the ledger keeps digests of what run {event.run_id} read, and not the runs' models and costs; "
            "judge them again with ledger/sqlite content: store"
        )
        raise ConfigError(message)
    context: Mapping[str, Any] = content.get("context") or {}
    return context


def _looked_up(ledger: Ledger, subject_id: str) -> Mapping[str, Any]:
    """Return the context of a subject from the earlier run that read it."""
    query = Query(types=("subject.read",), subject_kind=KIND, subject_id=subject_id, newest_first=True, limit=1)
    return next((_context(entry.event) for entry in ledger.read(query)), {})


def _label(terminal: Sequence[Event], label: str | None) -> str:
    labels = list(dict.fromkeys(str(event.payload["judge"]) for event in terminal))
    own = [name for name in labels if not name.startswith("recorded/")]  # scores of other tools count only by name
    if not labels:
        raise ConfigError("this run judged no workloads; name another one with --run")
    if label is None and len(own) > 1:
        raise ConfigError(f"several judges have judged these workloads: name one with --judge ({', '.join(labels)})")
    if label is not None and label not in labels:
        near = nearest(label, labels)
        hint = f", did you mean {near!r}?" if near else ""
        raise ConfigError(f"no judge {label!r} has judged these workloads{hint} (there is: {', '.join(labels)})")
    return label or (own or labels)[0]


def _newest(terminal: Iterable[Event]) -> dict[str, Event]:
    """Return the last verdict of each subject, or a failure if there is no verdict, in the order of judging."""
    newest: dict[str, Event] = {}
    for event in terminal:
        before = newest.setdefault(str(event.subject_id), event)
        if event.type == "eval.completed" or before.type != "eval.completed":
            newest[str(event.subject_id)] = event
    return newest


def _judged(event: Event, context: Mapping[str, Any]) -> Judged:
    payload: Mapping[str, Any] = event.payload
    model = context.get("model")
    return Judged(
        str(event.subject_id),
        str(context.get("workload") or event.subject_id),
        None if model is None else str(model),
        payload.get("score"),
        payload.get("confidence"),
        payload.get("judge_kind"),
        _amount(context.get("cost_usd")),
        _amount(context.get("baseline_cost_usd")),
        context,
    )


def _amount(value: object) -> Decimal | None:
    """Return an amount, or None for a value of another source that is no amount."""
    try:
        return Cost(Decimal(repr(value)) if isinstance(value, float) else value).amount
    except InvalidCost:
        return None


def _chosen(judged: Sequence[Judged], only: Sequence[str]) -> Sequence[Judged]:
    names = sorted({run.workload for run in judged})
    for name in only:
        if name not in names:
            near = nearest(name, names)
            raise ConfigError(
                f"no workload {name!r} was judged"
                + (f", did you mean {near!r}?" if near else "")
                + f" (there is: {', '.join(names)})"
            )
    return [run for run in judged if run.workload in only] if only else judged
