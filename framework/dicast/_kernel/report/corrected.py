"""Corrections of scores by the audits of a run: estimates for the subjects that the proxies held back from truth metrics.

The kernel collects the data of each subject. A plugin computes the statistics: the ``estimator`` of the class with the key
``corrected`` in the group ``dicast.gate_clauses`` (docs/adr/0104). It is loaded only if a run audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ..contract.registry import audit_estimator
from ..plan.sections import METRICS
from ..values import Event
from ..values.errors import PluginError
from ..values.judged import JudgedRow, Records

NOT_INSTALLED = "not_installed"

_WEIGHTED = {
    "reason": "weights",
    "message": "the estimate counts each subject once, and the subjects of the run have weights; audit a run over all subjects, or over a sample with equal weights",
}


class Corrections:
    """Collector of the verdicts of an audited run for the correction. *started* is the payload of ``run.started``."""

    def __init__(self, started: Mapping[str, Any]) -> None:
        self._truths: Sequence[str] = started.get("truths", ())
        self._live: Any = None
        self._reason: dict[str, Any] = {}
        try:
            audit = started["audit"]
            rates = {} if audit.get("strata") is None else {"rates": audit["strata"]["rates"]}
            self._live = audit_estimator()([METRICS, *self._truths], audit["rate"], **rates)
        except PluginError as error:
            self._reason = {"reason": NOT_INSTALLED, "message": str(error)}

    def add(self, verdicts: Records) -> None:
        """Count ``eval.completed`` events of the combined verdict."""
        if self._live is not None:
            self._live.add([self._subject(event) for event in verdicts])

    def _subject(self, event: Event | JudgedRow) -> dict[str, Any]:
        """Return the data of a subject for the estimate.

        *state* is ``passed`` (the gate), ``held`` (held back), ``audited`` (held back and audited) or ``skipped``. *stratum* is the audit
        group, "" if there is only one. *score* is the recorded score; *truths* has, by label, the score with all truth metrics.
        *costs* are (tier, unit, amount).
        """
        payload: Mapping[str, Any] = event.payload
        audit, skipped = payload.get("audit"), {skip["metric"] for skip in payload["skipped"]}
        state, truths = "passed", {METRICS: payload["score"], **payload["signals"]["metrics"]}
        if audit is not None:
            state, truths = "audited", {METRICS: audit["score"], **audit["metrics"]}
        elif payload.get("spared") or payload["truth_reason"] == "audit":
            state, truths = "held", {}
        elif skipped.intersection(self._truths) and payload["tier"] != "truth":
            state, truths = "skipped", {}
        return {
            "session_id": event.session_id,
            "stratum": payload.get("stratum", ""),
            "state": state,
            "score": payload["score"],
            "truths": truths,
            "costs": [*_costs(payload["scores"])],
        }

    def document(self, done: dict[str, Any], *, is_weighted: bool = False) -> dict[str, Any]:
        """Return the run's document *done* with the corrected figures; without them if the subjects have weights, which the estimator does not use."""
        if is_weighted:
            self._live, self._reason = None, _WEIGHTED
        if self._live is None:
            labels = dict.fromkeys((METRICS, *self._truths))
            correction_ = {"corrected": labels, "reasons": dict.fromkeys(labels, self._reason), "cost": {}}
        else:
            correction_ = self._live.finish({METRICS: done["labels"][METRICS]["mean"], **_means(done["metrics"])})
        score, audit = done["score"], {"audit": correction_["audit"]} if "audit" in correction_ else {}
        done["labels"][METRICS] |= {**_entry(correction_, METRICS), **audit}
        if score is not None and score["label"] == METRICS:
            done["score"] = {**score, **_entry(correction_, METRICS), **audit}
        metrics = {
            label: {**tally, **_entry(correction_, label)}
            for label, tally in done["metrics"].items()
            if label in self._truths
        }
        return {**done, "metrics": done["metrics"] | metrics, "cost": done["cost"] | correction_["cost"]}


def _entry(correction_: Mapping[str, Any], label: str) -> dict[str, Any]:
    reason = correction_["reasons"].get(label)
    return {"corrected": correction_["corrected"][label]} | (
        {} if reason is None else {"reasons": {"corrected": reason}}
    )


def _means(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    return {label: tally["mean"] for label, tally in metrics.items()}


def _costs(items: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, Decimal | None]]:
    for item in items:
        amount, unit = item["cost"]["amount"], item["cost"]["unit"]
        if amount is None or amount != "0":
            yield item["tier"], unit, None if amount is None else Decimal(amount)
