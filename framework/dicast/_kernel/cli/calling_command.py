"""The command that calls ``dicast run`` or ``dicast merge``, for messages that name the next command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..classes import frozen
from ..resume.open_runs import RunCommand


@frozen
class CallingCommand:
    """A command that calls ``dicast run`` or ``dicast merge``: pass it as *obj* of ``run.main`` or ``merge_shards.main``.

    :param program: the words of the command, such as ``("dicast", "ci")``.
    :param settings: the values of ``--set`` that the command adds; a printed command leaves them out.
    :param flags: the command's own options, for a printed command.
    :param file: the pipeline file of a merge; by default the file that the shards name.
    """

    program: Sequence[str]
    settings: Sequence[str] = ()
    flags: Sequence[str] = ()
    file: Path | None = None

    def command(self, file: str, settings: Sequence[str], flags: Sequence[str], only: Sequence[str] = ()) -> RunCommand:
        """Return the command that the user gave, which runs the pipeline *file* for the labels *only*."""
        settings = [setting for setting in settings if setting not in self.settings]
        return RunCommand(file, settings, [*flags, *self.flags], self.program, only=only)
