"""Tools for sinks and commands that show a run: outcomes of subjects by label, and the run in Markdown, with untrusted text escaped.

The numbers come from the run's document: :func:`exact` writes all their digits, :func:`figure` and :func:`share` as many as the
summary on a terminal.
"""

from __future__ import annotations

from .._kernel.pipeline.ledger_path import ledger_option
from .._kernel.plan.clauses import Clause, ComparedRuns, Finding, GateClause, GatedFile, GatedRun
from .._kernel.records.comparable import MAX_UNPAIRED, changed_subjects, find_faults, read_contents
from .._kernel.records.passes import PairedPasses, PassChange, PassCounts, pair_passes, pair_runs, pass_counts
from .._kernel.report.caps import cap_lines, raise_caps_text, reached_caps
from .._kernel.report.corrections import correction_place, key_step
from .._kernel.report.document import exit_note
from .._kernel.report.failure_words import (
    counted_failures,
    failure_counts,
    failure_numbers,
    failure_text,
    failure_words,
    failures_text,
    may_pass_again,
)
from .._kernel.report.gate_words import gate_reasons, unanswered_labels
from .._kernel.report.label_order import named_labels, ordered_labels
from .._kernel.report.not_started import not_started
from .._kernel.report.older import current_document
from .._kernel.values import ALL_METRICS, ContentDigests
from .._kernel.values.passes import PassRule, shown_label
from .._kernel.values.payloads import metric_values, value_of
from .._kernel.values.stop_reasons import output_ending
from .criteria import criteria
from .figures import answer, exact, figure, gate_answer, money, run_answer, share
from .markdown import code, fenced, table
from .outcomes import RECORD, JudgedSubject, Outcome, OutcomeReader, facts
from .run_markdown import run_markdown

__all__ = [
    "ALL_METRICS",
    "MAX_UNPAIRED",
    "RECORD",
    "Clause",
    "ComparedRuns",
    "ContentDigests",
    "Finding",
    "GateClause",
    "GatedFile",
    "GatedRun",
    "JudgedSubject",
    "Outcome",
    "OutcomeReader",
    "PairedPasses",
    "PassChange",
    "PassCounts",
    "PassRule",
    "answer",
    "cap_lines",
    "changed_subjects",
    "code",
    "correction_place",
    "counted_failures",
    "criteria",
    "current_document",
    "exact",
    "exit_note",
    "facts",
    "failure_counts",
    "failure_numbers",
    "failure_text",
    "failure_words",
    "failures_text",
    "fenced",
    "figure",
    "find_faults",
    "gate_answer",
    "gate_reasons",
    "key_step",
    "ledger_option",
    "may_pass_again",
    "metric_values",
    "money",
    "named_labels",
    "not_started",
    "ordered_labels",
    "output_ending",
    "pair_passes",
    "pair_runs",
    "pass_counts",
    "raise_caps_text",
    "reached_caps",
    "read_contents",
    "run_answer",
    "run_markdown",
    "share",
    "shown_label",
    "table",
    "unanswered_labels",
    "value_of",
]
