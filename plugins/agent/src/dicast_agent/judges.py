"""The judges: each is a rubric, and what a conversation needs to be judged by it."""

from __future__ import annotations

from dicast import Subject
from dicast.judging import RubricOptions, rubric_judge

from .needs import without_calls, without_policy

CONVERSATIONS = ("turn", "session")


@rubric_judge("agent-task-completion-v1", accepts=CONVERSATIONS)
def task_completion(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent did what its user wanted, by what its tools returned and not by what it claims.

    A session is judged whole, a turn by what its user had asked for by then. ``signals.dimensions`` has ``done``, ``nothing_else_done`` and
    ``truthfully_reported``.

    After tau-bench (Yao et al. 2024), AgentBench (Liu et al. 2023) and the ToolEval of ToolLLM (Qin et al. 2023).
    """
    return None


@rubric_judge("agent-tool-correctness-v1", accepts=CONVERSATIONS)
def tool_correctness(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent called the right tools, none too few and none too many.

    A turn in which no tool was called is judged as well: none may have been needed. ``signals.dimensions`` has ``right_tools``,
    ``none_missing`` and ``none_superfluous``.

    After T-Eval (Chen et al. 2023), API-Bank (Li et al. 2023) and the library deepeval.
    """
    return None


@rubric_judge("agent-argument-correctness-v1", accepts=("tool_cycle", *CONVERSATIONS))
def argument_correctness(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent called its tools with the right arguments, none of them made up or missing.

    A turn or a session without a tool call is ``missing_input``: ``on_failure: exclude`` leaves it out of a metric's mean, and as a judge of
    tool cycles nothing of the kind comes up. ``signals.dimensions`` has ``right_values``, ``nothing_made_up`` and ``complete``.

    After T-Eval (Chen et al. 2023), the Berkeley Function-Calling Leaderboard (Patil et al.) and the library deepeval.
    """
    return without_calls(subject)


@rubric_judge("agent-policy-adherence-v1", accepts=CONVERSATIONS)
def policy_adherence(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model whether an agent kept to its policy, whatever its user said.

    The policy is what the system's messages say, and the *criteria*; a conversation with neither is ``missing_input``.
    ``signals.dimensions`` has ``rules_kept``, ``no_forbidden_action`` and ``required_steps``.

    After tau-bench (Yao et al. 2024).
    """
    return None if options.criteria else without_policy(subject)


@rubric_judge("agent-plan-quality-v1", accepts=CONVERSATIONS)
def plan_quality(subject: Subject, options: RubricOptions) -> str | None:
    """Ask a model how well an agent went about its task: the steps, their order, and what it did after a failure.

    Whether the task was completed does not count. ``signals.dimensions`` has ``covers_task``, ``order``, ``economy`` and ``recovery``.

    After T-Eval (Chen et al. 2023) and AgentBench (Liu et al. 2023).
    """
    return None
