"""The rubric and the dimensions that the options of ``llm/judge`` name."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from dicast import ConfigError, Problem, Rubric
from dicast.judging import Dimension, has_dimensions, of_option, of_rubric

_VERSION_DIGITS = 12


def chosen_rubric(rubric: Rubric | None, system_prompt: str | None) -> Rubric | None:
    """Return the rubric that the options name, or None."""
    if system_prompt is None:
        return rubric
    if rubric is not None:
        raise ConfigError(Problem("give a rubric or a system_prompt, not both", path="system_prompt"))
    if not system_prompt.strip():
        raise ConfigError(Problem("system_prompt is empty; leave it out to judge by a rubric", path="system_prompt"))
    return Rubric("system-prompt", sha256(system_prompt.encode()).hexdigest()[:_VERSION_DIGITS], system_prompt)


def chosen_dimensions(rubric: Rubric | None, weights: Mapping[str, float]) -> tuple[Dimension, ...]:
    """Return the dimensions of the *rubric* if it has some, else the dimensions of the option."""
    if rubric is None or not has_dimensions(rubric):
        return of_option(weights)
    if weights:
        message = f"rubric {rubric.id} has dimensions of its own; leave out the option, or take another rubric"
        raise ConfigError(Problem(message, path="dimensions"))
    return of_rubric(rubric)
