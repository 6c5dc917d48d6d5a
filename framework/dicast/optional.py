"""Optional members of components in addition to the methods of their kind, as protocols for type checkers. docs/reference/authors.md is generated from this module."""

# ruff: noqa: PLC0414  # an alias marks a name as exported
# Components need not inherit from them. ``checked: type[HasEstimate] = MyMetric`` lets a type checker compare.
from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ._kernel.contract.has_open import HasOpen as HasOpen
from .optional_executors import HasHost as HasHost
from .optional_executors import HasPlacement as HasPlacement
from .optional_executors import HasRun as HasRun
from .optional_executors import HasSegments as HasSegments
from .optional_executors import HasShard as HasShard
from .optional_ledgers import HasActivityColumns as HasActivityColumns
from .optional_ledgers import HasAppendJudged as HasAppendJudged
from .optional_ledgers import HasDigests as HasDigests
from .optional_ledgers import HasIsAsyncLedger as HasIsAsyncLedger
from .optional_ledgers import HasOpenJudgments as HasOpenJudgments
from .optional_ledgers import HasPricingVersion as HasPricingVersion
from .optional_ledgers import HasProofs as HasProofs
from .optional_ledgers import HasReadJudged as HasReadJudged
from .optional_ledgers import HasSchemes as HasSchemes
from .optional_ledgers import HasVerdictColumns as HasVerdictColumns
from .optional_ledgers import HasVerifyIn as HasVerifyIn
from .optional_records import HasCriteria as HasCriteria
from .optional_records import HasCriterion as HasCriterion
from .optional_records import HasFillPrompts as HasFillPrompts
from .optional_records import HasInterval as HasInterval
from .optional_records import HasLabelOptions as HasLabelOptions
from .optional_records import HasMetricOptions as HasMetricOptions
from .optional_records import HasNeededColumns as HasNeededColumns
from .optional_records import HasNeedsLine as HasNeedsLine
from .optional_records import HasNeedsScore as HasNeedsScore
from .optional_records import HasNeedsShuffle as HasNeedsShuffle
from .optional_records import HasObservesFailedRequests as HasObservesFailedRequests
from .optional_records import HasObservesFailures as HasObservesFailures
from .optional_records import HasPromptTexts as HasPromptTexts
from .optional_records import HasSourceField as HasSourceField
from .optional_records import HasTakesWeights as HasTakesWeights

if TYPE_CHECKING:
    from dicast.toolkit.beginning import Beginning
    from dicast.toolkit.detection import Detection
    from dicast.toolkit.reception import Receiver, Reception
    from dicast.toolkit.session_folders import SessionFolder

    from . import Cost, Due, Failure, Judge, Problem, ReadCounts, Rubric, Score, Subject


class HasName(Protocol):
    """Any kind; on the class."""

    @property
    def name(self) -> str:
        """Its name after ``PLUGIN/`` in a pipeline. Without it, the class's name in snake case: ``EnoughWords`` is ``enough_words``."""


class HasReads(Protocol):
    """Any kind."""

    def reads(self, base: Path) -> Mapping[str, Path | str]:
        """Return the inputs that it reads in addition to its options, by name: a path enters the fingerprint by its content, a text unchanged. *base* is the pipeline file's folder. Without it, nothing."""


class HasAssumptions(Protocol):
    """Metrics, judges, tasks, chat models."""

    def assumptions(self) -> Sequence[str]:
        """Return the values that it assumes for options missing from the file, one sentence each, for the summary. Without it, none."""


class HasEstimate(Protocol):
    """Metrics, judges, tasks, chat models."""

    def estimate(self, subject_or_request: Any, /) -> Cost:
        """Return the highest cost of one call for a subject, or for a request to a chat model. Without it, nothing."""


class HasDefaultTimeout(Protocol):
    """Metrics, judges, tasks, extractors; on the live object."""

    @property
    def default_timeout(self) -> float | None:
        """Limit of one call in seconds if the slot has no ``timeout``. Without it, 60 for a ``def`` and 600 for an ``async def``."""


class HasDefaultPassAt(Protocol):
    """Metrics, judges."""

    @property
    def default_pass_at(self) -> float:
        """Least score with which a subject passes if the slot has no ``pass_at``. Without it, 0.5."""


class HasNeedsOutput(Protocol):
    """Metrics, judges, extractors."""

    @property
    def needs_output(self) -> bool | Literal["always"]:
        """False if it judges something other than the output; ``"always"`` if trace events cannot replace an output. Without it, True."""


class HasKeepsTexts(Protocol):
    """Metrics, judges."""

    @property
    def keeps_texts(self) -> bool:
        """True if its signals or messages contain text of users: its verdicts are recorded as ``user_controlled``. Without it, False."""


class HasNeedsRange(Protocol):
    """Metrics."""

    @property
    def needs_range(self) -> bool:
        """True if its answers are any numbers: the slot's ``range`` maps them to [0, 1], and without a ``range`` they stay raw. Without it, False."""


class HasLowerIsBetter(Protocol):
    """Metrics."""

    @property
    def lower_is_better(self) -> bool:
        """True if the lowest number of the slot's ``range`` scores 1 and the highest 0; the slot must have a ``range``. Without it, False."""


class HasScoreBatch(Protocol):
    """Metrics that cost nothing; on the live object."""

    def score_batch(
        self, subjects: Sequence[Subject]
    ) -> Sequence[Score | Failure] | Awaitable[Sequence[Score | Failure]]:
        """Return an answer for each of the subjects in progress, in their order. If it raises, the metric is called for each subject alone."""


class HasSubjectIds(Protocol):
    """Metrics, judges; on the live object."""

    @property
    def subject_ids(self) -> Collection[str]:
        """Ids of subjects or sessions in its data; at the end of a run, ids without a subject are a warning. The id of a session does not fit its turns if there are several. Without it, none."""


class HasAccepts(Protocol):
    """Judges."""

    @property
    def accepts(self) -> Sequence[str]:
        """Kinds of subjects that it judges. Without it, or empty, any kind."""


class HasChildren(Protocol):
    """Judges."""

    @property
    def children(self) -> str | None:
        """An option: the label of the judge whose verdicts on the subject's parts it receives. If null, the last judge before it that judges the parts."""


class HasFallback(Protocol):
    """Judges."""

    @property
    def fallback(self) -> Judge | None:
        """The judge that is asked in its place if a cap leaves too little budget. Without it, the subject fails."""


class HasStages(Protocol):
    """Judges."""

    @property
    def stages(self) -> Sequence[Judge]:
        """The judges that it asks one after the other, from cheap to expensive: ``dicast plan`` then requires a larger pilot."""


class HasJudgeKind(Protocol):
    """Judges."""

    @property
    def judge_kind(self) -> str:
        """The planned ``judge_kind`` of its verdicts. Without it, ``evaluator``."""


class HasRubric(Protocol):
    """Judges."""

    @property
    def rubric(self) -> Rubric | None:
        """The rubric of its judgments, usually an option. Without it, a rubric with the component's name and version."""


class HasRubricFor(Protocol):
    """Judges."""

    def rubric_for(self, kind: str) -> Rubric:
        """Return the rubric for subjects of *kind*, if it depends on the kind."""


class HasLookahead(Protocol):
    """Metrics, judges."""

    @property
    def lookahead_messages(self) -> int:
        """Number of later messages that a turn waits for before it is judged, while its session goes on. Without it, 0."""

    @property
    def lookahead_hours(self) -> float:
        """Number of hours without a message after which it stops waiting. Without it, 0."""


class HasKinds(Protocol):
    """Sources."""

    @property
    def kinds(self) -> Sequence[str]:
        """Kinds of subjects that it yields. Without it, or empty, unknown."""


class HasCheck(Protocol):
    """Sources; on the live object."""

    def check(self) -> str | Awaitable[str]:
        """Read all input before a subject is judged, raise :class:`~dicast.DataError` with every bad line, and return a digest of the data. Without it, ids are compared while subjects are read."""


class HasReceiver(Protocol):
    """Sources."""

    def receiving(self, reception: Reception) -> AbstractContextManager[Receiver]:
        """Return a context manager that receives data of other programs and yields their sessions, for ``dicast watch --otlp``. Without it, ``--otlp`` is refused for the source."""


class HasDetect(Protocol):
    """Sources; on the component. The plugin must be in the entry-point group ``dicast.formats``."""

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the :class:`~dicast.toolkit.detection.Detection` of the source's format in a file with this *beginning*; None for any other format. ``dicast import`` and ``dicast init`` call it. Without it, the source is named in the pipeline."""


class HasTotal(Protocol):
    """Sources; on the live object."""

    @property
    def total(self) -> int | None:
        """Number of subjects, after the check. Without it, or None, unknown."""


class HasShards(Protocol):
    """Sources with ``total``; on the live object."""

    def shards(self, of: int) -> Sequence[Iterable[tuple[int, Subject | Due]]]:
        """Return *of* slices of the data, for runs in shards: each yields its subjects with their places among all subjects, from 0, in ascending order. A subject is in one slice, and the subjects of a session are in the same slice; a slice may be empty. It is called after ``check``. ``read_counts`` then counts the slice that was read. It is not used with ``shuffle``, filters or a limit. Without it, a shard reads all subjects, and has every N-th session."""


class HasNoOutput(Protocol):
    """Sources; on the live object."""

    @property
    def no_output(self) -> Problem | None:
        """The reason why no subject has an output, after the check; the run is refused if outputs are judged and no task makes them. Without it, or None, subjects may have outputs."""


class HasUndrawn(Protocol):
    """Sources; on the live object."""

    def undrawn(self, ids: Collection[str]) -> Collection[str]:
        """Return the *ids* of subjects and sessions that a sample leaves out: data about them is no mistake. Without it, none."""


class HasSessionFolders(Protocol):
    """Sources with ``detect``."""

    @classmethod
    def session_folders(cls, root: Path, names: Sequence[str]) -> Sequence[SessionFolder]:
        """Return the folders below *root* whose files are one session each. *names* are the paths of all files below *root*. ``dicast import`` calls it. Without it, each file has its own sessions."""


class HasReadCounts(Protocol):
    """Sources; on the live object."""

    def read_counts(self) -> ReadCounts:
        """Return the counts of the newest pass of ``subjects`` so far: the run's document has them as ``read``. A live source that is resumed continues with its recorded counts. Without it, ``read`` counts subjects alone."""


class HasLive(Protocol):
    """Sources; on the live object."""

    @property
    def live(self) -> bool:
        """True if it waits for future data, and yields a subject when it is due. Without it, False."""


class HasOrdered(Protocol):
    """Sources; on the live object."""

    @property
    def ordered(self) -> bool:
        """False if a live source's subjects are independent: each is recorded as soon as it is judged. Without it, True."""


class HasPauses(Protocol):
    """Sources; on the live object."""

    @property
    def pauses(self) -> bool:
        """True if the end of the source is not the end of the run: the next process resumes the run. Without it, False."""


class HasLevels(Protocol):
    """Tasks."""

    @property
    def security_level(self) -> str | None:
        """A text in every record: the security level of its data. Without it, none."""

    @property
    def determinism_level(self) -> str | None:
        """A text in every record: how reproducible the output is. Without it, none."""


class HasIdentity(Protocol):
    """Chat models; on the component and on the live object, with the same result."""

    def identity(self) -> Mapping[str, object]:
        """Return the settings that decide a reply, as JSON data without secrets, for caches of replies. Without it, its options."""


class HasSendCollected(Protocol):
    """Chat models that answer in batches; on the live object. :mod:`dicast.toolkit.batches` has one for any provider."""

    @property
    def longest_wait(self) -> float:
        """The most seconds that a reply may take. The reservation of a call stays open for this time, even after the process ends."""

    async def send_collected(self) -> None:
        """Send the calls that ``complete`` collected, and return once all of them are answered; called when nothing else of the run can go on. A waiting call counts neither for ``concurrency`` nor for a ``timeout``. Without it, each call is answered by itself."""


class HasWants(Protocol):
    """Sinks; on the component or the live object."""

    @property
    def wants(self) -> Sequence[str]:
        """Types of the events that it receives, from [events](events.md). Without it, or empty, all."""


class HasRewrites(Protocol):
    """Sinks; on the component or the live object."""

    @property
    def rewrites(self) -> bool:
        """True if it writes its output anew each time: a resumed run sends it everything again. Without it, False."""


class HasContent(Protocol):
    """Sinks; on the component or the live object."""

    @property
    def content(self) -> bool:
        """True if it receives the rationales and the replies of failed judgments that the ledger keeps. Without it, False."""


class HasTakesReevaluations(Protocol):
    """Sinks; on the component."""

    @property
    def takes_reevaluations(self) -> bool:
        """True if its ``path`` also takes the verdicts of later ``dicast evaluate`` runs over the same ledger. Without it, False."""


class HasPath(Protocol):
    """Sources, sinks, ledgers."""

    @property
    def path(self) -> Path:
        """The file that it reads or writes; a sink that would overwrite another component's file is refused. Sinks of two experiments of a suite may not share it, and a resumed run identifies its outputs by it. Without it, by the sink's options."""


class HasKeepsContent(Protocol):
    """Ledgers; on the live object."""

    @property
    def keeps_content(self) -> bool:
        """True if judged contents can be read back, which watching a trace requires. Without it, True."""


class HasSandboxCheck(Protocol):
    """Sandboxes."""

    def check(self) -> None:
        """Raise :class:`~dicast.ConfigError` with a fix if the sandbox does not work on this machine."""
