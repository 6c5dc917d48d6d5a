"""Functions that a plugin's sub-commands (entry-point group ``dicast.commands``) share with ``dicast run`` and ``dicast merge``. Imports click."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._kernel.cli.options import as_json, chosen_run, ledger_path, ledger_paths, overrides
from ._kernel.cli.output import print_json
from ._kernel.cli.requirements import requires
from ._kernel.timing.interrupts import sigterm_as_ctrl_c

if TYPE_CHECKING:
    from ._kernel.api.judges import pipeline_text
    from ._kernel.cli.calling_command import CallingCommand
    from ._kernel.cli.merge import merge_shards
    from ._kernel.cli.next_options import unrecorded_words
    from ._kernel.cli.runs import run, run_command
    from ._kernel.pipeline.ledger_places import ledger_section
    from ._kernel.resume.open_runs import RunCommand, command_of

_ON_FIRST_USE = {
    **dict.fromkeys(("run", "run_command"), "_kernel.cli.runs"),
    **dict.fromkeys(("RunCommand", "command_of"), "_kernel.resume.open_runs"),
    "CallingCommand": "_kernel.cli.calling_command",
    "ledger_section": "_kernel.pipeline.ledger_places",
    "merge_shards": "_kernel.cli.merge",
    "unrecorded_words": "_kernel.cli.next_options",
    "pipeline_text": "_kernel.api.judges",
}
"""Names whose module is imported on first use, because it imports everything that a run needs."""

__all__ = [
    "CallingCommand",
    "RunCommand",
    "as_json",
    "chosen_run",
    "command_of",
    "ledger_path",
    "ledger_paths",
    "ledger_section",
    "merge_shards",
    "overrides",
    "pipeline_text",
    "print_json",
    "requires",
    "run",
    "run_command",
    "sigterm_as_ctrl_c",
    "unrecorded_words",
]


def __getattr__(name: str) -> object:
    """Return a name of :data:`_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ON_FIRST_USE[name]}", "dicast"), name)
