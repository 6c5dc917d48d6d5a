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

LEAST, AUDITS = 0.01, 10
"""The least rate of a group, and how many audits of it are to be expected: one that has shown no difference yet may have some."""


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
        rate, rates = _rate(audit, _pilot(pipeline, ledger), subjects)
    strata = None if audit.strata is None else attrs.evolve(audit.strata, rates=rates)
    found = attrs.evolve(audit, rate=rate, strata=strata)
    return attrs.evolve(pipeline, scoring=attrs.evolve(pipeline.scoring, audit=found))


def _rate(audit: Audit, known: Mapping[str, Any], subjects: int | None) -> tuple[float, Mapping[str, float]]:
    """The rate of all, and that of each group: in proportion to what the score leaves of the truth there, as far as that is known."""
    groups: Mapping[str, Any] = known.get("strata") or {} if audit.strata is not None else {}
    if not isinstance(audit.rate, AutoRate):
        return float(known["best_rate"]), {
            name: max(float(one["best_rate"]), least_rate(subjects, one["share_held"])) for name, one in groups.items()
        }
    if subjects is None:
        raise ConfigError(Problem("how many subjects there are is not known: write a rate", path=AT))
    width = audit.rate.auto.width
    rate = rate_for_width(width, subjects, known["variance"], known["tau2"], known["share_held"])
    parts = {name: (one["share_held"], one["tau2"]) for name, one in groups.items()}
    return rate, rates_for_width(width, subjects, known["variance"], parts)


def rates_for_width(
    width: float, subjects: int, variance: float, parts: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """The rate of each group with which the interval is plus or minus *width*, in proportion to the root of its tau2 (J. Neyman, 1934); 1 at most.

    *parts* are by group the share of all subjects that is held back in it, and tau2. A width that one rate for all can give has such rates.
    """
    left = subjects * (width / Z_95) ** 2 - (variance - math.fsum(share * tau2 for share, tau2 in parts.values()))
    found: dict[str, float] = {}
    rest = dict(parts)
    while rest:
        spread = math.fsum(share * math.sqrt(tau2) for share, tau2 in rest.values())
        room = left - math.fsum(parts[name][0] * parts[name][1] for name in found)
        scale = spread / room if room > 0 else 0.0
        over = [name for name, (_, tau2) in rest.items() if scale * math.sqrt(tau2) > 1]
        if not over:
            return found | {
                name: max(least_rate(subjects, share), scale * math.sqrt(tau2)) for name, (share, tau2) in rest.items()
            }
        found |= dict.fromkeys(over, 1.0)
        rest = {name: one for name, one in rest.items() if name not in over}
    return found


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


def least_rate(subjects: int | None, held: float) -> float:
    """The least rate of a group of which the share *held* of all subjects is held back: one that gives :data:`AUDITS`."""
    return min(1.0, max(LEAST, AUDITS / (subjects * held))) if subjects and held else LEAST


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
