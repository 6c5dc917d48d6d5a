"""The judges: each is a rubric with a check of the parts that a conversation needs for it."""

from __future__ import annotations

from dicast import Subject
from dicast.judging import RubricOptions, rubric_judge

from .needs import without_calls, without_policy

CONVERSATIONS = ("turn", "session")


@rubric_judge("agent-task-completion-v1", accepts=CONVERSATIONS)
def task_completion(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent completed the user's task. The results of tools count as proof, the agent's claims do not.

    A session is judged as a whole, a turn by the user's requests up to it. ``signals.dimensions`` has ``done``, ``nothing_else_done`` and
    ``truthfully_reported``.

    After tau-bench (Yao et al. 2024), AgentBench (Liu et al. 2023) and the ToolEval of ToolLLM (Qin et al. 2023).
    """
    return None


@rubric_judge("agent-tool-correctness-v1", accepts=CONVERSATIONS)
def tool_correctness(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent called the right tools, neither too few nor too many.

    A turn without tool calls is judged too, because it may need no tool. ``signals.dimensions`` has ``right_tools``,
    ``none_missing`` and ``none_superfluous``.

    After T-Eval (Chen et al. 2023), API-Bank (Li et al. 2023) and the library deepeval.
    """
    return None


@rubric_judge("agent-argument-correctness-v1", accepts=("tool_cycle", *CONVERSATIONS))
def argument_correctness(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent called its tools with the right arguments, without invented or missing values.

    A turn or a session without a tool call fails with ``missing_input``; ``on_failure: exclude`` leaves it out of a metric's mean. A tool
    cycle always has a call. ``signals.dimensions`` has ``right_values``, ``nothing_made_up`` and ``complete``.

    After T-Eval (Chen et al. 2023), the Berkeley Function-Calling Leaderboard (Patil et al.) and the library deepeval.
    """
    return without_calls(subject)


@rubric_judge("agent-policy-adherence-v1", accepts=CONVERSATIONS)
def policy_adherence(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent followed its policy, even against the user's wishes.

    The policy is the text of the system messages and the *criteria*. A conversation with neither fails with ``missing_input``.
    ``signals.dimensions`` has ``rules_kept``, ``no_forbidden_action`` and ``required_steps``.

    After tau-bench (Yao et al. 2024).
    """
    return None if options.criteria else without_policy(subject)


@rubric_judge("agent-plan-quality-v1", accepts=CONVERSATIONS)
def plan_quality(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model how well an agent planned its task: the steps, their order, and its reaction to failures.

    Completion of the task does not count. ``signals.dimensions`` has ``covers_task``, ``order``, ``economy`` and ``recovery``.

    After T-Eval (Chen et al. 2023) and AgentBench (Liu et al. 2023).
    """
    return None
