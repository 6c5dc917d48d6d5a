"""Request of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from dicast import ConfigError, Cost, Problem

from .cost import LEAST, LEAST_AT_ALL, LEAST_STAGED

Solve = Literal["n", "budget", "audit"]


@attrs.frozen
class PlanRequest:
    """Options of the command ``dicast plan``."""

    file: Path
    overrides: tuple[str, ...] = ()
    pilot: int | None = None
    solve: Solve | None = None
    width: float | None = None
    budget: Cost | None = None
    difference: float | None = None
    power: float = 0.8
    level: float = 0.9
    scale: bool = False

    def check(self) -> None:
        """Check that the options suffice for a plan.

        :raises ConfigError: with the missing option.
        """
        problems = []
        if self.pilot is not None and self.pilot < LEAST_AT_ALL:
            message = f"a pilot of {self.pilot} rows is too small: take {LEAST} or more, {LEAST_STAGED} for a cascade"
            problems.append(Problem(message, path="--pilot", value=self.pilot))
        if self.solve == "n" and self.width is None and self.budget is None and self.difference is None:
            problems.append(Problem("--solve n needs a goal: add --width, --difference or --budget", path="--solve"))
        if self.solve == "audit" and self.width is None:
            problems.append(Problem("--solve audit needs a width: add --width", path="--solve"))
        if problems:
            raise ConfigError(problems)
