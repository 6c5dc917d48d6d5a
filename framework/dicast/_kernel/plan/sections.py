"""Sections of a checked pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal

from ..classes import Attribute, field, frozen, validators
from ..values import Cost
from ..values.aggregation import Aggregation
from ..values.bounds import Within, WithinOr
from ..values.passes import METRICS as METRICS  # noqa: PLC0414  # offered here
from ..values.passes import PASS_AT as PASS_AT  # noqa: PLC0414
from .audit import SEED, SHARE, Audit
from .clauses import Gate

Combine = Literal["all", "truth"]
OnBudget = Literal["skip_metric", "skip_subject"]
OnFailure = Literal["fail", "exclude", "zero"]
Tier = Literal["proxy", "truth"]

SECTIONS = (
    "name", "include", "define", "source", "task", "metrics", "scoring", "judges", "extractors", "aggregates", "early_stop",
    "baseline", "experiments", "budget", "gate", "sinks", "ledger", "executor", "disabled", "plugins", "trust",
)  # fmt: skip
"""Sections of a pipeline file, in the order of the docs; the schema has the values of each section."""

RECORD = ""
"""Label of a subject's record."""


_NOT_NEGATIVE = Within(0, inf, "0 or more")
AT_LEAST_ONE = Within(1, inf, "1 or more")


@frozen
class Scoring:
    """Rules that combine metrics into a score.

    :param threshold: the score in [0, 1] that every proxy has to reach before the truth metrics run.
    :param rollouts: how often the metrics judge each subject; 1 or more.
    :param aggregation: the rule that combines the scores of rollouts, and then of subjects.
    :param audit: the selection of subjects below the threshold that the truth metrics judge nevertheless.
    :param on_budget: the treatment of a subject for which the remaining budget is too small: ``skip_metric`` leaves out each truth metric
        that does not fit; ``skip_subject`` judges the subject only if all its metrics fit together, and otherwise skips it.
    :param pass_at: the condition to pass: ``all``, every metric with a weight reaches its own ``pass_at``; or the least combined score, in [0, 1],
        which is also the ``pass_at`` of an only metric.
    :param combine: the score of a subject that passed the gate: ``all``, the weighted mean of proxies and truths;
        ``truth``, the weighted mean of the truths alone, so that the proxies only gate.
    """

    threshold: float = field(default=0.5, validator=SHARE)
    rollouts: int = field(default=1, validator=AT_LEAST_ONE, metadata={"keys": ("rollouts", "num_rollouts")})
    aggregation: Aggregation = "median"
    audit: Audit | None = None
    on_budget: OnBudget = "skip_metric"
    pass_at: float | Literal["all"] = field(default="all", validator=WithinOr(SHARE, "all"))
    combine: Combine = "all"


def _amounts(amounts: Cost | tuple[Cost, ...]) -> tuple[Cost, ...]:
    return amounts if isinstance(amounts, tuple) else (amounts,)


def _one_amount_per_unit(instance: object, attribute: Attribute[Any], value: tuple[Cost, ...]) -> None:
    units = [cost.unit for cost in value]
    if len(set(units)) < len(units):
        raise ValueError(f"{attribute.name} has two amounts in one unit: {', '.join(map(str, value))}")


def _limit(*default: str) -> Any:
    """Return a field for an amount of money, or a list with one amount for each unit."""
    return field(
        default=tuple(Cost(amount) for amount in default),
        converter=_amounts,
        validator=_one_amount_per_unit,
        metadata={"takes": Cost | tuple[Cost, ...]},
    )


@frozen
class Budget:
    """Limits of spending by scope; there is no limit in a unit without an amount. *disabled* judges nothing."""

    run: tuple[Cost, ...] = _limit()
    session: tuple[Cost, ...] = _limit("0.10")
    day: tuple[Cost, ...] = _limit("1.00")
    disabled: bool = False


@frozen
class Plugins:
    """Installed plugins that must not be loaded."""

    block: tuple[str, ...] = ()


def _not_blank(_instance: object, _attribute: Attribute[str | None], label: str | None) -> None:
    if label is not None and not label.strip():
        raise ValueError("a label must not be empty; remove 'as' to use the component's name")


@frozen
class Label:
    """Options that the kernel accepts next to the options of a sink, an extractor, an aggregate, a comparison and an early stop."""

    label: str | None = field(default=None, metadata={"keys": ("as",)}, validator=_not_blank)


def _kinds(kinds: str | tuple[str, ...]) -> tuple[str, ...]:
    return (kinds,) if isinstance(kinds, str) else kinds


@frozen
class CallOptions:
    """Options that the kernel accepts next to the options of a component that is called for each subject."""

    label: str | None = field(default=None, metadata={"keys": ("as",)}, validator=_not_blank)
    timeout: float | None = field(
        default=None, validator=Within(0, 1e9, "more than 0 and less than 1e9 seconds", open=True)
    )
    retries: int = field(default=0, validator=_NOT_NEGATIVE)


@frozen
class TaskOptions(CallOptions):
    """Options that the kernel accepts next to the options of a task. With ``zero`` a subject whose task fails scores 0."""

    on_failure: Literal["fail", "zero"] = "fail"


@frozen
class SourceOptions:
    """Options that the kernel accepts next to the options of a source.

    :param shuffle: a seed: subjects come in the random order of this seed; the subjects of one session stay together and in order.
    """

    shuffle: int | None = field(default=None, validator=validators.optional(SEED))


def _finite(_instance: object, _attribute: Attribute[float | None], value: float | None) -> None:
    """Refuse a number that is not finite. The range [0, 1] is checked later, when the metric's scale is known."""
    if value is not None and not isfinite(value):
        raise ValueError(f"invalid value for pass_at, expected a finite number, got {value}")


@frozen
class SlotOptions(CallOptions):
    """Options that the kernel accepts next to the options of a metric or a judge."""

    weight: float = field(default=1.0, validator=Within(0, 1e9, "a number from 0 to 1e9"))
    on: tuple[str, ...] = field(default=(), converter=_kinds, metadata={"takes": str | tuple[str, ...]})
    range: tuple[float, float] | None = field(default=None)
    on_failure: OnFailure = "fail"
    pass_at: float | None = field(default=None, validator=_finite)

    @range.validator
    def _rising(self, attribute: Attribute[Any], value: tuple[float, float] | None) -> None:
        if value is not None and value[0] >= value[1]:
            raise ValueError(f"invalid value for range, expected [low, high] with low < high, got {list(value)}")


@frozen
class Slot:
    """A component in its place in the pipeline.

    *component* is the configuration, not yet opened. *path* is its address in the file. *options* are its effective options as JSON data,
    with secrets masked. *timeout* is in seconds. An empty *on* is every subject kind. *fingerprint* digests the options that can change a
    number, which are *counting*, and *setup* digests all options. *inside* has the slots of the nested judges by address (``.stages[0]``), each with the fingerprint of
    the judge alone. *shuffle* is a source's seed. *is_raw* is whether the metric has a scale of its own; *pass_at* is None if such a slot has
    no line.

    :param label: the name in reports: the key ``as`` or the component's name.
    :param name: the component's name, such as ``proxy/format``.
    :param kind: the kind of the component.
    :param version: the version of its distribution.
    :param distribution: the distribution that offers it.
    :param tier: ``proxy`` or ``truth``; None for other kinds.
    :param weight: the weight in the score.
    :param retries: the number of further tries of a call that failed with a retryable failure.
    :param range: the scale of its values, from worst to best; None is [0, 1].
    :param on_failure: the treatment of a subject that the metric fails.
    """

    label: str
    name: str
    component: Any
    kind: str
    version: str
    distribution: str
    path: str
    options: Mapping[str, object]
    fingerprint: str
    setup: str = ""
    tier: str | None = None
    weight: float = 1.0
    timeout: float | None = None
    retries: int = 0
    on: tuple[str, ...] = ()
    range: tuple[float, float] | None = None
    on_failure: OnFailure = "fail"
    pass_at: float | None = PASS_AT
    is_raw: bool = False
    shuffle: int | None = None
    inside: Mapping[str, Slot] = field(factory=dict)
    counting: Mapping[str, object] = field(factory=dict)

    @property
    def address(self) -> tuple[str | int, ...]:
        """The steps of *path*, for :attr:`Pipeline.place`."""
        return tuple(int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", self.path))

    def accepts(self, kind: str) -> bool:
        """Return whether subjects of *kind* are judged here."""
        return not self.on or kind in self.on


@frozen
class Baseline:
    """Run that a run is compared with. *run* is ``last`` (the newest finished run of the same name), a run's id, the name of a pipeline
    (its newest finished run), or a file of ``jsonl/rows``; *compare* are the comparisons.
    """

    run: str
    compare: tuple[Slot, ...] = field(default=(), metadata={"keys": ()})


@frozen
class Pipeline:
    """A pipeline file, checked and built.

    *file* is the name that the user wrote. *experiment* is the experiment of a suite. *base* is the file's directory. *trust* has the code
    files that may be run. *source* is None if subjects come from elsewhere. *fingerprints* has digests, by section and component, of
    everything that can change a number. *setup* has digests of everything that must stay the same between a run and its resume.
    *criteria* are the task's criteria that an extractor scores. *notes* are warnings about parts of the file that the run
    leaves out, each with its kind.
    *files* are the files and folders that the pipeline is made of or reads. *spec* is the pipeline as plain data for an executor that splits
    runs, None with objects of a program. *place* returns the file, the line and the column of the value at
    an address, or of the nearest value around it. *named* has each text of the file with the value of an environment variable, and the text
    with the variable's name in its place.
    """

    name: str
    experiment: str | None
    file: str
    base: Path
    source: Slot | None
    task: Slot | None
    metrics: tuple[Slot, ...]
    judges: tuple[Slot, ...]
    scoring: Scoring
    budget: Budget
    gate: Gate
    extractors: tuple[Slot, ...]
    aggregates: tuple[Slot, ...]
    early_stop: tuple[Slot, ...]
    baseline: Baseline | None
    sinks: tuple[Slot, ...]
    ledger: Slot | None
    executor: Slot
    disabled: bool
    trust: tuple[Path, ...]
    fingerprints: Mapping[str, str]
    setup: Mapping[str, str]
    criteria: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    files: tuple[Path, ...] = ()
    place: Callable[[tuple[str | int, ...]], tuple[str, int | None, int | None]] = field(
        default=lambda _: ("", None, None), eq=False, repr=False
    )
    named: Mapping[str, str] = field(factory=dict, eq=False, repr=False)
    spec: Mapping[str, Any] | None = field(default=None, eq=False, repr=False)

    @property
    def is_observed(self) -> bool:
        """True if aggregates, early stops or a comparison with a baseline need the run's records."""
        return bool(self.aggregates or self.early_stop or self.baseline)

    def place_text(self, slot: Slot) -> str:
        """Return the place of *slot* as ``FILE:LINE:COLUMN``; empty for a slot of a program or of ``--set``."""
        file, line, column = self.place(slot.address)
        return "" if line is None or file.startswith(("<", "--")) else f"{file}:{line}:{column}"
