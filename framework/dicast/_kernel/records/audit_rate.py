"""Rate of a run's audits, if the file derives it from earlier runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..contract.protocols import Ledger
from ..contract.registry import audit_estimator
from ..events import RUN_COMPLETED, RUN_STARTED
from ..plan.audit import AutoRate
from ..plan.sections import METRICS, Pipeline
from ..resume.resume import EarlierRun
from ..values import Query
from ..values.errors import ConfigError, Problem

RATE_PATH = "scoring.audit.rate"


def with_audit_rate(pipeline: Pipeline, ledger: Ledger, earlier: EarlierRun | None, subjects: int | None) -> Pipeline:
    """Return *pipeline* with a numeric rate of audits, from the *earlier* process of the run or computed from the ledger.

    :param subjects: the number of subjects of the run, if known.
    :raises ConfigError: when the ledger has no suitable run, or no rate gives the width.
    """
    audit = pipeline.scoring.audit
    if audit is None or isinstance(audit.rate, float):
        return pipeline
    if earlier is not None:
        recorded: Mapping[str, Any] = earlier.payload["audit"]
        rate, rates = recorded["rate"], (recorded.get("strata") or {}).get("rates", {})
    else:
        width = audit.rate.auto.width if isinstance(audit.rate, AutoRate) else None
        if width is not None and subjects is None:
            raise ConfigError(Problem("the number of subjects is unknown; write a numeric rate", path=RATE_PATH))
        pilot = _pilot(pipeline, ledger)
        try:
            rate, rates = audit_estimator().rates(pilot, subjects, width, groups=audit.strata is not None)
        except ValueError as error:
            raise ConfigError(Problem(str(error), path=RATE_PATH, value=width)) from error
    strata = None if audit.strata is None else attrs.evolve(audit.strata, rates=rates)
    numeric = attrs.evolve(audit, rate=rate, strata=strata)
    return attrs.evolve(pipeline, scoring=attrs.evolve(pipeline.scoring, audit=numeric))


def _pilot(pipeline: Pipeline, ledger: Ledger) -> Mapping[str, Any]:
    """Return the audit figures of the newest audited run with these metrics.

    :raises ConfigError: when there is none.
    """
    for entry in ledger.read(Query(types=(RUN_COMPLETED,), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        figures = _audit(payload)
        if figures.get("best_rate") is not None and _has_same_metrics(pipeline, ledger, entry.event.run_id):
            return figures
    message = "the ledger has no audited run of these metrics; run once with a number, such as audit: {rate: 0.2}"
    raise ConfigError(Problem(f"{message}, or run a pilot: dicast plan FILE --pilot 40", path=RATE_PATH, value="auto"))


def _audit(done: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the figures of the audits of a run's document; documents without ``labels`` have them in ``score``."""
    label = (done.get("labels") or {}).get(METRICS) or done.get("score") or {}
    figures: Mapping[str, Any] = label.get("audit") or {}
    return figures


def _has_same_metrics(pipeline: Pipeline, ledger: Ledger, run_id: str) -> bool:
    """Return True if a run had the same metrics as *pipeline*."""
    start = next(iter(ledger.read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None)
    recorded: Any = {} if start is None else start.event.payload.get("fingerprints", {})
    current = {key: value for key, value in pipeline.fingerprints.items() if key.startswith("metrics[")}
    return current == {key: value for key, value in recorded.items() if key.startswith("metrics[")}
