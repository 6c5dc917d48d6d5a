"""Reading of ledgers: columns of verdicts and activity, labels, runs, judged outputs, and the readers of commands.

A live ledger may keep the columns itself. Its methods ``verdict_columns(run_id)``, ``activity_columns(run_id, types)``,
``open_judgments(run_id)`` and ``pricing_version(run_id)`` then serve :func:`read_verdicts`, :func:`read_activity`, :func:`read_open_judgments` and
:func:`read_pricing_version`. Without a method, the function makes its result from the ledger's events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._kernel.resume.digests import read_digest
from .._kernel.resume.retractions import LABEL_RETRACTED, place_of_label, retracted_labels
from .activity import CALLED, READ, ROUTED, ActivityColumns, ActivityOrigin, activity_of, read_activity
from .columns import Floats, Ints
from .names import HASH_BYTES, Names, joined_numbers, name_hash
from .open_judgments import read_open_judgments, still_open
from .verdict_columns import (
    DOWN,
    ESCALATED,
    EXACT,
    EXHAUSTED,
    FAILED,
    MSAT_UNKNOWN,
    RAW,
    USD_UNKNOWN,
    VerdictColumns,
    VerdictOrigin,
    flags_of,
    line_of,
    milliseconds,
    read_pricing_version,
    read_verdicts,
)

if TYPE_CHECKING:
    from .._kernel.cli.past_runs import past_runs
    from .._kernel.leases.hold_lease import live_run_check
    from .._kernel.resume.open_runs import resume_command
    from .._kernel.resume.queries import document as run_document
    from .._kernel.resume.queries import verdict as verdict_of
    from .._kernel.resume.shard_roots import ShardRoot, read_root
    from .._kernel.resume.spending import Spending
    from .gold import (
        Gold,
        LabeledOutputs,
        decides,
        from_event,
        given_labels,
        is_in_ledger,
        ledger_gold,
        random_labels,
        read_gold,
    )
    from .numbering import Numbering, exact_sum, first_places, parts_by_key, rows_by_key, view
    from .outputs import JudgedContents, JudgedOutput, JudgedOutputs, output_digest
    from .readers import Reader, reader
    from .weights import refuse_weights, weighted_runs, weights_note

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
            "random_labels",
            "is_in_ledger",
            "read_gold",
        ),
        ".gold",
    ),
    **dict.fromkeys(("ShardRoot", "read_root"), ".._kernel.resume.shard_roots"),
    "Numbering": ".numbering:Numbering",
    "live_run_check": ".._kernel.leases.hold_lease:live_run_check",
    "Reader": ".readers:Reader",
    "Spending": ".._kernel.resume.spending:Spending",
    "past_runs": ".._kernel.cli.past_runs:past_runs",
    "reader": ".readers:reader",
    "rows_by_key": ".numbering:rows_by_key",
    "exact_sum": ".numbering:exact_sum",
    "first_places": ".numbering:first_places",
    "parts_by_key": ".numbering:parts_by_key",
    "view": ".numbering:view",
    "weighted_runs": ".weights:weighted_runs",
    "refuse_weights": ".weights:refuse_weights",
    "weights_note": ".weights:weights_note",
    "resume_command": ".._kernel.resume.open_runs:resume_command",
    "run_document": ".._kernel.resume.queries:document",
    "verdict_of": ".._kernel.resume.queries:verdict",
}
"""Names whose module is imported on first use: a run writes columns and does not need these names."""

__all__ = [
    "CALLED",
    "DOWN",
    "ESCALATED",
    "EXACT",
    "EXHAUSTED",
    "FAILED",
    "HASH_BYTES",
    "LABEL_RETRACTED",
    "MSAT_UNKNOWN",
    "RAW",
    "READ",
    "ROUTED",
    "USD_UNKNOWN",
    "ActivityColumns",
    "ActivityOrigin",
    "Floats",
    "Gold",
    "Ints",
    "JudgedContents",
    "JudgedOutput",
    "JudgedOutputs",
    "LabeledOutputs",
    "Names",
    "Numbering",
    "Reader",
    "ShardRoot",
    "Spending",
    "VerdictColumns",
    "VerdictOrigin",
    "activity_of",
    "decides",
    "exact_sum",
    "first_places",
    "flags_of",
    "from_event",
    "given_labels",
    "is_in_ledger",
    "joined_numbers",
    "ledger_gold",
    "line_of",
    "live_run_check",
    "milliseconds",
    "name_hash",
    "output_digest",
    "parts_by_key",
    "past_runs",
    "place_of_label",
    "random_labels",
    "read_activity",
    "read_digest",
    "read_gold",
    "read_open_judgments",
    "read_pricing_version",
    "read_root",
    "read_verdicts",
    "reader",
    "refuse_weights",
    "resume_command",
    "retracted_labels",
    "rows_by_key",
    "run_document",
    "still_open",
    "verdict_of",
    "view",
    "weighted_runs",
    "weights_note",
]


def __getattr__(name: str) -> object:
    """Return a name of :data:`_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, member = _ON_FIRST_USE[name].partition(":")
    return getattr(import_module(module, __name__), member or name)
