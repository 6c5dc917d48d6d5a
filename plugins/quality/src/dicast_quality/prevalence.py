"""How many subjects pass by the labels' standard: the judge's rate, corrected by the labels of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dicast import Ledger, Query, component

from .options import shown
from .ratings import Unit

_ON = "judge"


class Prevalences:
    """Corrects the rate of each of *raters*, which are names by number, by labels: with *of*, that in this run, of other subjects.

    :raises PluginError: where dicast-trust is not installed, which has the statistics.
    """

    def __init__(self, raters: Mapping[int, str], of: str | None) -> None:
        options = {"on": _ON, "labels": "same" if of is None else "other"}
        made = component("aggregate", {"trust/prevalence": options})
        self._of, self._names = of, raters
        self._live = {number: made.live() for number in raters}

    def add(self, unit: Unit) -> None:
        """Add a subject with what was said of it, and its label."""
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
        """What the rates are, by name."""
        return {self._names[number]: dict(live.finish()) for number, live in self._live.items()}


def _record(score: float, label: float | None) -> dict[str, Any]:
    return {"row": {} if label is None else {"label": label}, "metrics": {"scores": {_ON: score}}}


def prevalence_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The rates in lines."""
    yield "passing by the labels' standard:"
    for name, one in found.items():
        rate, low, high, own = shown("{:.1%}".format, one["mean"], one["ci_low"], one["ci_high"], one["judge_mean"])
        if one["mean"] is None:
            yield f"  {name}: not known: {'; '.join(one['reasons'])}"
        else:
            about = f"{one['n']:,} subjects, {one['labels']:,} labels, {one['method']}"
            yield f"  {name}: {rate} (95 %: {low} to {high}); the judge alone says {own} ({about})"
    yield "  holds where the labelled subjects were drawn at random"
