"""Script that writes logs with the real Inspect AI and its mock model into a folder; see test_real_logs.py."""  # noqa: INP001  # a script

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.agent import as_tool, handoff, react
from inspect_ai.dataset import Sample
from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, model_graded_qa
from inspect_ai.solver import generate, solver, use_tools
from inspect_ai.tool import ToolError, tool

MODEL = "mockllm/model"


@tool
def add():
    """Return a tool that adds two numbers."""

    async def execute(x: int, y: int) -> str:
        """Add two numbers.

        Args:
            x: The first number.
            y: The second number.
        """
        if x < 0:
            raise ToolError("no negative numbers")
        return f"{x + y} {'and a long explanation ' * 20}"

    return execute


@solver
def breaks():
    """Return a solver that fails for the sample ``bad``."""

    async def solve(state, generate):
        if state.sample_id == "bad":
            raise ValueError("broken sample")
        return state

    return solve


def answers(*outputs):
    """Return a mock model that answers with texts, and with calls of tools."""
    replies = [
        ModelOutput.from_content(MODEL, output)
        if isinstance(output, str)
        else ModelOutput.for_tool_call(MODEL, *output)
        for output in outputs
    ]
    for output in replies:
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return get_model(MODEL, custom_outputs=replies)


def helper():
    """Return an agent that calls a tool and submits an answer."""
    model = answers(("add", {"x": 1, "y": 1}), ("submit", {"answer": "two"}))
    return react(name="helper", description="a helper", tools=[add()], model=model)


def delegating(tool_of):
    """Return a task whose agent gives its work to the helper."""
    solver_ = react(name="main", tools=[tool_of(helper())])
    return Task(dataset=[Sample(id=1, input="Delegate", target="2")], solver=solver_, scorer=includes())


def sums():
    """Return a task with a tool, a failed call, a failed sample and two scorers, and its model."""
    dataset = [
        Sample(id="sum", input="Add 1 and 2", target="3"),
        Sample(id="neg", input="Add -1 and 2", target="1"),
        Sample(id="bad", input="x", target="y"),
    ]
    scorers = [includes(), model_graded_qa(model=answers(*["GRADE: C"] * 4))]
    model = answers(("add", {"x": 1, "y": 2}), "The sum is 3.", ("add", {"x": -1, "y": 2}), "It failed.")
    return Task(dataset=dataset, solver=[breaks(), use_tools(add()), generate()], scorer=scorers), model


def write(folder: Path, name: str, task: Task, model, log_format: str = "eval") -> None:
    """Run *task* and write its log as *name* into *folder*."""
    place = folder / f"of-{name}"
    options = {"display": "none", "fail_on_error": False, "max_samples": 1, "log_format": log_format}
    run_eval(task, model=model, log_dir=str(place), **options)
    (log,) = place.iterdir()
    log.rename(folder / f"{name}.{log_format}")
    shutil.rmtree(place)


def main(folder: Path) -> None:
    """Write all logs into *folder*."""
    for log_format in ("eval", "json"):
        write(folder, "sums", *sums(), log_format)
    write(folder, "agent", delegating(as_tool), answers(("helper", {"input": "add"}), ("submit", {"answer": "2"})))
    write(folder, "handoff", delegating(handoff), answers(("transfer_to_helper", {}), ("submit", {"answer": "2"})))
    dataset = [Sample(id=1, input="Add 1 and 2", target="3")]
    twice = Task(dataset=dataset, solver=[use_tools(add()), generate()], scorer=includes(), epochs=2)
    write(folder, "twice", twice, answers(*[("add", {"x": 1, "y": 2}), "3"] * 2))
    (folder / "whole").mkdir()
    shutil.copy(folder / "twice.eval", folder / "whole" / "twice.eval")
    convert_eval_logs_to_chunked(str(folder / "whole"), str(folder / "parts"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
