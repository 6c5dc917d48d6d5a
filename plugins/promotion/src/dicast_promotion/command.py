"""``dicast promotion``: how far a candidate may go towards production."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, Ledger, named_run, one_line, read_ledger, rubric

from .gates import GATES, STATES, Gates, Passage, State
from .records import Records, Standing
from .rubric import RUBRIC, read_gates


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option(
    "--state", type=click.Choice(STATES[:3]), default=STATES[0], show_default=True, help="Where the candidate is now."
)
@click.option(
    "--to", "goal", type=click.Choice(GATES), default=GATES[-1], show_default=True, help="How far it is to go."
)
@click.option(
    "--gates", metavar="ID|FILE", default=RUBRIC, show_default=True, help="The rubric that says what it takes."
)
@click.option(
    "--judge", "label", metavar="LABEL", help="Whose scores are compared; metrics by default, or the only ones."
)
@click.option("--allow-incomparable", is_flag=True, help="Compare runs that were not judged alike.")
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; $DICAST_LEDGER or .dicast/ledger.db without it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there.")
def promotion(
    baseline: str,
    candidate: str,
    state: State,
    goal: State,
    gates: str,
    label: str | None,
    allow_incomparable: bool,
    ledger: Path | None,
    as_json: bool,
) -> int:
    """Say how far a run may go to production.

    Says through which gates the run CANDIDATE passes, where the run BASELINE is. A run is named by its id, or by the name of its pipeline, which is the newest one's; last is the newest of all. Exit codes:
    0 it gets to --to, 1 a gate is not passed.
    """
    asked = Asked(read_gates(rubric(gates)), state, goal, label, allow_incomparable)
    found = read_ledger(ledger, lambda live: asked.answer(live, baseline, candidate))
    if as_json:
        click.echo(orjson.dumps(found.document(), option=orjson.OPT_INDENT_2))
    else:
        for line in found.lines():
            click.echo(one_line(line))
    return 0 if found.state == goal else 1


@attrs.frozen
class Asked:
    """What the command was told."""

    gates: Gates
    state: State
    goal: State
    label: str | None
    incomparable: bool

    def answer(self, ledger: Ledger, baseline: str, candidate: str) -> Answer:
        """Read both runs and try the gates.

        :raises ConfigError: when there is nothing to compare, or it was not judged alike.
        """
        runs = [named_run(ledger, name) for name in (baseline, candidate)]
        if runs[0] == runs[1]:
            raise ConfigError(f"the candidate is the baseline: both are the run {runs[0]}")
        with closing(Records(ledger, *runs)) as records:
            standing = records.standing(self.label, self.gates)
        if standing.differs and not self.incomparable:
            names = ", ".join(standing.differs)
            message = (
                f"the runs were not judged alike: {names} differ; judge both by the same, or give --allow-incomparable"
            )
            raise ConfigError(message)
        return Answer(runs, self.state, standing, self.gates, self.gates.walk(standing.evidence, self.state, self.goal))


@attrs.frozen
class Answer:
    """What the command says."""

    runs: Sequence[str]
    start: State
    standing: Standing
    gates: Gates
    passages: Sequence[Passage]

    @property
    def state(self) -> State:
        """How far the candidate gets."""
        return next((one.to for one in reversed(self.passages) if one.passed), self.start)

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        standing, evidence = self.standing, self.standing.evidence
        return {
            "baseline": self.runs[0],
            "candidate": self.runs[1],
            "judge": standing.label,
            "start": self.start,
            "state": self.state,
            "gates": [
                {
                    "from": one.start,
                    "to": one.to,
                    "passed": one.passed,
                    "requirements": [attrs.asdict(requirement) for requirement in one.requirements],
                }
                for one in self.passages
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
        """The document as text."""
        standing, shadow = self.standing, self.standing.evidence.shadow
        yield f"candidate {self.runs[1]} beside {self.runs[0]}, by {standing.label}: {standing.both:,} subjects in both"
        yield (
            f"  {shadow.wins:,} won, {shadow.losses:,} lost, {shadow.ties:,} tied (within {self.gates.tie_margin:g}): "
            f"win rate {shadow.win_rate:.4g}"
        )
        for missing, run in (
            (standing.candidate - standing.both, "candidate"),
            (standing.baseline - standing.both, "baseline"),
        ):
            if missing:
                yield f"  {missing:,} subjects have a score in the {run}'s run alone, and are not compared"
        if standing.differs:
            yield f"  not judged alike: {', '.join(standing.differs)} differ"
        for one in self.passages:
            yield f"{one.start} -> {one.to}: {'passed' if one.passed else 'not passed'}"
            for requirement in one.requirements:
                yield f"  {'ok  ' if requirement.passed else 'FAIL'}  {requirement.requirement}: {requirement.reason}"
        yield f"state: {self.state}"
