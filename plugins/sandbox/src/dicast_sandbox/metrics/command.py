"""``sandbox/command``: does a command succeed?"""

from __future__ import annotations

import attrs

from dicast import Score

from .bench import COST, Trial
from .metric import SandboxMetric, without_guess

FAILED_CONFIDENCE = 0.8
"""Confidence of a score of 0: a command may also fail for other reasons than the candidate."""


@attrs.frozen(kw_only=True)
class Command(SandboxMetric):
    """1 if a command in a sandbox ends with the expected exit code, else 0.

    The details have the command, its exit code, the limit that it exceeded and the end of its output. A candidate that exceeds
    a limit scores 0, with the name of the limit in ``signals.limit``: ``wall``, ``cpu``, ``memory``, ``processes``, ``file_size``, ``disk`` or
    ``output``.

    :param command: a text for the shell, or a list of words. It starts in the workspace.
    :param expected_exit_code: the exit code of success.
    """

    name = "command"

    command: str | tuple[str, ...]
    expected_exit_code: int = 0

    async def judge(self, trial: Trial) -> Score:
        """Return 1 for the expected exit code, else 0."""
        passed = trial.execution.exit == self.expected_exit_code and trial.execution.struck is None
        trial = without_guess(trial) if passed else trial
        confidence = 1.0 if passed else FAILED_CONFIDENCE
        return Score(float(passed), confidence, trial.details(), cost=COST, signals=trial.signals())
