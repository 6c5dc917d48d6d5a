"""What components that watch or read records may have beside the methods of their kind; ``dicast.optional`` has these too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class HasCriteria(Protocol):
    """Tasks, extractors, aggregates, comparisons."""

    @property
    def criteria(self) -> Sequence[str] | Mapping[str, object]:
        """Of a task the names of its responses, of others an option: which of the criteria they are about. What names another one is refused with the file. Without it, or empty, all."""


class HasCriterion(Protocol):
    """Extractors, aggregates, comparisons."""

    @property
    def criterion(self) -> str | None:
        """An option: the one criterion that it is about, in place of ``criteria``."""


class HasSourceField(Protocol):
    """Aggregates, comparisons."""

    @property
    def source_field(self) -> str:
        """An option: the place under a record's ``metrics`` where its scores are. Without it, ``scores``."""


class HasLabelOptions(Protocol):
    """Early stops, sinks."""

    @property
    def label_options(self) -> Mapping[str, Sequence[str]]:
        """The labels that its options name, by the option: the file is refused where one is no label of a metric, a judge or a criterion. Without it, none."""


class HasNeedsShuffle(Protocol):
    """Early stops."""

    @property
    def needs_shuffle(self) -> bool:
        """True where what it says holds for subjects in random order: the file is refused where its source has no ``shuffle``. It has an option ``on``, the label that it watches. Without it, False."""


class HasNeedsLine(Protocol):
    """Early stops with ``needs_shuffle``."""

    @property
    def needs_line(self) -> bool:
        """True where it goes by the line of the gate (``RunContext.gate_at``), as it has none of its own: the file is refused where its gate has none on the label. Without it, False."""


class HasNeedsScore(Protocol):
    """Early stops."""

    @property
    def needs_score(self) -> bool:
        """True where it watches the run's score: the file is refused where its score has no label. One with ``needs_shuffle`` gets that label as ``on``. Without it, False."""


class HasObservesFailures(Protocol):
    """Early stops and aggregates; on the live object."""

    @property
    def observes_failures(self) -> bool:
        """True where it is told of subjects that failed too: every record has ``subject_kind``, ``subject_id`` and ``session_id``, and that of one that failed no metrics. An aggregate's has null under ``metrics.scores`` for each metric and judge that was to score the subject and did not. Without it, False."""


class HasObservesFailedRequests(Protocol):
    """Aggregates; on the live object."""

    @property
    def observes_failed_requests(self) -> bool:
        """True where it is told of the requests of rows that failed too: such a record has no row and no scores, and ``responses`` without contents, whose ``metrics`` have ``prompt_tokens``, ``completion_tokens`` and ``cost`` as far as they are known. Without it, False."""


class HasInterval(Protocol):
    """Early stops with ``needs_shuffle``; on the live object."""

    def interval(self) -> Mapping[str, object]:
        """What it knows of the mean at the end of the run: ``low``, ``high``, ``method``, ``at`` and ``decision`` (``above``, ``below`` or None); what ``bound: anytime`` of the gate goes by."""
