"""The command ``dicast promotion``: the state that a candidate reaches on the way to production."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, Ledger, named_run, read_ledger, rubric
from dicast.commands import ledger_path
from dicast.reading import refuse_weights
from dicast.toolkit.printable import one_line

from .gates import GATES, STATES, Gates, Passage, State
from .records import Records, Standing
from .rubric import RUBRIC, read_gates


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option(
    "--state", type=click.Choice(STATES[:3]), default=STATES[0], show_default=True, help="The candidate's state now."
)
@click.option(
    "--to", "goal", type=click.Choice(GATES), default=GATES[-1], show_default=True, help="The state to reach."
)
@click.option(
    "--gates",
    metavar="ID|FILE",
    default=RUBRIC,
    show_default=True,
    help="The rubric with the requirements of each gate.",
)
@click.option(
    "--judge",
    "label",
    metavar="LABEL",
    help="The label whose scores are compared; metrics by default, or the only label.",
)
@click.option("--allow-incomparable", is_flag=True, help="Compare runs with different judges or metrics.")
@ledger_path
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def promotion(
    baseline: str,
    candidate: str,
    state: State,
    goal: State,
    gates: str,
    label: str | None,
    allow_incomparable: bool,
    ledger: Path | str | None,
    as_json: bool,
) -> int:
    """Check which promotion gates a run passes.

    Compares the run CANDIDATE with the run BASELINE, which is in production. A run is given by its id, or by the name of its pipeline for the newest run of it; last is the newest run of all. Exit codes:
    0 the candidate reaches --to, 1 it does not pass a gate.
    """
    request = GateRequest(read_gates(rubric(gates)), state, goal, label, allow_incomparable)
    result = read_ledger(ledger, lambda live: request.answer(live, baseline, candidate))
    if as_json:
        click.echo(orjson.dumps(result.document(), option=orjson.OPT_INDENT_2))
    else:
        for line in result.lines():
            click.echo(one_line(line))
    return 0 if result.state == goal else 1


@attrs.frozen
class GateRequest:
    """Options of the command."""

    gates: Gates
    state: State
    goal: State
    label: str | None
    allow_incomparable: bool

    def answer(self, ledger: Ledger, baseline: str, candidate: str) -> Answer:
        """Read both runs and check the gates.

        :raises ConfigError: if there is nothing to compare, or the runs have different judges or metrics.
        """
        runs = [named_run(ledger, name) for name in (baseline, candidate)]
        if runs[0] == runs[1]:
            raise ConfigError(f"the candidate is the baseline: both are the run {runs[0]}")
        refuse_weights(ledger, runs, "a promotion")
        with closing(Records(ledger, *runs)) as records:
            standing = records.standing(self.label, self.gates)
        if standing.differs and not self.allow_incomparable:
            names = ", ".join(standing.differs)
            message = (
                f"the runs are not comparable: {names} differ; judge both in the same way, or add --allow-incomparable"
            )
            raise ConfigError(message)
        return Answer(runs, self.state, standing, self.gates, self.gates.walk(standing.evidence, self.state, self.goal))


@attrs.frozen
class Answer:
    """Result of the command."""

    runs: Sequence[str]
    start: State
    standing: Standing
    gates: Gates
    passages: Sequence[Passage]

    @property
    def state(self) -> State:
        """The state that the candidate reaches."""
        return next((passage.to for passage in reversed(self.passages) if passage.passed), self.start)

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        standing, evidence = self.standing, self.standing.evidence
        return {
            "baseline": self.runs[0],
            "candidate": self.runs[1],
            "judge": standing.label,
            "start": self.start,
            "state": self.state,
            "gates": [
                {
                    "from": passage.start,
                    "to": passage.to,
                    "passed": passage.passed,
                    "requirements": [attrs.asdict(requirement) for requirement in passage.requirements],
                }
                for passage in self.passages
            ],
            "shadow": {
                **attrs.asdict(evidence.shadow),
                "samples": evidence.shadow.samples,
                "win_rate": evidence.shadow.win_rate if evidence.shadow.samples else None,
                "tie_margin": self.gates.tie_margin,
                "hours": evidence.hours,
            },
            "scores": evidence.scores,
            "margins": evidence.margins,
            "subjects": {"baseline": standing.baseline, "candidate": standing.candidate, "both": standing.both},
            "differs": list(standing.differs),
        }

    def lines(self) -> Iterator[str]:
        """Yield the result as lines of text."""
        standing, shadow = self.standing, self.standing.evidence.shadow
        yield f"candidate {self.runs[1]} against {self.runs[0]}, by {standing.label}: {standing.both:,} subjects in both"
        yield (
            f"  {shadow.wins:,} won, {shadow.losses:,} lost, {shadow.ties:,} tied (within {self.gates.tie_margin:g}): "
            f"win rate {shadow.win_rate:.4g}"
        )
        for missing, run in (
            (standing.candidate - standing.both, "candidate"),
            (standing.baseline - standing.both, "baseline"),
        ):
            if missing:
                yield f"  {missing:,} subjects have a score only in the {run}'s run, and are not compared"
        if standing.differs:
            yield f"  not comparable: {', '.join(standing.differs)} differ"
        for passage in self.passages:
            yield f"{passage.start} -> {passage.to}: {'passed' if passage.passed else 'not passed'}"
            for requirement in passage.requirements:
                yield f"  {'ok  ' if requirement.passed else 'FAIL'}  {requirement.requirement}: {requirement.reason}"
        yield f"state: {self.state}"
