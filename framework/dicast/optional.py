"""What components may have beside the methods of their kind, as protocols for type checkers. docs/reference/members.md is made of this module."""

# ruff: noqa: PLC0414  # an alias says that the name is offered here
# None need be inherited from. ``checked: type[HasEstimate] = MyMetric`` lets a type checker compare.
from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .optional_ledgers import HasActivityColumns as HasActivityColumns
from .optional_ledgers import HasOpenJudgments as HasOpenJudgments
from .optional_ledgers import HasVerdictColumns as HasVerdictColumns
from .optional_records import HasCriteria as HasCriteria
from .optional_records import HasCriterion as HasCriterion
from .optional_records import HasInterval as HasInterval
from .optional_records import HasLabelOptions as HasLabelOptions
from .optional_records import HasNeedsLine as HasNeedsLine
from .optional_records import HasNeedsScore as HasNeedsScore
from .optional_records import HasNeedsShuffle as HasNeedsShuffle
from .optional_records import HasObservesFailedRequests as HasObservesFailedRequests
from .optional_records import HasObservesFailures as HasObservesFailures
from .optional_records import HasSourceField as HasSourceField

if TYPE_CHECKING:
    from . import Cost, Failure, Judge, Problem, ReadCounts, Rubric, RunContext, Score, Subject


class HasOpen(Protocol):
    """Any kind."""

    def open(self, run: RunContext) -> AbstractAsyncContextManager[Any]:
        """Gives the live object, which has the methods of the kind; it is entered and left once a run. Without it the component is its own live object."""


class HasReads(Protocol):
    """Any kind."""

    def reads(self, base: Path) -> Mapping[str, Path | str]:
        """What it reads beside its options, by a name for each: a path enters the fingerprint by its content, a text as it is. *base* is the pipeline file's folder. Without it, nothing."""


class HasAssumptions(Protocol):
    """Metrics, judges, tasks, chat models."""

    def assumptions(self) -> Sequence[str]:
        """The values that it assumes for options that the file does not have, one sentence each, for the summary. Without it, none."""


class HasEstimate(Protocol):
    """Metrics, judges, tasks, chat models."""

    def estimate(self, asked: Any) -> Cost:
        """What one call may cost at most, of the subject that is asked about, or of the request to a chat model. Without it, nothing."""


class HasDefaultTimeout(Protocol):
    """Metrics, judges, tasks, extractors; on the live object."""

    @property
    def default_timeout(self) -> float | None:
        """Seconds that one call may take where the slot has no ``timeout``. Without it 60 for a ``def`` and 600 for an ``async def``."""


class HasDefaultPassAt(Protocol):
    """Metrics, judges."""

    @property
    def default_pass_at(self) -> float:
        """The score with which a subject passes where the slot has no ``pass_at``. Without it, 0.5."""


class HasNeedsOutput(Protocol):
    """Metrics, judges, extractors."""

    @property
    def needs_output(self) -> bool | Literal["always"]:
        """False where it judges something else than the output; ``"always"`` where trace events do not stand in for one. Without it, True."""


class HasKeepsTexts(Protocol):
    """Metrics, judges."""

    @property
    def keeps_texts(self) -> bool:
        """True where its signals or messages hold what others wrote: its verdicts are recorded as ``user_controlled``. Without it, False."""


class HasNeedsRange(Protocol):
    """Metrics."""

    @property
    def needs_range(self) -> bool:
        """True where the answers are any numbers: the slot's ``range`` maps them to [0, 1], and without a ``range`` they stay raw. Without it, False."""


class HasLowerIsBetter(Protocol):
    """Metrics."""

    @property
    def lower_is_better(self) -> bool:
        """True where the lowest number of the slot's ``range`` scores 1, and the highest 0; the slot must have a ``range``. Without it, False."""


class HasScoreBatch(Protocol):
    """Metrics that cost nothing; on the live object."""

    def score_batch(
        self, subjects: Sequence[Subject]
    ) -> Sequence[Score | Failure] | Awaitable[Sequence[Score | Failure]]:
        """An answer for each of the subjects that are under way at the same time, in their order. Where it raises, each is asked about alone."""


class HasAccepts(Protocol):
    """Judges."""

    @property
    def accepts(self) -> Sequence[str]:
        """The kinds of subjects that it judges. Without it, or empty, any."""


class HasChildren(Protocol):
    """Judges."""

    @property
    def children(self) -> str | None:
        """An option: the label of the judge whose verdicts on the subject's parts it is given. Where it is null, the last judge before it that judges the parts."""


class HasFallback(Protocol):
    """Judges."""

    @property
    def fallback(self) -> Judge | None:
        """The judge that is asked in its place when a cap leaves no room for it. Without it the subject fails."""


class HasStages(Protocol):
    """Judges."""

    @property
    def stages(self) -> Sequence[Judge]:
        """The judges that it asks one after the other, from cheap to dear: ``dicast plan`` wants a larger pilot then."""


class HasJudgeKind(Protocol):
    """Judges."""

    @property
    def judge_kind(self) -> str:
        """What is planned as the verdict's ``judge_kind``. Without it, ``evaluator``."""


class HasRubric(Protocol):
    """Judges."""

    @property
    def rubric(self) -> Rubric | None:
        """The rubric that it judges by, most often an option. Without it, one with the component's name and version."""


class HasRubricFor(Protocol):
    """Judges."""

    def rubric_for(self, kind: str) -> Rubric:
        """The rubric for subjects of *kind*, where it depends on the kind."""


class HasLookahead(Protocol):
    """Metrics, judges."""

    @property
    def lookahead_messages(self) -> int:
        """How many later messages a turn waits for before it is judged, while its session goes on. Without it, 0."""

    @property
    def lookahead_hours(self) -> float:
        """How many hours without a message are enough. Without it, 0."""


class HasKinds(Protocol):
    """Sources."""

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of subjects that it yields. Without it, or empty, it does not say."""


class HasCheck(Protocol):
    """Sources; on the live object."""

    def check(self) -> str | Awaitable[str]:
        """Reads all input before anything is judged, raises :class:`~dicast.DataError` with every bad line, and returns a digest of the data. Without it ids are compared while they are read."""


class HasTotal(Protocol):
    """Sources; on the live object."""

    @property
    def total(self) -> int | None:
        """After the check, how many subjects there are. Without it, or None, that is not known."""


class HasNoOutput(Protocol):
    """Sources; on the live object."""

    @property
    def no_output(self) -> Problem | None:
        """After the check, why no subject has an output; the run is refused where outputs are judged and none are made. Without it, or None, some may have one."""


class HasReadCounts(Protocol):
    """Sources; on the live object."""

    def read_counts(self) -> ReadCounts:
        """The counts of the newest pass of ``subjects``, so far: the run's document has them as ``read``. A live source that is taken up continues with the counts that it recorded. Without it ``read`` has the counts of subjects alone."""


class HasLive(Protocol):
    """Sources; on the live object."""

    @property
    def live(self) -> bool:
        """True where it waits for what is still to happen, and yields a subject when it is due. Without it, False."""


class HasOrdered(Protocol):
    """Sources; on the live object."""

    @property
    def ordered(self) -> bool:
        """False where a live source's subjects have nothing to do with each other: each is recorded as soon as it is judged. Without it, True."""


class HasPauses(Protocol):
    """Sources; on the live object."""

    @property
    def pauses(self) -> bool:
        """True where its end is not the run's: the next process takes the run up. Without it, False."""


class HasLevels(Protocol):
    """Tasks."""

    @property
    def security_level(self) -> str | None:
        """A text that every record carries: how secret it is. Without it, none."""

    @property
    def determinism_level(self) -> str | None:
        """A text that every record carries: how sure it is to come out the same again. Without it, none."""


class HasIdentity(Protocol):
    """Chat models; on the live object."""

    def identity(self) -> Mapping[str, object]:
        """What of it decides a reply, as JSON data without secrets: for those that keep replies. Without it, its options."""


class HasSendCollected(Protocol):
    """Chat models that answer in batches; on the live object. :mod:`dicast.toolkit.batches` has one for any provider."""

    @property
    def longest_wait(self) -> float:
        """The maximum time of a reply in seconds. The reservation of a call stays open for this time, even after the process ends."""

    async def send_collected(self) -> None:
        """Sends the calls that ``complete`` collected, and returns once all of them are answered; called when nothing else of the run can go on. A call that waits counts neither for ``concurrency`` nor for a ``timeout``. Without it, each call is answered by itself."""


class HasWants(Protocol):
    """Sinks; on the component or the live object."""

    @property
    def wants(self) -> Sequence[str]:
        """The types of the events that it is sent, of [events](events.md). Without it, or empty, all."""


class HasRewrites(Protocol):
    """Sinks; on the component or the live object."""

    @property
    def rewrites(self) -> bool:
        """True where its output is made anew each time: a resumed run sends it everything again. Without it, False."""


class HasContent(Protocol):
    """Sinks; on the component or the live object."""

    @property
    def content(self) -> bool:
        """True where it gets the rationales and the replies of failed judgments that the ledger keeps. Without it, False."""


class HasTakesReevaluations(Protocol):
    """Sinks; on the component."""

    @property
    def takes_reevaluations(self) -> bool:
        """True where its ``path`` also takes the verdicts of later ``dicast evaluate`` runs over the same ledger. Without it, False."""


class HasPath(Protocol):
    """Sources, sinks, ledgers."""

    @property
    def path(self) -> Path:
        """The file that it reads or writes; a sink that would write over another component's file is refused. Two experiments of a suite may not have sinks with the same, and a resumed run knows its outputs by it. Without it, by the sink's options."""


class HasKeepsContent(Protocol):
    """Ledgers; on the live object."""

    @property
    def keeps_content(self) -> bool:
        """Whether what was judged can be read back; what is watched needs that. Without it, True."""


class HasHost(Protocol):
    """Executors."""

    async def host(self, slots: Sequence[Any]) -> Mapping[str, Callable[..., Any]]:
        """Takes the metrics of some of the *slots* upon itself: how each is asked, by the slot's path; on the live object. Without it the kernel asks all metrics."""


class HasPlacement(Protocol):
    """Executors."""

    def placement(self, slots: Sequence[Any]) -> Mapping[str, str]:
        """Why metrics of *slots* are not asked elsewhere, by label; ``dicast check`` prints it."""


class HasSandboxCheck(Protocol):
    """Sandboxes."""

    def check(self) -> None:
        """Raises :class:`~dicast.ConfigError` where it does not work here, and says what to do about it."""
