"""Log of experiments, one JSON object a line; logs of the tools autoresearch and pi-autoresearch are read too."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Problem
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

from .decision import DIRECTIONS, Before, Direction

LOG = "autoresearch.jsonl"
STATUSES = ("keep", "discard", "crash", "checks_failed")
ASI = ("hypothesis", "learned", "rollback_reason", "next_action_hint")
"""Side information of every entry; ``rollback_reason`` is null for a kept change."""


@attrs.frozen(kw_only=True)
class Experiment:
    """One entry of the log.

    :ivar experiment: its number, from 0 for the baseline, over all segments.
    :ivar primary_metric: None if nothing was measured.
    :ivar commit: the SHA of a kept change, else None.
    :ivar discarded_ref: the SHA of a discarded state, under ``refs/dicast/discarded/``.
    :ivar exit_code: exit code of a failed proposer, with the last lines of its ``stderr``.
    :ivar segment: counts the starts of the session; baseline and best value belong to one segment.
    :ivar cost: seconds and, if known, money.
    """

    experiment: int
    status: str
    hypothesis: str
    primary_metric: float | None
    secondary_metrics: Mapping[str, float] = attrs.field(factory=dict)
    commit: str | None = None
    discarded_ref: str | None = None
    description: str = ""
    learned: str = ""
    rollback_reason: str | None = None
    next_action_hint: str = ""
    timestamp: str = ""
    segment: int = 0
    confidence: float | None = None
    cost: Mapping[str, object] = attrs.field(factory=dict)
    reason: str = ""
    asi: Mapping[str, object] = attrs.field(factory=dict)
    exit_code: int | None = None
    stderr: str = ""


@attrs.frozen(kw_only=True)
class Config:
    """A header of the log: the metric of the following entries."""

    name: str
    metric: str
    unit: str = ""
    direction: Direction = "higher_is_better"


@attrs.frozen
class Log:
    """Content of a log: its *configs*, its *experiments*, the *segment* of the next experiment, and the number of *skipped* lines."""

    configs: tuple[Config, ...]
    experiments: tuple[Experiment, ...]
    segment: int
    skipped: int

    @property
    def current(self) -> list[Experiment]:
        """Experiments of the newest segment."""
        return [experiment for experiment in self.experiments if experiment.segment == self.segment]

    def before(self, validation: str | None = None) -> Before:
        """Return the runs of the newest segment for a decision; *validation* names the validation metric."""
        measured = [
            experiment
            for experiment in self.current
            if experiment.primary_metric is not None and math.isfinite(experiment.primary_metric)
        ]
        values = [experiment.primary_metric for experiment in measured if experiment.primary_metric is not None]
        kept_experiments = [experiment for experiment in measured if experiment.status == "keep"]
        guarded = kept_experiments[-1].secondary_metrics.get(validation) if kept_experiments and validation else None
        return Before(
            values,
            [experiment.primary_metric for experiment in kept_experiments if experiment.primary_metric is not None],
            guarded,
        )


def unit_of(metric: str) -> str:
    """Return the unit at the end of a metric's name: µs, ms, s, kb or mb; empty without one."""
    for suffix, unit in (("µs", "µs"), ("_ms", "ms"), ("_sec", "s"), ("_s", "s"), ("_kb", "kb"), ("_mb", "mb")):
        if metric.endswith(suffix):
            return unit
    return ""


def now() -> str:
    """Return the current time in the format of entries."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def append(path: Path, entry: Experiment | Config) -> None:
    """Add *entry* to the log at *path*; it is on the disk when this returns.

    :raises ConfigError: if it cannot be written, for example on a full disk.
    """
    line = json.dumps(_header(entry) if isinstance(entry, Config) else _entry(entry), ensure_ascii=False)
    try:
        before = read_bytes(path, MAX_DATA_BYTES)[-1:] if path.exists() else b"\n"
        with path.open("ab") as file:
            file.write((b"" if before in (b"\n", b"") else b"\n") + line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def _header(config: Config) -> dict[str, object]:
    direction = "higher" if config.direction == "higher_is_better" else "lower"
    return {
        "type": "config",
        "name": config.name,
        "metricName": config.metric,
        "metricUnit": config.unit,
        "bestDirection": direction,
    }


def _entry(experiment: Experiment) -> dict[str, object]:
    fields = attrs.asdict(experiment)
    without: dict[str, object] = {"reason": "", "asi": {}, "exit_code": None, "stderr": ""}
    return {name: value for name, value in fields.items() if name not in without or value != without[name]}


def check_side_information(entry: Mapping[str, object]) -> None:
    """Refuse an *entry* with missing or invalid side information.

    :raises ConfigError: naming all missing items.
    """
    is_kept = entry.get("status") == "keep"
    missing = []
    for name in ASI:
        value = entry.get(name)
        optional = name == "rollback_reason" and is_kept
        if not optional and (not isinstance(value, str) or not value.strip()):
            missing.append(Problem(f"an experiment needs its {name}: give --{name.replace('_', '-')}", path=name))
    if missing:
        raise ConfigError(missing)


def read(path: Path) -> Log:
    """Return the log at *path*; an empty one if there is no file.

    Blank lines, lines without a JSON object and entries of unknown types are skipped, as the original tools do.
    """
    try:
        data = read_bytes(path, MAX_DATA_BYTES)
    except FileNotFoundError:
        return Log((), (), 0, 0)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    return read_lines(data.decode(errors="replace").split("\n"))


def read_lines(lines: Iterable[str]) -> Log:
    """Return the log in *lines*."""
    configs: list[Config] = []
    experiments: list[Experiment] = []
    segment = skipped = 0
    for line in lines:
        entry = _object(line)
        if entry is None:
            skipped += bool(line.strip())
        elif entry.get("type") == "config":
            # a second header without a run in between starts no segment
            segment += any(experiment.segment == segment for experiment in experiments)
            configs.append(_config(entry))
        elif entry.get("type") in (None, "run", "experiment") and _is_run(entry):
            experiments.append(_experiment(entry, len(experiments), segment))
        else:
            skipped += entry.get("type") is None
    return Log(tuple(configs), tuple(experiments), segment, skipped)


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_run(entry: Mapping[str, Any]) -> bool:
    return any(name in entry for name in ("experiment", "run", "primary_metric", "metric", "status"))


def _config(entry: Mapping[str, Any]) -> Config:
    name, metric, unit = entry.get("name"), entry.get("metricName"), entry.get("metricUnit")
    return Config(
        name=name if isinstance(name, str) and name else "Autoresearch",
        metric=metric if isinstance(metric, str) else "metric",
        unit=unit if isinstance(unit, str) else "",
        direction=DIRECTIONS.get(str(entry.get("bestDirection")), "lower_is_better"),
    )


def _experiment(entry: Mapping[str, Any], number: int, segment: int) -> Experiment:
    """Return the experiment in *entry*, with the keys of this log or of the original tool."""
    original = "primary_metric" not in entry
    asi: dict[str, Any] = entry["asi"] if isinstance(entry.get("asi"), dict) else {}
    value = _finite(entry.get("metric") if original else entry["primary_metric"])
    own_segment = entry.get("segment")
    status = entry.get("status")
    texts = {name: _text(entry.get(name, asi.get(name))) for name in ASI}
    status = status if status in STATUSES else "keep"
    commit, ref = _text(entry.get("commit")) or None, _text(entry.get("discarded_ref")) or None
    if status != "keep" and not original:  # older logs have the discarded state in this key
        commit, ref = None, ref or commit
    return Experiment(
        experiment=_integer(entry.get("run") if original else entry.get("experiment"), number),
        status=status,
        primary_metric=0.0 if value is None and original else value,
        secondary_metrics=_numbers(entry.get("metrics") if original else entry.get("secondary_metrics")),
        commit=commit,
        discarded_ref=ref,
        description=_text(entry.get("description")),
        hypothesis=texts["hypothesis"],
        learned=texts["learned"],
        rollback_reason=texts["rollback_reason"] or None,
        next_action_hint=texts["next_action_hint"],
        timestamp=_time(entry.get("timestamp")),
        segment=own_segment
        if isinstance(own_segment, int) and not isinstance(own_segment, bool) and own_segment >= segment
        else segment,
        confidence=_finite(entry.get("confidence")),
        cost=entry["cost"] if isinstance(entry.get("cost"), dict) else {},
        reason=_text(entry.get("reason")),
        asi=asi,
        exit_code=_integer(entry.get("exit_code"), 0) if "exit_code" in entry else None,
        stderr=_text(entry.get("stderr")),
    )


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e308 and math.isfinite(value) else None


def _numbers(values: object) -> dict[str, float]:
    items = values.items() if isinstance(values, dict) else ()
    return {str(name): number for name, value in items if (number := _finite(value)) is not None}


def _integer(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _time(value: object) -> str:
    """Return an ISO time; the original tool has milliseconds."""
    milliseconds = _finite(value)
    if milliseconds is None:
        return _text(value)
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return ""
