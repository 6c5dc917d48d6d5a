"""``sandbox/command``: does a command succeed?"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from dicast import Cost, Execution, Failure, RunContext, Sandbox, Score, Subject, check_field

from .bench import COST, Live, bench, check, evidence, opened, told
from .bubblewrap import Bubblewrap
from .profiles import Profile
from .workspace import check_template

FAILED_CONFIDENCE = 0.8
"""A command may also fail for reasons of its own (document 003)."""


@attrs.frozen
class Command:
    """1 when a command in a sandbox ends with the expected exit code, else 0.

    The details have the command, its exit code, the limit that it struck and the end of what it wrote. A candidate that strikes
    a limit scores 0, with its name in ``signals.limit``: ``wall``, ``cpu``, ``memory``, ``processes``, ``file_size``, ``disk`` or
    ``output``.

    :param command: a text for the shell, or a list of words. It starts in the workspace.
    :param expected_exit_code: which exit code is success.
    :param output_file: where the output that is judged stands in the workspace.
    :param files: further files: texts by name, with ``{{ context.tests }}`` and the like for what the subject has (``id``,
        ``input``, ``output``, ``reference``, ``context``, and the keys of the context by themselves); or the place of a mapping
        of names to texts in the subject (``context.files``).
    :param template: a folder whose content every workspace begins with.
    :param field: judge only this place in the output, a dotted path or a JSON pointer. A missing field scores 0.
    :param profile: how much it may take. ``small``: 1 CPU, 1 GB of memory, 60 s, 64 processes, files of 64 MB, 10 MB of output.
        ``medium``: 2, 4 GB, 120 s, 256, 1 GB, 10 MB. ``large``: 4, 8 GB, 300 s, 1024, 8 GB, 100 MB.
    :param timeout: seconds of wall time, in place of the profile's.
    :param backend: the sandbox.
    :param unsafe: allows ``sandbox/none``.
    """

    name = "command"
    tier = "truth"

    command: str | tuple[str, ...]
    expected_exit_code: int = 0
    output_file: str = "output.txt"
    files: dict[str, str] | str | None = None
    template: Path | None = attrs.field(default=None, validator=check_template)
    field: str | None = attrs.field(default=None, validator=check_field)
    profile: Profile = "medium"
    timeout: float | None = None
    backend: Sandbox = attrs.field(factory=Bubblewrap)
    unsafe: bool = False

    def __attrs_post_init__(self) -> None:
        check(self)

    def estimate(self, subject: Subject) -> Cost:
        """What one run is reckoned at."""
        return COST

    def open(self, run: RunContext) -> AbstractAsyncContextManager[Live]:
        """Ready for one run."""
        return opened(self, bench(self), self._judge)

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the command about *subject*, outside of any run."""
        return await Live(bench(self), self.backend, self._judge).score(subject)

    def _judge(self, execution: Execution, subject: Subject) -> Score:
        passed = execution.exit == self.expected_exit_code and execution.limit is None
        confidence = 1.0 if passed else FAILED_CONFIDENCE
        details = told(self.command, execution)
        return Score(float(passed), confidence, details, cost=COST, signals=evidence(execution))
