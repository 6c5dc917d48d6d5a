"""The plugin ``agent``: judges of agents, by their conversations."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .judges import argument_correctness, plan_quality, policy_adherence, task_completion, tool_correctness

__all__ = ["argument_correctness", "plan_quality", "policy_adherence", "task_completion", "tool_correctness"]

former_distribution = "dicast-agent"
"""Keeps the fingerprints of the time before :mod:`dicast_rubric_judges`."""


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Return the five judges."""
    return [argument_correctness, plan_quality, policy_adherence, task_completion, tool_correctness]
