"""Pairs of experiments of a suite that ``dicast compare`` accepts, with the options that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..classes import frozen
from ..pipeline.slots import ledger_slot
from ..plan.sections import Pipeline
from ..records.baseline import find_results
from ..records.comparable import find_faults
from ..stream.opening_context import opening
from ..values.errors import ConfigError
from .request import RunOutcome

INCOMPARABLE, UNWEIGHTED = "--allow-incomparable", "--unweighted"


@frozen
class ExperimentPairs:
    """The experiment *base*, with which others are compared, and the options of ``dicast compare`` for each of *variants*, by name."""

    base: str
    variants: Mapping[str, Sequence[str]]

    def best(self, lead: Callable[[str], tuple[float, float]]) -> str | None:
        """Return the experiment with the highest *lead* among the comparable ones, else among all; None without any."""
        comparable = [name for name, options in self.variants.items() if INCOMPARABLE not in options]
        return max(comparable or self.variants, key=lead, default=None)


async def read_pairs(
    pipelines: Mapping[str, Pipeline], outcomes: Mapping[str, RunOutcome], baseline: str | None
) -> ExperimentPairs | None:
    """Return the pairs of the *baseline*, else of the first experiment with scores, with the other experiments in its ledger.

    A run without an end or without scores is in no pair. None without such an experiment.
    """
    runs = {name: outcome.document["run_id"] for name, outcome in outcomes.items() if outcome.document["scored"]}
    base = baseline if baseline in runs else next(iter(runs), None)
    if base is None:
        return None
    variants = dict[str, Sequence[str]]()
    async with opening(ledger_slot(pipelines[base]).component, None, create=False) as ledger:
        for name, run_id in runs.items():
            try:
                pair = [find_results(ledger, id_, Path()) for id_ in (runs[base], run_id)]
            except ConfigError:  # it has no end, or another ledger has it: dicast compare refuses it too
                continue
            earlier, later = pair
            if name != base and earlier is not None and later is not None:
                is_weighted = earlier.weighted() or later.weighted()
                refusals = {INCOMPARABLE: bool(find_faults(earlier, later)), UNWEIGHTED: is_weighted}
                variants[name] = [option for option, is_refused in refusals.items() if is_refused]
    return ExperimentPairs(base, variants)
