"""Share of subjects that pass by the labels' standard: the judge's rate, corrected by labels of some subjects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dicast import Ledger, Query, component

from .options import as_texts
from .ratings import Unit

_ON = "judge"


class Prevalences:
    """Corrector of the rates of *raters*, names by number, by labels. With *of*, it corrects the rate in that run, about other subjects.

    :raises PluginError: when dicast-trust, which has the statistics, is not installed.
    """

    def __init__(self, raters: Mapping[int, str], of: str | None) -> None:
        options = {"on": _ON, "labels": "same" if of is None else "other"}
        aggregate = component("aggregate", {"trust/prevalence": options})
        self._of, self._names = of, raters
        self._live = {number: aggregate.live() for number in raters}

    def add(self, unit: Unit) -> None:
        """Add a subject with its ratings and its label."""
        if self._of is not None and unit.label is None:
            return
        for number, score in unit.scores.items():
            if score is not None and number in self._live:
                self._live[number].add(_record(score, unit.label))

    def read(self, ledger: Ledger) -> None:
        """Add the verdicts of the run whose rates are corrected by labels of other subjects."""
        if self._of is None:
            return
        numbers = {name: number for number, name in self._names.items()}
        for entry in ledger.read(Query(run_id=self._of, types=("eval.completed",))):
            payload: Mapping[str, Any] = entry.event.payload
            if payload["judge"] in numbers:
                self._live[numbers[payload["judge"]]].add(_record(payload["score"], None))

    def document(self) -> dict[str, Any]:
        """Return the corrected rates by name."""
        return {self._names[number]: dict(live.finish()) for number, live in self._live.items()}


def _record(score: float, label: float | None) -> dict[str, Any]:
    return {"row": {} if label is None else {"label": label}, "metrics": {"scores": {_ON: score}}}


def prevalence_lines(rates: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rates as lines."""
    yield "passing by the labels' standard:"
    for name, figures in rates.items():
        rate, low, high, judge_rate = as_texts(
            "{:.1%}".format, figures["mean"], figures["ci_low"], figures["ci_high"], figures["judge_mean"]
        )
        if figures["mean"] is None:
            yield f"  {name}: unknown: {'; '.join(figures['reasons'])}"
        else:
            about = f"{figures['n']:,} subjects, {figures['labels']:,} labels, {figures['method']}"
            yield f"  {name}: {rate} (95 % interval {low} to {high}); the judge's own rate is {judge_rate} ({about})"
    yield "  valid if the labeled subjects were drawn at random"
