"""Project for a test: rows, a cascade of two recorded judges, a ledger, and the command line."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from click.testing import CliRunner, Result

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

CHEAP, EXPENSIVE = "a quick look", "a long look"
Opinion = tuple[float, float]
"""A score and a confidence."""


@attrs.frozen
class Row:
    """Row with the opinion of each judge, and its label."""

    id: str
    cheap: Opinion
    expensive: Opinion
    gold: float
    session: str | None = None


def cascade(**options: Any) -> dict[str, Any]:
    """Return a pipeline whose cascade asks a cheap and an expensive judge, with recorded replies."""
    stages = [{"llm/judge": {"model": "grader", "criteria": [text]}} for text in (CHEAP, EXPENSIVE)]
    return {
        "name": "cascade",
        "define": {"grader": {"replay/chat": {"path": "replies.jsonl"}}},
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "judges": [{"hybrid/cascade": {"as": "both", "stages": stages, **options}}],
        "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
    }


def replies(rows: Sequence[Row], model: str = "m-1") -> Callable[[ChatRequest], Reply]:
    """Return the function that answers for the judges about *rows*."""
    by_id = {row.id: row for row in rows}

    def reply(request: ChatRequest) -> Reply:
        prompt = "\n".join(str(message.content) for message in request.messages)
        match = re.search(r"answer-(\S+)", request.messages[-1].content)
        seal = re.search(r"^seal: (\S+)$", request.messages[-1].content, re.MULTILINE)
        assert match
        assert seal
        score, confidence = by_id[match[1]].cheap if CHEAP in prompt else by_id[match[1]].expensive
        answer = {"seal": seal[1], "score": score, "confidence": confidence, "rationale": "because"}
        return Reply(json.dumps(answer), model=model)

    return reply


@attrs.define
class Project:
    """A folder with a pipeline."""

    folder: Path
    runner: CliRunner = attrs.field(factory=CliRunner)

    def write(self, rows: Sequence[Row], pipeline: Mapping[str, Any] | None = None, model: str = "m-1") -> None:
        """Write the rows, the labels, the pipeline, and the recorded replies of both judges on every row."""
        lines = [
            {"id": row.id, "input": "?", "output": f"answer-{row.id}"}
            | ({"session_id": row.session} if row.session else {})
            for row in rows
        ]
        self.lines("rows.jsonl", lines)
        self.gold(rows)
        recording = cascade(ask_all=True)
        recording["define"]["grader"]["replay/chat"]["record"] = "model"
        del recording["ledger"]
        run_pipeline(yaml.safe_dump(recording), components={"model": FakeChatModel(replies(rows, model))})
        self.pipeline(cascade(ask_all=True) if pipeline is None else pipeline)

    def pipeline(self, pipeline: Mapping[str, Any], name: str = "pipeline.yaml") -> None:
        """Write a pipeline."""
        (self.folder / name).write_text(yaml.safe_dump(pipeline, sort_keys=False))

    def gold(self, rows: Sequence[Row], name: str = "gold.jsonl") -> None:
        """Write the labels of *rows*."""
        self.lines(name, [{"subject_id": row.id, "score": row.gold} for row in rows])

    def lines(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Write JSON lines."""
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def call(self, *arguments: object, input: str | None = None) -> Result:
        """Call the command line as a user does."""
        (installed,) = entry_points(group="console_scripts", name="dicast")
        return self.runner.invoke(_command(installed.load()), [str(argument) for argument in arguments], input=input)

    def run(self, name: str = "pipeline.yaml") -> dict[str, Any]:
        """Run the pipeline and return the document of the run."""
        return self.document("run", name)

    def document(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        """Return the document that a command prints."""
        result = self.call(*arguments, "--json")
        assert result.exit_code == code, result.output
        loaded: dict[str, Any] = json.loads(result.stdout)
        return loaded

    def refused(self, *arguments: object) -> str:
        """Return the message of a refused command."""
        result = self.call(*arguments)
        assert result.exit_code == 2, result.output
        return result.stderr

    def verdicts(self, run: str | None = None) -> list[dict[str, Any]]:
        """Return the verdicts of a run, by default of the newest of any kind."""
        run = run or self.document("runs", "--ledger", "ledger.db")["runs"][0]["run_id"]
        rows: list[dict[str, Any]] = self.document("verdicts", "--run", run, "--ledger", "ledger.db")["verdicts"]
        return rows


def judge(folder: Path, rows: Sequence[Row]) -> Path:
    """Write *rows* and let both judges judge them in *folder*; return it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("DICAST_LEDGER", raising=False)
        project = Project(folder)
        project.write(rows)
        project.run()
    return folder


def _command(main: Any) -> Any:
    import click

    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def command(ctx: click.Context, arguments: tuple[str, ...]) -> None:
        ctx.exit(main(list(arguments)))

    return command


def rows_of(n: int, *, wrong: Callable[[float], float], seed: int = 0, sessions: int = 0) -> list[Row]:
    """Return *n* rows.

    The cheap judge's confidence is one of 0.5, 0.6 … 1.0, and its error rate at a confidence is *wrong* of it; the expensive judge is always right.
    """
    draw = random.Random(seed)
    rows = []
    for number in range(n):
        gold, confidence = float(draw.random() < 0.5), draw.choice([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
        score = 1 - gold if draw.random() < wrong(confidence) else gold
        session = f"s{number % sessions}" if sessions else None
        rows.append(Row(f"r{number}", (score, confidence), (gold, 0.9), gold, session))
    return rows
