"""What a run's audits say of the scores that the proxies kept from being truth.

The kernel notes what there is to know of each subject; what it comes to is statistics, which a plugin brings: the distribution that has the
entry point ``trust`` in the group ``dicast.corrections`` (docs/adr/0069). It is loaded only where a run audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ..contract.registry import correction
from ..plan.sections import METRICS
from ..values import Event
from ..values.errors import PluginError

NOT_INSTALLED = "not_installed"


class Corrections:
    """Passes on what verdicts say of audits, of a run whose ``run.started`` had the payload *started*."""

    def __init__(self, started: Mapping[str, Any]) -> None:
        self._truths: Sequence[str] = started.get("truths", ())
        self._live: Any = None
        self._reason: dict[str, Any] = {}
        try:
            audit = started["audit"]
            rates = {} if audit.get("strata") is None else {"rates": audit["strata"]["rates"]}
            self._live = correction()([METRICS, *self._truths], audit["rate"], **rates)
        except PluginError as error:
            self._reason = {"reason": NOT_INSTALLED, "message": str(error)}

    def add(self, verdicts: Sequence[Event]) -> None:
        """Count ``eval.completed`` events of the combined verdict."""
        if self._live is not None:
            self._live.add([self._subject(event) for event in verdicts])

    def _subject(self, event: Event) -> dict[str, Any]:
        """What an estimate needs of a subject: its session, whether it *passed* the gate, was *held* back, or held back and *audited*.

        *stratum* is the group that it is audited in, "" where there is but one; *score* is what it has; *truths* are what it would have, by label, had it been given the truth metrics; *costs* are (tier,
        unit, amount).
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

    def document(self, done: dict[str, Any]) -> dict[str, Any]:
        """*done*, the run's document, with what is corrected in it."""
        if self._live is None:
            of_all = dict.fromkeys((METRICS, *self._truths))
            found = {"corrected": of_all, "reasons": dict.fromkeys(of_all, self._reason), "cost": {}}
        else:
            found = self._live.finish({METRICS: done["labels"][METRICS]["mean"], **_means(done["metrics"])})
        score, audit = done["score"], {"audit": found["audit"]} if "audit" in found else {}
        done["labels"][METRICS] |= {**_entry(found, METRICS), **audit}
        if score is not None and score["label"] == METRICS:
            done["score"] = {**score, **_entry(found, METRICS), **audit}
        metrics = {
            label: {**tally, **_entry(found, label)}
            for label, tally in done["metrics"].items()
            if label in self._truths
        }
        return {**done, "metrics": done["metrics"] | metrics, "cost": done["cost"] | found["cost"]}


def _entry(found: Mapping[str, Any], label: str) -> dict[str, Any]:
    reason = found["reasons"].get(label)
    return {"corrected": found["corrected"][label]} | ({} if reason is None else {"reasons": {"corrected": reason}})


def _means(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    return {label: tally["mean"] for label, tally in metrics.items()}


def _costs(items: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, Decimal | None]]:
    for item in items:
        amount, unit = item["cost"]["amount"], item["cost"]["unit"]
        if amount is None or amount != "0":
            yield item["tier"], unit, None if amount is None else Decimal(amount)
