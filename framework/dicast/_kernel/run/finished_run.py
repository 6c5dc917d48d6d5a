"""Result of a run from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..classes import field, frozen
from ..events import EVAL_COMPLETED
from ..values import Event, Query, Verdict
from ..values.errors import ConfigError
from .run_figures import LabelFigures, MeanFigures, ScoreFigures

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..plan.sections import Slot

T = TypeVar("T")


@frozen
class Run:
    """A finished run: the fields of ``dicast run --json``, and the verdicts.

    *labels* has the figures of each label of the file: all metrics together, each judge, each criterion. Means are over scored subjects, and
    *coverage* is the share of subjects that every accepting label scored. *recorded* has the figures of the scores that other tools recorded. *gate* is None if the file has none; ``gate["passed"]`` is
    None if it is undecided. *undecided* has the reasons, with or without a gate. *read_counts* is the document's ``read``. Amounts of
    money are decimal strings, None when unknown; *exit_code* is the exit code of ``dicast run``. *batches* are the batches that the
    endpoint has not returned.

    For a suite, *experiments* has the run of each experiment by its name, in the order in which they ran. Its counts and costs are
    the sums over the experiments, its gate passed if all their gates passed, *baseline* names the experiment that others are compared
    with, and members of a single run (``run_id``, ``score_label``, ``metrics`` …) are None or empty.

    :param name: the name of the pipeline.
    :param subjects: the number of subjects.
    :param scored: the number of subjects with a score.
    :param failed: the number of subjects with a failure.
    :param skipped: the number of subjects that no metric or judge accepted.
    :param unaffordable: the number of skipped subjects that did not fit into the budget.
    :param failures: the number of failures by kind.
    :param failures_by_origin: the number of failures of the task and of records, by kind; empty without such failures.
    :param judges: the figures of each judge, by label.
    :param cost: the settled amounts by unit.
    :param spend_lost: the amounts reserved for calls that ended without an answer, by unit.
    :param reserved: the amounts that stay reserved for the calls in *batches*, by unit.
    :param overruns: the number of calls that cost more than their estimate.
    :param throttled: the number of calls that a cap forbade, by cap.
    :param caps: the figures of each cap that forbade a call, by cap.
    :param stopped: the reason for an early stop, or None.
    :param row_count: the number of rows with a record.
    :param retry_summary: ``{total_requests, total_retries, exhausted}``; None without retries.
    :param security_level: the level of the task, or None.
    :param determinism_level: the level of the task, or None.
    :param aggregates: the summary of each aggregate, by label.
    :param comparison: the results of the comparisons with the baseline, or None.
    :param broken: the error of each aggregate and comparison that raised, by label.
    :param sinks: the numbers of written and lost events, by label.
    :param worst: the subjects with the lowest scores.
    :param failed_subjects: the first failed subjects with their reasons.
    :param ledger: the file and the head of the ledger, or None.
    :param disabled: True if ``DICAST_DISABLED`` switched the run off.
    :param plan: the plan of the run, or None.
    :param warnings: the warnings, each with its text.
    :param models: the models that answered, by the label of the component.
    :param adapted: the parameters that endpoints refused, by the label of the component.
    :param assumed: the values that components assume, a sentence each.
    """

    run_id: str | None
    name: str
    subjects: int
    scored: int
    failed: int
    skipped: int
    unaffordable: int
    coverage: float | None
    failures: Mapping[str, int]
    _score: ScoreFigures | None = field(alias="score")
    metrics: Mapping[str, Mapping[str, Any]]
    judges: Mapping[str, Mapping[str, Any]]
    cost: Mapping[str, str | None]
    spend_lost: Mapping[str, str | None]
    overruns: int
    throttled: Mapping[str, int]
    gate: Mapping[str, Any] | None
    stopped: Mapping[str, Any] | None
    row_count: int
    retry_summary: Mapping[str, int] | None
    security_level: str | None
    determinism_level: str | None
    aggregates: Mapping[str, Any]
    comparison: Mapping[str, Any] | None
    baseline: Mapping[str, str | None] | None
    broken: Mapping[str, str]
    sinks: Mapping[str, Mapping[str, Any]]
    worst: Sequence[Mapping[str, Any]]
    failed_subjects: Sequence[Mapping[str, Any]]
    ledger: Mapping[str, Any] | None
    exit_code: int
    disabled: bool = False
    plan: Mapping[str, Any] | None = None
    warnings: Sequence[Mapping[str, Any]] = ()
    undecided: Sequence[str] = ()
    labels: Mapping[str, LabelFigures] = field(factory=dict)
    recorded: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    models: Mapping[str, Sequence[str]] = field(factory=dict)
    adapted: Mapping[str, Sequence[str]] = field(factory=dict)
    assumed: Sequence[str] = ()
    batches: Sequence[Mapping[str, Any]] = ()
    read_counts: Mapping[str, Any] = field(factory=dict, alias="read")
    experiments: Mapping[str, Run] = field(factory=dict)
    _open_ledger: Slot | None = field(default=None, repr=False, eq=False)
    reserved: Mapping[str, str] = field(factory=dict)
    caps: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    failures_by_origin: Mapping[str, Mapping[str, int]] = field(factory=dict)

    def __repr__(self) -> str:
        from ...reporting.figures import figure  # few programs show a run

        means = [f"{label!r} {figure(figures['mean'])}" for label, figures in self.labels.items()]
        parts = [f"{len(self.experiments):,} experiments"] if self.experiments else means
        return f"<Run {self.name!r}: {', '.join((self._answer(), *parts, f'{self._scored()} scored', self._spent()))}>"

    def _repr_html_(self) -> str:
        """Return a small table for a notebook: a row for each label, or for each experiment of a suite."""
        from ...reporting.html import html_table  # as above

        heads = ("experiment" if self.experiments else "label", "mean", "95 % interval", "scored", "failed")
        caption = f"{self.name}: {self._answer()}; {self._spent()}"
        return html_table(caption, heads, self._experiment_rows() if self.experiments else self._label_rows())

    def _label_rows(self) -> Iterator[Sequence[str]]:
        for label, figures in self.labels.items():
            yield label, *_mean(figures), f"{figures['scored']:,} of {figures['total']:,}", f"{figures['failed']:,}"

    def _experiment_rows(self) -> Iterator[Sequence[str]]:
        for name, run in self.experiments.items():
            mean = _mean(run._score)  # noqa: SLF001  # of the same class
            yield f"{name}: {run._answer()}", *mean, run._scored(), f"{run.failed:,}"  # noqa: SLF001  # as above

    def _answer(self) -> str:
        from ...reporting.figures import run_answer

        if self.disabled:
            return "disabled"
        answer = run_answer({"gate": self.gate, "undecided": self.undecided})
        return answer if self.gate is None else f"gate {answer}"

    def _scored(self) -> str:
        return f"{self.scored:,} of {self.scored + self.failed + self.unaffordable:,}"

    def _spent(self) -> str:
        from ...reporting.figures import money

        return f"spent {money(self.cost)}"

    @property
    def score_label(self) -> str | None:
        """The label of the run's score: the only label, or, among several, the label in the first clause's ``on``; else None."""
        return None if self._score is None else self._score["label"]

    @property
    def score(self) -> ScoreFigures:
        """The figures of the label :attr:`score_label`.

        :raises ConfigError: if the run has no score: several labels without a clause's ``on``, no label, or a suite.
        """
        if self._score is None:
            raise ConfigError(f"run.score: {self._missing_score()}")
        return self._score

    def _missing_score(self) -> str:
        if self.experiments:
            return f"a suite has no score. Read run.experiments[{next(iter(self.experiments))!r}].score."
        if not self.labels:
            return "the run has no label. run.stopped and run.undecided have the reasons."
        names = ", ".join(self.labels)
        return f"the run has {len(self.labels)} labels: {names}. Read run.labels[{next(iter(self.labels))!r}], or set 'on' in the gate."

    @property
    def verdicts(self) -> list[Verdict]:
        """Every verdict of this run, in the order of its subjects, read from the ledger; for a suite, the verdicts of all experiments."""
        from ..resume.queries import (
            verdict,
        )  # imported late: the readers need the converter, which takes 40 ms to import

        if self.experiments:
            return [verdict for run in self.experiments.values() for verdict in run.verdicts]
        return self.read((EVAL_COMPLETED,), lambda events: [verdict(event) for event in events])

    def read(self, types: Sequence[str], function: Callable[[Iterator[Event]], T]) -> T:
        """Call *function* with this run's events of *types*, all if empty, in the ledger's order; return its result. A suite has no events."""
        from ..pipeline.default_ledger import reading  # imported late, as above
        from ..timing.event_loop import in_loop

        if self._open_ledger is None or self.run_id is None:
            return function(iter(()))
        query = Query(run_id=self.run_id, types=tuple(types))
        return in_loop(
            reading(self._open_ledger.component, lambda ledger: function(entry.event for entry in ledger.read(query)))
        )

    def to_pandas(self) -> DataFrame:
        """Return the rows of this run as a data frame, with the columns of ``csv/rows``; for a suite, the rows of all experiments, with ``experiment``.

        :raises ConfigError: when pandas is not installed.
        """
        from ...toolkit.run_frame import data_frame, joined
        from ...toolkit.run_table import RunTable

        if self.experiments:
            return joined({name: run.to_pandas() for name, run in self.experiments.items()})
        return self.read(RunTable.wants, data_frame)


def _mean(figures: MeanFigures | None) -> tuple[str, str]:
    """Return the mean and its interval as text."""
    from ...reporting.figures import figure

    if figures is None:
        return "-", "-"
    low, high = figures["ci_low"], figures["ci_high"]
    return figure(figures["mean"]), "-" if low is None and high is None else f"{figure(low)} to {figure(high)}"
