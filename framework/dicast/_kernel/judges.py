"""The judges of a pipeline file, for commands that read what they have said from its ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from .api import as_source, with_ledger
from .contract.protocols import Ledger
from .pipeline.build import load_pipeline
from .pipeline.sections import Pipeline, Slot
from .pipeline.slots import ledger_at, ledger_slot

__all__ = ["PipelineJudges", "Slot", "pipeline_judges"]

T = TypeVar("T")


@attrs.frozen
class PipelineJudges:
    """The judges of a pipeline, and its ledger.

    *name* is the pipeline's, *file* how the user wrote it; *judges* are its judges in their order; the slots in a judge's ``inside`` are those of
    the judges in it.
    """

    name: str
    file: str
    judges: tuple[Slot, ...]
    _pipeline: Pipeline = attrs.field(repr=False)

    @property
    def ledger(self) -> object:
        """The component of its ledger, which another pipeline may have, too."""
        return ledger_slot(self._pipeline).component

    def read_ledger(self, function: Callable[[Ledger], T], path: Path | None = None) -> T:
        """Return what *function* makes of the pipeline's ledger, or of the one at *path*.

        :raises LedgerRefused: when it does not exist or is no ledger.
        """
        return with_ledger(ledger_slot(self._pipeline) if path is None else ledger_at(path), function)


def pipeline_judges(
    pipeline: Path | str | Mapping[str, object], overrides: Mapping[str, object] | Sequence[str] = ()
) -> PipelineJudges:
    """Build *pipeline*, run nothing, and return its judges.

    :raises RequestError: when the pipeline is wrong.
    """
    built = load_pipeline(as_source(pipeline), overrides, needs_source=False)
    return PipelineJudges(built.name, built.file, built.judges, built)
