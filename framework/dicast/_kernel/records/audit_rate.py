"""The rate of a run's audits, where the file leaves it to what earlier runs have shown."""

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

AT = "scoring.audit.rate"


def with_audit_rate(pipeline: Pipeline, ledger: Ledger, earlier: EarlierRun | None, subjects: int | None) -> Pipeline:
    """*pipeline* with a rate of audits that is a number: that of the *earlier* process of the run, or by what the ledger has.

    :param subjects: how many the run is to judge, where that is known.
    :raises ConfigError: where there is nothing to go by, or no rate gives the width.
    """
    audit = pipeline.scoring.audit
    if audit is None or isinstance(audit.rate, float):
        return pipeline
    if earlier is not None:
        before: Mapping[str, Any] = earlier.payload["audit"]
        rate, rates = before["rate"], (before.get("strata") or {}).get("rates", {})
    else:
        width = audit.rate.auto.width if isinstance(audit.rate, AutoRate) else None
        if width is not None and subjects is None:
            raise ConfigError(Problem("how many subjects there are is not known: write a rate", path=AT))
        known = _pilot(pipeline, ledger)
        try:
            rate, rates = audit_estimator().rates(known, subjects, width, groups=audit.strata is not None)
        except ValueError as error:
            raise ConfigError(Problem(str(error), path=AT, value=width)) from error
    strata = None if audit.strata is None else attrs.evolve(audit.strata, rates=rates)
    found = attrs.evolve(audit, rate=rate, strata=strata)
    return attrs.evolve(pipeline, scoring=attrs.evolve(pipeline.scoring, audit=found))


def _pilot(pipeline: Pipeline, ledger: Ledger) -> Mapping[str, Any]:
    """What the newest run of these metrics with audits has shown.

    :raises ConfigError: where there is none.
    """
    for entry in ledger.read(Query(types=(RUN_COMPLETED,), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        known = _audit(payload)
        if known.get("best_rate") is not None and _is_alike(pipeline, ledger, entry.event.run_id):
            return known
    message = (
        "there is no run of these metrics with audits to go by: run once with a number, such as audit: {rate: 0.2}"
    )
    raise ConfigError(Problem(f"{message}, or buy a pilot: dicast plan FILE --pilot 40", path=AT, value="auto"))


def _audit(done: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the figures of the audits of a run's document; documents without ``labels`` have them in ``score``."""
    label = (done.get("labels") or {}).get(METRICS) or done.get("score") or {}
    found: Mapping[str, Any] = label.get("audit") or {}
    return found


def _is_alike(pipeline: Pipeline, ledger: Ledger, run_id: str) -> bool:
    """Whether a run had the same metrics as *pipeline*."""
    begun = next(iter(ledger.read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None)
    before: Any = {} if begun is None else begun.event.payload.get("fingerprints", {})
    mine = {key: value for key, value in pipeline.fingerprints.items() if key.startswith("metrics[")}
    return mine == {key: value for key, value in before.items() if key.startswith("metrics[")}
