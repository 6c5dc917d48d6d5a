"""``dicast run`` over a suite: its experiments one after the other, each compared with the baseline, a table at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..api import ledger_slot, with_ledger
from ..config import experiment_names, load_pipeline
from ..errors import ConfigError, Problem, RequestError
from ..ledgers import document
from ..model import Query
from ..protocols import Ledger
from ..report import exit_code
from ..runner.ending import ledger_json
from ..runner.plan import file_identity
from ..runner.run import Outcome, Request
from ..sections import Pipeline
from .runs import carried_out
from .summary import run_text

WORST = (130, 2, 70, 5, 4, 3, 1, 0)
"""Exit codes: the first of them that an experiment had is the suite's."""

ENDS = (130, 2, 70)
"""Exit codes after which no further experiment is begun."""


@attrs.frozen
class Suite:
    """What the experiments of *file* came to, by name; *baseline* is the one that the others are compared with."""

    file: str
    baseline: str | None
    outcomes: Mapping[str, Outcome]

    @property
    def document(self) -> dict[str, Any]:
        """What ``dicast run --json`` prints."""
        documents = {name: outcome.document for name, outcome in self.outcomes.items()}
        return {"suite": self.file, "baseline": self.baseline, "experiments": documents}

    @property
    def exit_code(self) -> int:
        """What ``dicast run`` returns."""
        codes = {outcome.exit_code for outcome in self.outcomes.values()}
        return next(code for code in WORST if code in codes)

    def text(self) -> str:
        """The summary of each experiment, and a table of all."""
        documents: dict[str, Mapping[str, Any]] = self.document["experiments"]
        return "\n\n".join([*map(run_text, documents.values()), "\n".join(_table(documents, self.baseline))])


def run_suite(file: Path, names: Sequence[str], request: Request, overrides: Sequence[str], *, head: bool) -> Suite:
    """Run the experiments *names* of *file*, the baseline first.

    :raises RequestError: when anything is wrong with any of them; nothing was run then.
    """
    pipelines = _load(file, names, overrides)
    compared = (one.baseline.run for one in pipelines.values() if one.baseline is not None)
    baseline = next((run for run in compared if run in pipelines), None)
    order = sorted(names, key=lambda name: name != baseline)
    outcomes: dict[str, Outcome] = {}
    for name in order:
        earlier = _earlier(pipelines, order, name, request) if request.resume is not None else None
        if not isinstance(earlier, Outcome):
            earlier = _run(pipelines[name], attrs.evolve(request, resume=earlier), outcomes, head=head)
        outcomes[name] = earlier
        if earlier.exit_code in ENDS:
            break
    return Suite(str(file), baseline, outcomes)


def load_experiments(file: Path, overrides: Sequence[str]) -> list[Pipeline]:
    """The pipelines of *file*: one, or those of a suite's experiments.

    :raises RequestError: with everything that is wrong.
    """
    names = experiment_names(file, overrides)
    return [*_load(file, names, overrides).values()] if names else [load_pipeline(file, overrides)]


def _load(file: Path, names: Sequence[str], overrides: Sequence[str]) -> dict[str, Pipeline]:
    """Every experiment's pipeline.

    :raises ConfigError: with what is wrong with any of them, once.
    """
    pipelines: dict[str, Pipeline] = {}
    problems: dict[Problem, None] = {}
    for name in names:
        try:
            pipelines[name] = load_pipeline(file, overrides, experiment=name)
        except RequestError as error:
            problems |= dict.fromkeys(error.problems)
    problems |= dict.fromkeys(_clashes(pipelines))
    if problems:
        raise ConfigError(problems)
    return pipelines


def _clashes(pipelines: Mapping[str, Pipeline]) -> Iterator[Problem]:
    """What two experiments would both write to."""
    first: dict[Path, str] = {}
    for name, pipeline in pipelines.items():
        for slot in pipeline.sinks:
            path = getattr(slot.component, "path", None)
            if isinstance(path, Path) and first.setdefault(path.resolve(), name) != name:
                both = f"the experiments {first[path.resolve()]} and {name} both write to {path}"
                yield Problem(
                    f"{both}; let the path say which: 'out/${{experiment}}.csv'", pipeline.file, path=slot.path
                )


def _run(pipeline: Pipeline, request: Request, outcomes: Mapping[str, Outcome], *, head: bool) -> Outcome:
    """Run one experiment; its baseline may be one of the suite's others."""
    baseline = pipeline.baseline
    if baseline is not None and baseline.run in outcomes:
        found = outcomes[baseline.run].document["run_id"]
        pipeline = attrs.evolve(pipeline, baseline=attrs.evolve(baseline, run=found))
    elif baseline is not None and baseline.run == pipeline.experiment:
        pipeline = attrs.evolve(pipeline, baseline=None)
    again = request.retry_failed and request.resume is not None
    return carried_out(pipeline, attrs.evolve(request, retry_failed=again), head=head)


def _earlier(pipelines: Mapping[str, Pipeline], order: Sequence[str], name: str, wish: Request) -> Outcome | str | None:
    """What an earlier process has left of an experiment: its outcome, or the id of the run to take up, or nothing.

    Where failures are retried all are taken up, since a baseline whose failures are retried is another one for those compared with it.

    :raises ConfigError: when nothing of the suite is left to resume.
    """

    def find(ledger: Ledger) -> Outcome | str | None:
        begun = _newest(ledger, pipelines[order[0]])
        mine = _newest(ledger, pipelines[name])
        if begun is None:
            raise ConfigError("there is no unfinished run of this suite in the ledger; leave --resume out to begin")
        if mine is None or mine[0] < begun[0]:
            return None
        done = next(ledger.read(Query(run_id=mine[1], types=("run.completed",), limit=1)), None)
        if done is None or wish.retry_failed:
            return mine[1]
        told: dict[str, Any] = {**(document(ledger, mine[1]) or {}), "ledger": ledger_json(ledger)}
        return Outcome(told, exit_code(told, pipelines[name].gate))

    return with_ledger(ledger_slot(pipelines[name]), find)


def _newest(ledger: Ledger, pipeline: Pipeline) -> tuple[int, str] | None:
    """Where the newest run of *pipeline* begins in the ledger, and its id."""
    file = file_identity(pipeline)
    for entry in ledger.read(Query(types=("run.started",), newest_first=True)):
        if entry.event.payload["file"] == file:
            return entry.seq, entry.event.run_id
    return None


def _table(documents: Mapping[str, Mapping[str, Any]], baseline: str | None) -> Iterator[str]:
    """One line an experiment: what was scored, the score, the means of criteria where an aggregate has them, and the cost."""
    means = {name: _means(done) for name, done in documents.items()}
    criteria = list(dict.fromkeys(criterion for found in means.values() for criterion in found))
    rows = [["EXPERIMENT", "SCORED", "FAILED", "SCORE", *criteria, "USD"]]
    for name, done in documents.items():
        score = done["score"] and done["score"]["mean"]
        figures = [score, *(means[name].get(criterion) for criterion in criteria)]
        shown = ["-" if figure is None else f"{figure:.4f}" for figure in figures]
        label = f"{name} (baseline)" if name == baseline else name
        rows.append([label, f"{done['scored']:,}", f"{done['failed']:,}", *shown, done["cost"].get("usd") or "unknown"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )


def _means(done: Mapping[str, Any]) -> dict[str, float | None]:
    """The mean of each criterion, from the first aggregate that has them."""
    for found in done["aggregates"].values():
        criteria = (found or {}).get("criteria")
        if isinstance(criteria, Mapping):
            return {name: one.get("mean") for name, one in criteria.items() if isinstance(one, Mapping)}
    return {}
