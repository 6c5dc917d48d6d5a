"""What a run amounts to: a fold over its events, so that a resumed and a finished run report alike."""

from __future__ import annotations

from .document import disabled_document, document, exit_code, stopped_document
from .flat import flat
from .fold import Report
from .gate import as_it_ended
from .records import RecordReader, results
from .table import RunTable
from .tally import nothing

__all__ = [
    "RecordReader",
    "Report",
    "RunTable",
    "as_it_ended",
    "disabled_document",
    "document",
    "exit_code",
    "flat",
    "nothing",
    "results",
    "stopped_document",
]
