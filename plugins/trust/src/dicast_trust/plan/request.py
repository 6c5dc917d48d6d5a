"""What a plan is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from dicast import ConfigError, Cost, Problem

from .cost import LEAST, LEAST_AT_ALL, LEAST_STAGED

Solve = Literal["n", "budget", "audit"]


@attrs.frozen
class Asked:
    """What is to be planned, as the command was told."""

    file: Path
    overrides: tuple[str, ...] = ()
    pilot: int | None = None
    solve: Solve | None = None
    width: float | None = None
    budget: Cost | None = None
    difference: float | None = None
    power: float = 0.8
    level: float = 0.9

    def check(self) -> None:
        """Refuse what makes no plan.

        :raises ConfigError: naming what is missing.
        """
        problems = []
        if self.pilot is not None and self.pilot < LEAST_AT_ALL:
            message = f"a pilot of {self.pilot} rows says nothing: take {LEAST} or more, {LEAST_STAGED} for a cascade"
            problems.append(Problem(message, path="--pilot", value=self.pilot))
        if self.solve == "n" and self.width is None and self.budget is None and self.difference is None:
            problems.append(
                Problem("how many subjects for what? add --width, --difference or --budget", path="--solve")
            )
        if self.solve == "audit" and self.width is None:
            problems.append(Problem("the rate of audits for which width? add --width", path="--solve"))
        if problems:
            raise ConfigError(problems)
