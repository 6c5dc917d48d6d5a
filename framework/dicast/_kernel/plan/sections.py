"""The sections of a pipeline, checked."""

from __future__ import annotations

from collections.abc import Mapping
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
"""The sections that a pipeline file may have, in the order in which the docs have them; the schema says what each takes."""

RECORD = ""
"""Stands in the place of a label for a subject's record."""


_NOT_NEGATIVE = Within(0, inf, "0 or more")
AT_LEAST_ONE = Within(1, inf, "1 or more")


@frozen
class Scoring:
    """How metrics become a score.

    :param threshold: what every proxy has to reach, in [0, 1], for the truth metrics to run.
    :param rollouts: how often the metrics judge each subject; 1 or more.
    :param aggregation: how rollouts, and then subjects, come to one score.
    :param audit: which subjects below the threshold the truth metrics look at all the same.
    :param on_budget: what becomes of a subject where the budget has no room: ``skip_metric`` leaves out each truth metric that does
        not fit; ``skip_subject`` judges the subject only where all its metrics fit together, and else skips it.
    :param pass_at: when a subject passes: ``all``, where every metric with a weight reaches its own ``pass_at``; or the least combined score, in [0, 1].
    :param combine: what makes the score of a subject that passed the gate: ``all``, the weighted mean of proxies and truths;
        ``truth``, that of the truths alone, so that the proxies only gate.
    """

    threshold: float = field(default=0.5, validator=SHARE)
    rollouts: int = field(default=1, validator=AT_LEAST_ONE, metadata={"keys": ("rollouts", "num_rollouts")})
    aggregation: Aggregation = "median"
    audit: Audit | None = None
    on_budget: OnBudget = "skip_metric"
    pass_at: float | Literal["all"] = field(default="all", validator=WithinOr(SHARE, "all"))
    combine: Combine = "all"


def _amounts(given: Cost | tuple[Cost, ...]) -> tuple[Cost, ...]:
    return given if isinstance(given, tuple) else (given,)


def _one_a_unit(instance: object, attribute: Attribute[Any], value: tuple[Cost, ...]) -> None:
    units = [cost.unit for cost in value]
    if len(set(units)) < len(units):
        raise ValueError(f"{attribute.name} has two amounts in one unit: {', '.join(map(str, value))}")


def _limit(*default: str) -> Any:
    """A field that takes an amount of money, or a list with one a unit."""
    return field(
        default=tuple(Cost(amount) for amount in default),
        converter=_amounts,
        validator=_one_a_unit,
        metadata={"takes": Cost | tuple[Cost, ...]},
    )


@frozen
class Budget:
    """What may be spent, a scope; no amount in a unit is no limit. *disabled* judges nothing."""

    run: tuple[Cost, ...] = _limit()
    session: tuple[Cost, ...] = _limit("0.10")
    day: tuple[Cost, ...] = _limit("1.00")
    disabled: bool = False


@frozen
class Plugins:
    """Which installed plugins must not be loaded."""

    block: tuple[str, ...] = ()


def _named(_instance: object, _attribute: Attribute[str | None], label: str | None) -> None:
    if label is not None and not label.strip():
        raise ValueError("a label is a name and not empty; leave as out for the component's own")


@frozen
class Label:
    """What may stand among the options of a sink, an extractor, an aggregate, a comparison and an early stop."""

    label: str | None = field(default=None, metadata={"keys": ("as",)}, validator=_named)


def _kinds(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


@frozen
class CallOptions:
    """What may stand among the options of whatever is asked about each subject: how the kernel asks it."""

    label: str | None = field(default=None, metadata={"keys": ("as",)}, validator=_named)
    timeout: float | None = field(
        default=None, validator=Within(0, 1e9, "more than 0 and less than 1e9 seconds", open=True)
    )
    retries: int = field(default=0, validator=_NOT_NEGATIVE)


@frozen
class TaskOptions(CallOptions):
    """What may stand among the options of a task. With ``zero`` a subject that it fails on scores 0."""

    on_failure: Literal["fail", "zero"] = "fail"


@frozen
class SourceOptions:
    """What may stand among the options of a source.

    :param shuffle: a seed: subjects come in a random order that it decides, those of one session together and in theirs.
    """

    shuffle: int | None = field(default=None, validator=validators.optional(SEED))


def _finite(_instance: object, _attribute: Attribute[float | None], value: float | None) -> None:
    """Refuse what is no finite number; that a score passes from a line in [0, 1] on is checked where the scale is known."""
    if value is not None and not isfinite(value):
        raise ValueError(f"invalid value for pass_at, expected a finite number, got {value}")


@frozen
class SlotOptions(CallOptions):
    """What may stand among the options of a metric or a judge: how the kernel treats it."""

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
    """A component where the pipeline uses it.

    *component* is the configuration, not yet opened; *path* addresses it in the file; *options* are its effective options
    as JSON data, with secrets masked; *timeout* is in seconds; an empty *on* is every subject kind; *fingerprint* digests
    whatever of it could change a number, *setup* that and every other option. *inside* are the slots of the judges inside it, by where they
    stand (``.stages[0]``): each has the fingerprint that it would have alone. *shuffle* is a source's seed. *is_raw* says that the metric
    answers with numbers on a scale of its own; *pass_at* is None where such a slot has none.
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

    def accepts(self, kind: str) -> bool:
        """True when subjects of *kind* are judged here."""
        return not self.on or kind in self.on


@frozen
class Baseline:
    """What a run is compared with: *run* is ``last`` (the newest finished run of the same name), a run's id, the name of a pipeline
    (its newest finished run), or a file that ``jsonl/rows`` wrote; *compare* are the comparisons.
    """

    run: str
    compare: tuple[Slot, ...] = field(default=(), metadata={"keys": ()})


@frozen
class Pipeline:
    """A pipeline file, checked and built.

    *file* is named as the user wrote it; *experiment* is which one of a suite; *base* is the file's directory; *trust* has the files of code that may be run; *source* may be None where subjects come from elsewhere;
    *fingerprints* digests, a section or component, what could
    change a number; *setup* likewise what may not change between a run and its resume. *criteria* are those of the task that an
    extractor scores.
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
