"""Optional members of components that make, observe or read records; ``dicast.optional`` exports these protocols too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from . import Failure


class HasPromptTexts(Protocol):
    """Tasks."""

    def prompt_texts(self) -> Mapping[str, Mapping[str, str]]:
        """Return the texts of its prompts by criterion and role, before a row fills them, for ``run.started``. Without it, none."""


class HasFillPrompts(Protocol):
    """Tasks with ``prompt_texts``; on the class."""

    @staticmethod
    def fill_prompts(
        texts: Mapping[str, Mapping[str, str]], row: Mapping[str, object]
    ) -> Mapping[str, Mapping[str, str]] | Failure:
        """Return the recorded *texts* as they were sent about a *row*, the values of a template by name; a Failure if they cannot be filled. Without it, ``dicast show`` prints the texts before they are filled."""


class HasNeededColumns(Protocol):
    """Tasks, extractors, metrics, judges."""

    def needed_columns(self) -> Mapping[str, str]:
        """Return the columns without which it fails every row, each with the option that names it, such as ``{"city": "user"}``. The run is refused before it starts if no row has a value for one of them. Without it, none."""


class HasCriteria(Protocol):
    """Tasks, extractors, aggregates, comparisons."""

    @property
    def criteria(self) -> Sequence[str] | Mapping[str, object]:
        """The criteria that it is about: the names of a task's responses, otherwise an option. The file is refused if an option names another criterion. Without it, or empty, all."""


class HasCriterion(Protocol):
    """Extractors, aggregates, comparisons."""

    @property
    def criterion(self) -> str | None:
        """An option: a single criterion in place of ``criteria``."""


class HasSourceField(Protocol):
    """Aggregates, comparisons."""

    @property
    def source_field(self) -> str:
        """An option: the key under a record's ``metrics`` that has its scores. Without it, ``scores``."""


class HasLabelOptions(Protocol):
    """Early stops, sinks."""

    @property
    def label_options(self) -> Mapping[str, Sequence[str]]:
        """The labels in its options, by the option, such as ``{"on": (self.on,)}``: the file is refused if a name is not the label of a metric, a judge or a criterion. Without it, none."""


class HasMetricOptions(Protocol):
    """Early stops."""

    @property
    def metric_options(self) -> Mapping[str, str]:
        """The dotted paths under a record's ``metrics`` in its options, by the option, such as ``{"metric": self.metric}``: a file without a task and extractors is refused if a path is no score of a metric or a judge. Without it, none."""


class HasNeedsShuffle(Protocol):
    """Early stops."""

    @property
    def needs_shuffle(self) -> bool:
        """True if its answers are valid only for subjects in random order: the file is refused if its source has no ``shuffle``. It has an option ``on``, the label that it watches. Without it, False."""


class HasNeedsLine(Protocol):
    """Early stops with ``needs_shuffle``."""

    @property
    def needs_line(self) -> bool:
        """True if it uses the threshold of the gate (``RunContext.gate_at``) instead of its own: the file is refused if its gate has no threshold for the label. Without it, False."""


class HasNeedsScore(Protocol):
    """Early stops."""

    @property
    def needs_score(self) -> bool:
        """True if it watches the run's score: the file is refused if its score has no label. With ``needs_shuffle``, it gets that label as ``on``. Without it, False."""


class HasTakesWeights(Protocol):
    """Aggregates, early stops, comparisons; on the class."""

    @property
    def takes_weights(self) -> bool:
        """True if its figures are right for subjects with weights, as a sample has them: it uses each record's ``weight``, or weights change none of its figures. Without it, False: in such a run it is refused, with a message in ``broken``."""


class HasObservesFailures(Protocol):
    """Early stops and aggregates; on the live object."""

    @property
    def observes_failures(self) -> bool:
        """True if it also receives records of failed subjects: every record has ``subject_kind``, ``subject_id`` and ``session_id``, and a failed subject's record has no metrics. An aggregate's record has null under ``metrics.scores`` for each metric and judge that did not score the subject. Without it, False."""


class HasObservesFailedRequests(Protocol):
    """Aggregates; on the live object."""

    @property
    def observes_failed_requests(self) -> bool:
        """True if it also receives the requests of failed rows: such a record has no row and no scores, and ``responses`` without contents, whose ``metrics`` have ``prompt_tokens``, ``completion_tokens`` and ``cost`` as far as they are known. Without it, False."""


class HasInterval(Protocol):
    """Early stops with ``needs_shuffle``; on the live object."""

    def interval(self) -> Mapping[str, object]:
        """Return its interval for the mean at the end of the run, for ``bound: anytime`` of the gate: ``low``, ``high``, ``method``, ``at`` and ``decision`` (``above``, ``below`` or None)."""
