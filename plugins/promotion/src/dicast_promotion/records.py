"""Scores of a candidate and its baseline, read from a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

import attrs

from dicast import ALL_METRICS, ConfigError, Event, Ledger, Query, mean, nearest
from dicast.reporting import value_of

from .gates import GATES, OVERALL, Evidence, Gates, Shadow

Row = tuple[int, str, str, str, float]
"""The run (0 the baseline, 1 the candidate), the label, the kind and id of the subject, and the score."""


@attrs.frozen
class Standing:
    """Comparison of two runs by the verdicts of *label*.

    *baseline*, *candidate* and *both* are the number of subjects with a score in either run and in both. *differs* has the names of the
    judges, metrics and settings that are not equal in both runs.
    """

    label: str
    evidence: Evidence
    baseline: int
    candidate: int
    both: int
    differs: tuple[str, ...]


class Records:
    """Scores of two runs, in a temporary database that is deleted with the process."""

    def __init__(self, ledger: Ledger, baseline: str, candidate: str) -> None:
        self._ledger = ledger
        self._runs = (baseline, candidate)
        self._first, self._last = "", ""
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE scores (side INTEGER, label, kind, id, value REAL, PRIMARY KEY (side, label, kind, id)) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Delete the database."""
        self._database.close()

    def standing(self, label: str | None, gates: Gates) -> Standing:
        """Return the comparison by *label*; the default is the combined verdict, or the only label.

        :raises ConfigError: if one of the runs has no scores of the label.
        """
        fingerprints = [self._read(side) for side in (0, 1)]
        label = self._compared(label)
        scores, margins = dict(self._means()), dict(self._margins())
        scores[OVERALL] = scores[label]
        if label in margins:
            margins[OVERALL] = margins[label]
        evidence = Evidence(scores, margins, Shadow.of(self._pairs(label), gates.tie_margin), self._hours())
        compared = {label}.union(*(getattr(gates, state).beat_baseline for state in GATES))
        return Standing(
            label,
            evidence,
            self._count(0, label),
            self._count(1, label),
            evidence.shadow.samples,
            tuple(_differences(compared, *fingerprints)),
        )

    def _read(self, side: int) -> Mapping[str, str]:
        """Add the newest verdict of each label and subject of a run; return the fingerprints of the run."""
        fingerprints: Mapping[str, str] = {}

        def rows() -> Iterator[Row]:
            nonlocal fingerprints
            for entry in self._ledger.read(Query(self._runs[side], ("run.started", "eval.completed"))):
                if entry.event.type == "run.started":
                    fingerprints = dict(entry.event.payload.get("fingerprints") or {})  # type: ignore[call-overload]  # JSON
                    continue
                if side:
                    self._first, self._last = self._first or entry.event.time, entry.event.time
                yield from _rows(side, entry.event)

        self._database.execute("BEGIN")  # one transaction for all rows
        self._database.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?)", rows())
        self._database.execute("COMMIT")
        return fingerprints

    def _compared(self, label: str | None) -> str:
        baseline, candidate = (
            {str(name) for (name,) in self._all("SELECT DISTINCT label FROM scores WHERE side = ?", side)}
            for side in (0, 1)
        )
        common = baseline & candidate
        names = ", ".join(sorted(common))
        if label is None and (ALL_METRICS in common or len(common) == 1):
            return ALL_METRICS if ALL_METRICS in common else common.pop()
        if not common:
            raise ConfigError("the runs have no label in common; compare runs with the same judges or metrics")
        if label is None:
            raise ConfigError(f"the runs have several labels in common: {names}; choose one with --judge")
        if label not in common:
            hint = nearest(label, common)
            advice = f", did you mean {hint!r}?" if hint else ""
            raise ConfigError(f"not both runs have scores of {label!r}; both have {names}{advice}")
        return label

    def _means(self) -> Iterator[tuple[str, float]]:
        yield from self._all("SELECT label, avg(value) FROM scores WHERE side = 1 GROUP BY label")

    def _margins(self) -> Iterator[tuple[str, float]]:
        yield from self._all(
            "SELECT label, avg(b.value - a.value) FROM scores a JOIN scores b USING (label, kind, id) "
            "WHERE a.side = 0 AND b.side = 1 GROUP BY label"
        )

    def _pairs(self, label: str) -> Iterable[tuple[float, float]]:
        return self._all(
            "SELECT b.value, a.value FROM scores a JOIN scores b USING (label, kind, id) "
            "WHERE a.side = 0 AND b.side = 1 AND label = ?",
            label,
        )

    def _count(self, side: int, label: str) -> int:
        ((count,),) = self._all("SELECT count(*) FROM scores WHERE side = ? AND label = ?", side, label)
        return int(count)

    def _hours(self) -> float:
        between = datetime.fromisoformat(self._last) - datetime.fromisoformat(self._first)
        return between.total_seconds() / 3600

    def _all(self, query: str, *values: object) -> Iterator[Any]:
        yield from self._database.execute(query, values)


def _rows(side: int, event: Event) -> Iterator[Row]:
    """Yield the score of a verdict and the mean score of each metric over rollouts, without truth metrics of an audit."""
    payload: Mapping[str, Any] = event.payload
    kind, id = payload["subject_kind"], payload["subject_id"]
    if (value := value_of(payload)) is not None:
        yield side, payload["judge"], kind, id, value
    audit = payload.get("truth_reason") == "audit"
    items = [item for item in payload.get("scores", ()) if not (audit and item["tier"] == "truth")]
    for label, group in groupby(sorted(items, key=lambda item: item["metric"]), key=lambda item: item["metric"]):
        values = [item["raw"] if item["value"] is None else item["value"] for item in group]
        yield side, label, kind, id, mean(values)


def _differences(labels: Collection[str], *fingerprints: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of fingerprints that concern *labels* and differ between the runs, such as ``metrics[helpful]``."""
    for name in sorted(set().union(*fingerprints)):
        _, _, label = name.rstrip("]").partition("[")
        combined = ALL_METRICS in labels and name.startswith(("scoring", "metrics["))
        if (combined or label in labels) and len({run.get(name) for run in fingerprints}) > 1:
            yield name
