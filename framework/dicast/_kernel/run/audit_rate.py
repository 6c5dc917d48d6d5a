"""The rate of a run's audits, where the file leaves it to what earlier runs have shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STARTED
from ..pipeline.audit import Audit, AutoRate
from ..pipeline.sections import Pipeline
from ..report.statistics import Z_95
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
    rate = earlier.payload["audit"]["rate"] if earlier is not None else _rate(audit, _pilot(pipeline, ledger), subjects)
    return attrs.evolve(pipeline, scoring=attrs.evolve(pipeline.scoring, audit=attrs.evolve(audit, rate=rate)))


def _rate(audit: Audit, known: Mapping[str, Any], subjects: int | None) -> float:
    if not isinstance(audit.rate, AutoRate):
        return float(known["best_rate"])
    if subjects is None:
        raise ConfigError(Problem("how many subjects there are is not known: write a rate", path=AT))
    return rate_for_width(audit.rate.auto.width, subjects, known["variance"], known["tau2"], known["share_held"])


def rate_for_width(width: float, subjects: int, variance: float, tau2: float, held: float) -> float:
    """The rate of audits with which the mean's interval is plus or minus *width*: ``w * tau2 / (n * (W / z)^2 - A)``, A being ``variance - w * tau2``.

    :raises ConfigError: where there is none, with the least number of subjects that has one.
    """
    wanted = (width / Z_95) ** 2
    left = subjects * wanted - (variance - held * tau2)
    rate = held * tau2 / left if left > 0 else math.inf
    if not 0 < rate <= 1:
        least = math.ceil(variance / wanted)
        message = f"no rate of audits gives the mean plus or minus {width:g} from {subjects:,} subjects: it takes {least:,} or more"
        raise ConfigError(Problem(message, path=AT, value=width))
    return rate


def _pilot(pipeline: Pipeline, ledger: Ledger) -> Mapping[str, Any]:
    """What the newest run of these metrics with audits has shown.

    :raises ConfigError: where there is none.
    """
    for entry in ledger.read(Query(types=(RUN_COMPLETED,), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        known = (payload.get("score") or {}).get("audit") or {}
        if known.get("best_rate") is not None and _is_alike(pipeline, ledger, entry.event.run_id):
            return known
    message = (
        "there is no run of these metrics with audits to go by: run once with a number, such as audit: {rate: 0.2}"
    )
    raise ConfigError(Problem(f"{message}, or buy a pilot: dicast plan FILE --pilot 40", path=AT, value="auto"))


def _is_alike(pipeline: Pipeline, ledger: Ledger, run_id: str) -> bool:
    """Whether a run had the same metrics as *pipeline*."""
    begun = next(iter(ledger.read(Query(run_id=run_id, types=(RUN_STARTED,), limit=1))), None)
    before: Any = {} if begun is None else begun.event.payload.get("fingerprints", {})
    mine = {key: value for key, value in pipeline.fingerprints.items() if key.startswith("metrics[")}
    return mine == {key: value for key, value in before.items() if key.startswith("metrics[")}
