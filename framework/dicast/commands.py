"""For a plugin's sub-commands (entry-point group ``dicast.commands``): what they share with ``dicast run``. Imports click."""

from __future__ import annotations

from ._kernel.cli.output import print_json
from ._kernel.cli.runs import as_json, ledger_path, overrides, run, run_command
from ._kernel.judges import pipeline_text
from ._kernel.report.card import card_digest, label_fingerprint
from ._kernel.timing.interrupts import sigterm_as_ctrl_c

__all__ = [
    "as_json",
    "card_digest",
    "label_fingerprint",
    "ledger_path",
    "overrides",
    "pipeline_text",
    "print_json",
    "run",
    "run_command",
    "sigterm_as_ctrl_c",
]
