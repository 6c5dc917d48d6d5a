"""Entries of the log, made from measurements and decisions, and the state passed to hooks and proposers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from dicast.toolkit.metric_lines import Measurements

from . import log as logs
from .decision import Decision, confidence
from .git import Git
from .log import LOG, Experiment
from .measure import Measurement
from .regressions import regressions
from .session import Session

REASONS = {
    "no_change": "nothing was changed",
    "cheating": "measuring files were changed",
    "out_of_scope": "files outside the scope were changed",
    "proposer_failed": "the proposer failed",
    "checks_failed": "the checks failed",
    "crash": "the command failed",
    "metric_missing": "the primary metric was not printed",
    "metric_invalid": "the primary metric is not a finite number",
    "not_better_than_best": "no better than the best kept value",
    "below_min_delta": "the improvement is below min_delta",
    "below_min_relative_delta": "the improvement is below min_relative_delta",
    "insufficient_noise_evidence": "too few values to separate noise from an improvement",
    "below_confidence": "the improvement is within the noise",
    "within_noise": "the improvement is within the noise",
    "validation_dropped": "the validation metric fell",
    "validation_missing": "the validation metric was not printed",
}


@attrs.frozen
class Entries:
    """Builder of the entries of one session's log."""

    git: Git
    session: Session

    def log(self) -> logs.Log:
        """Return the current log."""
        return logs.read(self.git.root / LOG)

    def next_number(self) -> int:
        """Return the number of the next experiment."""
        return max((experiment.experiment for experiment in self.log().experiments), default=-1) + 1

    def append(self, entry: Experiment) -> None:
        """Add *entry* to the log.

        :raises ConfigError: if it cannot be written, for example on a full disk.
        """
        logs.append(self.git.root / LOG, entry)

    def words(self, proposed: Measurements, command: str) -> dict[str, str]:
        """Return a proposer's statements, with defaults for missing ones; its *command* is the last default of the description."""
        asi = proposed.asi
        stated = {name: str(asi[name]) for name in (*logs.ASI, "description") if asi.get(name) is not None}
        return {"hypothesis": "(the proposer named none)", "description": stated.get("hypothesis", command), **stated}

    def entry(
        self,
        measurement: Measurement,
        status: str,
        decision: Decision,
        words: Mapping[str, str],
        description: str,
        commit: str | None = None,
    ) -> Experiment:
        """Return the entry of the log for *measurement*; *commit* is a kept or a discarded state."""
        log = self.log()
        before = log.before()
        value = measurement.metrics.get(self.session.primary)
        values = [*before.values, *([] if value is None else [value])]
        kept_values = [*before.kept_values, *([value] if status == "keep" and value is not None else [])]
        learned = words.get("learned") or self._learned(value, status, decision)
        cost: dict[str, object] = {"seconds": round(measurement.seconds, 3)}
        if "cost_usd" in measurement.metrics:
            cost["usd"] = measurement.metrics["cost_usd"]
        return Experiment(
            experiment=self.next_number(),
            status=status,
            hypothesis=words.get("hypothesis", ""),
            primary_metric=value,
            secondary_metrics=measurement.secondary(self.session),
            commit=commit if status == "keep" else None,
            discarded_ref=None if status == "keep" else commit,
            description=description,
            learned="; ".join(filter(None, (learned, regressions(measurement.metrics, log.current, self.session)))),
            rollback_reason=None if status == "keep" else words.get("rollback_reason") or REASONS[decision.reason],
            next_action_hint=words.get("next_action_hint", "") or "(none was given)",
            timestamp=logs.now(),
            segment=log.segment,
            confidence=confidence(values, kept_values, self.session.direction),
            cost=cost,
            reason=decision.reason,
            asi=dict(measurement.asi),
        )

    def _learned(self, value: float | None, status: str, decision: Decision) -> str:
        if value is None:
            return f"{self.session.primary} was not measured: {REASONS.get(decision.reason, decision.reason)}"
        by = "" if decision.delta is None else f", {decision.delta:+g} against the best kept"
        return f"{self.session.primary} {value:g}{by}: {status}"

    def report(self, event: str, folder: Path | None = None) -> dict[str, Any]:
        """Return the state that hooks and proposers read from stdin; *folder* is the proposer's."""
        log = self.log()
        before = log.before()
        last = log.current[-1] if log.current else None
        return {
            "event": event,
            "cwd": str(folder or self.git.root),
            "next_run": self.next_number(),
            "last_run": None if last is None else attrs.asdict(last),
            "session": {
                "metric_name": self.session.primary,
                "metric_unit": logs.unit_of(self.session.primary),
                "direction": self.session.direction,
                "baseline_metric": before.values[0] if before.values else None,
                "best_metric": before.best(self.session.direction),
                "run_count": len(log.current),
                "goal": self.session.goal,
                "scope": list(self.session.scope),
            },
        }
