"""``dicast plan --scale``: estimate of large runs, by slopes that are measured on this machine."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from dicast import ConfigError, Query, read_ledger
from dicast.toolkit.terminal import Part
from dicast.toolkit.text_table import TextTable

from .document import Plan

VERDICTS = (10**6, 10**8, 10**9)
"""Numbers of verdicts that are estimated."""

_FIRST, _LEAST, _MOST = 16, 8, 16_384
"""Subjects of the first trial, and the fewest and most subjects of a trial."""

_ENOUGH_SECONDS = 1.0
"""Duration from which a trial is long enough for a slope."""

_PAIRS, _MOST_PAIRS, _PAIRS_SECONDS = 3, 40, 2.0
"""Fewest and most pairs of a short and a long trial, and the seconds for more than the fewest. The slope is the median of the pairs."""

_DAY_HOURS = 24
_VERDICTS = ("eval.completed", "eval.failed")


@attrs.frozen
class Trial:
    """Resources of a run of *subjects* subjects: CPU and clock seconds, bytes of the ledger, and verdicts."""

    subjects: int
    cpu: float
    clock: float
    bytes: int
    verdicts: int


@attrs.frozen
class Slopes:
    """Resources of one verdict, by pairs of trials with *short* and *long* numbers of subjects.

    *cpu*, *clock* and *bytes* have a value for each pair.
    """

    short: int
    long: int
    verdicts_per_subject: float
    cpu: Sequence[float]
    clock: Sequence[float]
    bytes: Sequence[float]

    def document(self) -> dict[str, Any]:
        """Return the slopes as JSON data: the median of the pairs, and the bounds of their middle half."""
        return {
            "subjects": [self.short, self.long],
            "verdicts_per_subject": self.verdicts_per_subject,
            **{name: _spread(getattr(self, name)) for name in ("cpu", "clock", "bytes")},
        }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return {"mid": median(values), "low": low, "high": high}


def scale_document(plan: Plan) -> dict[str, Any]:
    """Return the estimates for 10^6, 10^8 and 10^9 verdicts as JSON data.

    Judges without cost judge some of the subjects, into a ledger of a temporary folder. Judges that cost money are not called: their time and
    cost come from the earlier run, and so do the bytes.

    :raises ConfigError: if the source has too few subjects for a slope.
    """
    slopes, reasons = (_measured(plan), {}) if plan.is_free else _recorded(plan)
    each = 1.0 if slopes is None else slopes.verdicts_per_subject
    return {
        "slopes": None if slopes is None else slopes.document(),
        "verdicts": [_estimate(plan, count, slopes, math.ceil(count / each)) for count in VERDICTS],
        "reasons": reasons,
    }


def _estimate(plan: Plan, verdicts: int, slopes: Slopes | None, subjects: int) -> dict[str, Any]:
    figures = plan.at_scale(subjects)
    cpu = None if slopes is None or not slopes.cpu else median(slopes.cpu) * verdicts / 3600
    clock = figures["seconds"]
    if slopes is not None and slopes.clock:
        clock = median(slopes.clock) * verdicts
    return {
        "verdicts": verdicts,
        "subjects": subjects,
        "hours": None if clock is None else clock / 3600,
        "core_hours": cpu,
        "cores": None if cpu is None else max(1, math.ceil(cpu / _DAY_HOURS)),
        "bytes": None if slopes is None else round(median(slopes.bytes) * verdicts),
        "cost": figures["cost"],
    }


def _measured(plan: Plan) -> Slopes:
    """Return the slopes of trials, each the double of the one before until a trial is long enough."""
    if plan.subjects < _LEAST:
        message = f"the source has {plan.subjects} subjects, but --scale needs {_LEAST} or more for a slope: add rows"
        raise ConfigError(message)
    count = min(_FIRST, plan.subjects)
    trial = _trial(plan, count)
    while trial.clock < _ENOUGH_SECONDS and count < min(plan.subjects, _MOST):
        count = min(2 * count, plan.subjects, _MOST)
        trial = _trial(plan, count)
    short = count // 4
    pairs: list[tuple[Trial, Trial]] = []
    ends = time.monotonic() + _PAIRS_SECONDS
    while len(pairs) < _PAIRS or (time.monotonic() < ends and len(pairs) < _MOST_PAIRS):
        pairs.append((_trial(plan, short), _trial(plan, count)))
    more = [large.verdicts - small.verdicts for small, large in pairs]
    if min(more) <= 0:
        raise ConfigError("the trials of --scale made no verdict: check the pipeline with dicast run --head 8")
    return Slopes(
        short,
        count,
        pairs[-1][1].verdicts / count,
        [max(0.0, large.cpu - small.cpu) / n for (small, large), n in zip(pairs, more, strict=True)],
        [max(0.0, large.clock - small.clock) / n for (small, large), n in zip(pairs, more, strict=True)],
        [(large.bytes - small.bytes) / n for (small, large), n in zip(pairs, more, strict=True)],
    )


def _trial(plan: Plan, subjects: int) -> Trial:
    with TemporaryDirectory() as folder:
        path, cpu, clock = Path(folder, "ledger"), _cpu_seconds(), time.perf_counter()
        outcome = plan.subject.trial(subjects, path)
        cpu, clock = _cpu_seconds() - cpu, time.perf_counter() - clock
        stopped = outcome.document["stopped"]
        if stopped is not None:
            raise ConfigError(
                f"a trial of --scale was not completed: {stopped['reason']}; fix the cause, then plan again"
            )
        return Trial(subjects, cpu, clock, _size(Path(folder)), _verdicts(path))


def _recorded(plan: Plan) -> tuple[Slopes | None, dict[str, str]]:
    """Return the bytes of a verdict of the earlier run, and the reasons for figures that are unknown."""
    reasons = {"core_hours": "the judges cost money, so --scale does not call them; their time is mostly waiting"}
    if plan.run_id is None:
        return None, {**reasons, "bytes": "no earlier run of the file has verdicts: add --pilot 20 for a pilot"}
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger")
        plan.subject.copy(plan.run_id, path)
        verdicts, subjects = _verdicts(path), plan.judged
        size = _size(Path(folder))
    if not verdicts or not subjects:
        return None, {**reasons, "bytes": f"run {plan.run_id} has no verdict"}
    return Slopes(0, subjects, verdicts / subjects, [], [], [size / verdicts]), reasons


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its child processes that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _verdicts(path: Path) -> int:
    return read_ledger(path, lambda ledger: sum(1 for _ in ledger.read(Query(types=_VERDICTS))))


def scale_parts(scale: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the estimates as a line about the slopes, a table, and a line for each unknown figure."""
    slopes = scale["slopes"]
    if slopes is not None and slopes["cpu"] is not None:
        short, long = slopes["subjects"]
        cpu = {name: value * 1e6 for name, value in slopes["cpu"].items()}
        yield (
            f"scale: {cpu['mid']:,.0f} µs of CPU a verdict ({cpu['low']:,.0f} to {cpu['high']:,.0f}), "
            f"measured on {short:,} and {long:,} subjects"
        )
    rows = [_row(estimate) for estimate in scale["verdicts"]]
    columns = ("verdicts", "hours", "core hours", f"cores for {_DAY_HOURS} h", "ledger", "cost")
    yield TextTable(columns, rows, right=columns)
    yield from (f"no {name.replace('_', ' ')}: {reason}" for name, reason in scale["reasons"].items())


def _row(estimate: Mapping[str, Any]) -> list[object]:
    hours = [None if estimate[name] is None else _hours(estimate[name]) for name in ("hours", "core_hours")]
    cores = None if estimate["cores"] is None else f"{estimate['cores']:,}"
    size = None if estimate["bytes"] is None else _bytes(estimate["bytes"])
    return [f"{estimate['verdicts']:,}", *hours, cores, size, _cost(estimate["cost"])]


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _bytes(size: int) -> str:
    unit, name = (1e12, "TB") if size >= 1e12 else (1e9, "GB") if size >= 1e9 else (1e6, "MB")
    return f"{size / unit:,.3g} {name}"


def _cost(cost: Mapping[str, Mapping[str, str | None]]) -> str | None:
    texts = []
    for unit, amounts in cost.items():
        if amounts["high"] is None:
            return None
        if amounts["high"] != "0":
            is_bound = amounts["mid"] is None
            texts.append(f"{'<= ' if is_bound else ''}{_rounded(amounts['high' if is_bound else 'mid'])} {unit}")
    return ", ".join(texts) or "0 usd"


def _rounded(amount: str | None) -> str:
    return f"{float(amount or 0):,.2f}"
