"""Section ``gate``: clauses of the kernel and of plugins, and the findings about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from ..classes import Attribute, evolve, field, frozen
from ..values import Results
from ..values.errors import ConfigError
from ..values.passes import shown_label
from .audit import SHARE
from .comparison import Ends, compare

Answer = bool | None
"""True for passed, False for failed, None for undecided."""

Bound = Literal["point", "interval", "anytime", "test"]

Undecided = Literal["pass", "exit3", "fail"]
"""Effect of an undecided finding on the gate: it passes, is undecided (exit code 3), or fails."""

GATE_LEFT_OUT = "gate_left_out"
"""Kind of the warning about a gate that the command leaves out."""

MIN_COVERAGE = 0.95
"""Coverage below which a run is undecided, unless the file sets another line."""


@frozen
class Finding:
    """Result of one rule of a clause.

    :param on: the label that the rule is about; None for a rule about the whole run.
    :param rule: the name of the rule: the clause's key.
    :param line: the limit in the file, a number or a text.
    :param value: the figure that is compared with *line*, or None if there is none.
    :param passed: True for passed, False for failed, None for undecided. If the coverage of the label is below ``min_coverage``, or it has no
        score, the kernel records each finding of the clause as undecided. The value from ``decide`` has no effect then.
    :param reason: a text that explains the result, also of a rule that passed.
    :param low: the low end of the 95 % interval of *value*, or None.
    :param high: its high end, or None.
    :param undecided: the effect on the gate if *passed* is None because of ``decide``.
    :param open: the number of subjects without a verdict that *low* and *high* count both ways: as not passed and as passed.
    """

    on: str | None
    rule: str
    line: float | str
    value: float | str | None
    passed: Answer
    reason: str
    low: float | None = None
    high: float | None = None
    undecided: Undecided = "exit3"
    open: int = 0

    @property
    def counts_as(self) -> Answer:
        """The answer with which the finding enters the gate's decision."""
        effect: Mapping[Undecided, Answer] = {"pass": True, "exit3": None, "fail": False}
        return effect[self.undecided] if self.passed is None else self.passed


@frozen
class ComparedRuns:
    """Runs for clauses that compare the run with a baseline.

    :param current: the results of the run; None if they cannot be read.
    :param baselines: the results of the baselines, by the names in the clauses: None for ``last`` without an older run. A name that is
        missing is the name of the run itself, as in a suite.
    """

    current: Results | None = None
    baselines: Mapping[str, Results | None] = field(factory=dict)


@frozen
class GatedFile:
    """Facts of a pipeline file that a clause of a plugin is checked against.

    :param on: the label of the clause, else the only label of the file; None if the clause has none and the file has several.
    :param has_audit: True if the file has ``scoring.audit``.
    :param audited: the labels whose means audits can correct.
    :param has_unit_scale: True if the scores of the label are known to be in [0, 1].
    :param places: the place of each key of the clause, ``FILE:LINE``; a key may be in an included file.
    """

    on: str | None
    has_audit: bool
    audited: tuple[str, ...]
    has_unit_scale: bool = False
    places: Mapping[str, str] = field(factory=dict)


@frozen
class GatedRun:
    """Figures of a run that a clause of a plugin is decided by.

    :param on: the label of the clause.
    :param bound: the clause's ``bound``.
    :param document: [the run's document](exit-codes.md#the-runs-document) so far, with ``labels`` and ``metrics``.
    :param fingerprints: the fingerprints of the pipeline, as ``run.started`` has them.
    :param models: the names of the models that answered, by the label that asked.
    :param compared: the run and the baselines that clauses of plugins name in ``baseline``.
    """

    on: str
    bound: Bound
    document: Mapping[str, Any]
    fingerprints: Mapping[str, str]
    models: Mapping[str, Collection[str]]
    compared: ComparedRuns = field(factory=ComparedRuns)

    @property
    def figures(self) -> Mapping[str, Any]:
        """The figures of the clause's label: its entry in ``labels`` of *document*, or in ``metrics`` if the label is a single metric.

        [The run's document](exit-codes.md#the-runs-document) explains the keys. Both have ``mean``, ``pass_rate``, ``passes``, ``basis``, ``scored``
        and ``total``. Only an entry of ``labels`` has ``failed``, ``ci_low``, ``ci_high`` and ``ci_method``.
        """
        labels: Mapping[str, Any] = self.document["labels"]
        figures: Mapping[str, Any] = labels[self.on] if self.on in labels else self.document["metrics"][self.on]
        return figures

    @property
    def shown_on(self) -> str:
        """The name of the clause's label in a reason: the only metric's name for all metrics together, if both have the same figures."""
        return shown_label(self.document, self.on)

    def with_mean(self, finding: Finding, name: str, mean: float, interval: Ends) -> Finding:
        """Return *finding* about ``min_score`` or ``max_score``, decided by another *mean* with a 95 % *interval*.

        :param name: the name of the mean in the reason.
        """
        is_point = self.bound == "point"
        rule = (finding.rule, float(finding.line), finding.rule == "min_score")
        passed, reason = compare(name, (mean, mean), interval, rule, is_point=is_point)
        low, high = interval
        return evolve(finding, value=mean, passed=passed, reason=reason, low=low, high=high)


@runtime_checkable
class GateClause(Protocol):
    """Keys of a clause that a plugin adds: an attrs class with a field for each key.

    Each key is the name of an entry point in the group ``dicast.gate_clauses``, whose value is ``module:Class``. The class is loaded
    only for a file that has one of its keys. A class with the key ``baseline``, the name of a run, gets this run in ``compared``. The optional
    class attribute ``bounds`` lists the values of ``bound`` that the plugin's rule takes; the first is its default.
    """

    @property
    def label_key(self) -> str | None:
        """The key that needs a label: a clause with it must name its label ``on`` if the file has several. None if no key needs a label."""
        ...

    def faults(self, clause: Clause, file: GatedFile) -> Iterable[tuple[str, str]]:
        """Yield a key and a message for each fault of *clause* in *file*."""
        ...

    def decide(self, findings: Sequence[Finding], run: GatedRun) -> Sequence[Finding]:
        """Return *findings*, the results of the kernel's rules, with the results of the plugin's rules."""
        ...


@frozen
class Clause:
    """A rule for one label of the run.

    :param on: the label of a metric, a judge or a criterion; by default the only label of the file. A file with several labels needs
        it, unless the clause has ``min_coverage`` alone. If there are several labels, the first clause's label gives the run's score.
    :param min_score: the least mean.
    :param max_score: the greatest mean.
    :param min_pass_rate: the least share of passing subjects among all subjects that the label was to judge.
    :param min_coverage: the least share of scored subjects. The clause's label has to score them; without a label every label that
        accepts them. Below it the gate is undecided.
    :param min_basis: the weakest basis that any of the scores may have: ``human``, ``truth``, ``model``, ``heuristic`` or ``proxy``.
    :param bound: the compared figure: ``point`` the figure itself, ``interval`` its whole 95 % interval, ``anytime`` the decision of the
        early stop ``trust/anytime`` on this label, ``test`` the test of a clause with ``baseline``, which is its default. If the line is inside
        the interval, or there is no decision, the gate is undecided.
    :param coverage_note: text for the reason about coverage: that ``min_coverage`` is the default, and the clause's number and place among
        several.
    """

    on: str | None = None
    min_score: float | None = None
    max_score: float | None = field(default=None)
    min_pass_rate: float | None = field(default=None, validator=SHARE)
    min_coverage: float = field(default=MIN_COVERAGE, validator=SHARE)
    min_basis: Literal["human", "truth", "model", "heuristic", "proxy"] | None = None
    bound: Bound = "point"
    parts: tuple[GateClause, ...] = field(default=(), metadata={"keys": ()})
    coverage_note: str = field(default="", metadata={"keys": ()})

    @max_score.validator
    def _above(self, attribute: Attribute[Any], value: float | None) -> None:
        if value is not None and self.min_score is not None and value < self.min_score:
            raise ConfigError(
                f"max_score {value:g} is below min_score {self.min_score:g}: no score is in between; change one of them"
            )


@frozen
class Gate:
    """Gate of a pipeline: a run must pass all *clauses*. A file without the section ``gate`` has none."""

    clauses: tuple[Clause, ...] = ()

    def baselines(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each clause that compares the run with a baseline, and the name of the baseline."""
        for index, clause in enumerate(self.clauses):
            names = (getattr(part, "baseline", None) for part in clause.parts)
            yield from ((index, name) for name in names if isinstance(name, str))
