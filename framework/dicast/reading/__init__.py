"""Reading ledgers of many verdicts: columns in place of events, runs and their documents, and what commands say of a ledger.

A live ledger may keep the columns itself, as methods ``judged(run_id)``, ``told(run_id, types)`` and ``begun(run_id)`` that return what the
functions of these names do; of one that does not they are made of its events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .begun import begun, still_begun
from .judged import (
    DOWN,
    ESCALATED,
    EXACT,
    EXHAUSTED,
    FAILED,
    MSAT_UNKNOWN,
    RAW,
    USD_UNKNOWN,
    Judged,
    Maker,
    judged,
    line_of,
    milliseconds,
)
from .names import MARK_BYTES, Names, mark_of, marks_joined
from .told import CALLED, READ, ROUTED, Teller, Told, teller_of, told

if TYPE_CHECKING:
    from .._kernel.cli.past_runs import past_runs
    from .._kernel.resume.reading import document as run_document
    from .._kernel.resume.reading import verdict as verdict_of
    from .columns import Floats, Ints
    from .gold import Gold, LabeledOutputs, decides, from_event, given_labels, ledger_gold, randomly_given, read_gold
    from .numbering import Numbering, exact_sum, first_places, parts_by_key, rows_by_key, view
    from .outputs import JudgedContents, JudgedOutput, JudgedOutputs, output_digest
    from .readers import Reader, reader

_ON_FIRST_USE = {
    **dict.fromkeys(("JudgedContents", "JudgedOutput", "JudgedOutputs", "output_digest"), ".outputs"),
    **dict.fromkeys(
        (
            "Gold",
            "LabeledOutputs",
            "decides",
            "from_event",
            "given_labels",
            "ledger_gold",
            "randomly_given",
            "read_gold",
        ),
        ".gold",
    ),
    "Numbering": ".numbering:Numbering",
    "Reader": ".readers:Reader",
    "past_runs": ".._kernel.cli.past_runs:past_runs",
    "reader": ".readers:reader",
    "rows_by_key": ".numbering:rows_by_key",
    "exact_sum": ".numbering:exact_sum",
    "first_places": ".numbering:first_places",
    "parts_by_key": ".numbering:parts_by_key",
    "view": ".numbering:view",
    "run_document": ".._kernel.resume.reading:document",
    "verdict_of": ".._kernel.resume.reading:verdict",
}
"""Names whose module is imported when they are first asked for: a run writes columns and needs none of these."""

__all__ = [
    "CALLED",
    "DOWN",
    "ESCALATED",
    "EXACT",
    "EXHAUSTED",
    "FAILED",
    "MARK_BYTES",
    "MSAT_UNKNOWN",
    "RAW",
    "READ",
    "ROUTED",
    "USD_UNKNOWN",
    "Floats",
    "Gold",
    "Ints",
    "Judged",
    "JudgedContents",
    "JudgedOutput",
    "JudgedOutputs",
    "LabeledOutputs",
    "Maker",
    "Names",
    "Numbering",
    "Reader",
    "Teller",
    "Told",
    "begun",
    "decides",
    "exact_sum",
    "first_places",
    "from_event",
    "given_labels",
    "judged",
    "ledger_gold",
    "line_of",
    "mark_of",
    "marks_joined",
    "milliseconds",
    "output_digest",
    "parts_by_key",
    "past_runs",
    "randomly_given",
    "read_gold",
    "reader",
    "rows_by_key",
    "run_document",
    "still_begun",
    "teller_of",
    "told",
    "verdict_of",
    "view",
]


def __getattr__(name: str) -> object:
    """The names of :data:`_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, member = _ON_FIRST_USE[name].partition(":")
    return getattr(import_module(module, __name__), member or name)
