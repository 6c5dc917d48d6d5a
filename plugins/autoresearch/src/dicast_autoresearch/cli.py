"""``dicast autoresearch``: a loop that keeps the changes which improve a measured number."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import click

from dicast import AtomicFile, ConfigError, one_line
from dicast.commands import as_json, print_json, sigterm_as_ctrl_c

from . import log as logs
from . import session as sessions
from . import state
from .decision import DIRECTIONS, Decision, decide
from .entries import REASONS, Entries
from .git import Git, open_repository
from .hooks import run_hook
from .log import ASI, LOG, Config, check_side_information
from .measure import Measurement, measure
from .rounds import Outcome, Rounds
from .session import FOLDER
from .snapshot import restore, take
from .status import BEGINS, document, page, text

MOST_FAILURES = 20
"""So many discards and crashes in a row end a loop."""


@click.group()
def autoresearch() -> None:
    """Try changes and keep what improves. The primary metric decides."""


@autoresearch.command()
@click.option("--primary", required=True, metavar="NAME", help="The METRIC that decides.")
@click.option("--direction", type=click.Choice([*DIRECTIONS]), required=True, help="Which way is better.")
@click.option("--command", required=True, metavar="CMD", help="Prints METRIC lines.")
@click.option("--checks", metavar="CMD", help="Has to exit with 0 before anything is measured.")
@click.option("--scope", multiple=True, required=True, metavar="PATH", help="What a change may touch; repeatable.")
@click.option("--name", metavar="TEXT", help="The session's name; the primary metric's by default.")
@click.option("--goal", default="", metavar="TEXT", help="What hooks and proposers are told.")
@click.option("--min-delta", type=float, default=0.0, metavar="N", help="The least improvement that is kept.")
@click.option("--min-relative-delta", type=float, default=0.0, metavar="N", help="The same as a share of the best.")
@click.option("--noise", type=click.Choice(["none", "confidence", "recent"]), default="none", show_default=True)
@click.option("--min-confidence", type=float, default=2.0, show_default=True, help="With --noise confidence.")
@click.option("--validation", metavar="NAME", help="A METRIC that may not fall.")
@click.option("--runs", type=int, metavar="N", help="At most N experiments.")
@click.option("--minutes", type=float, metavar="N", help="At most N minutes a loop.")
@click.option("--money", metavar="USD", help="At most this, by the METRIC cost_usd.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds for the command.")
@click.option("--checks-timeout", type=float, default=300.0, show_default=True, help="Seconds for the checks.")
@click.option("--propose-timeout", type=float, default=600.0, show_default=True, help="Seconds for a proposer.")
@as_json
def init(as_json: bool, **options: Any) -> None:
    """Begin a session in the git repository that the current folder belongs to; another one begins a new segment."""
    git = open_repository(Path.cwd())
    values = {key: value for key, value in options.items() if value is not None}
    values["name"] = options["name"] or options["primary"]
    for path in options["scope"]:
        if not (git.root / path).exists():
            raise ConfigError(f"--scope {path}: there is no such file or folder in {git.root}")
    made = sessions.make({**values, "scope": list(options["scope"])}, "dicast autoresearch init")
    Rounds(git, made).refuse_dirty()
    _exclude(git)
    sessions.write(git.root, made)
    state.clear_last(git.root)
    unit = logs.unit_of(made.primary)
    logs.append(git.root / LOG, Config(name=made.name, metric=made.primary, unit=unit, direction=made.direction))
    _say(
        as_json,
        {"session": str(git.root / sessions.FILE), "segment": logs.read(git.root / LOG).segment},
        f"{git.root / sessions.FILE} is written; next: dicast autoresearch loop --propose CMD",
    )


def _exclude(git: Git) -> None:
    """Keep the session's own files out of what git shows, in this clone alone."""
    path = git.path("info/exclude")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    own = [f"/{FOLDER}/", f"/{LOG}"]
    path.write_text("\n".join([*lines, *(line for line in own if line not in lines), ""]), encoding="utf-8")


def _rounds() -> Rounds:
    git = open_repository(Path.cwd())
    return Rounds(git, sessions.read(git.root))


@autoresearch.command()
@as_json
def run(as_json: bool) -> int:
    """Run checks and command on the tree as it is, and keep the result for decide and log. Exit code 1 where it failed."""
    rounds = _rounds()
    _refuse_spent(rounds)
    rounds.refuse_changed_measure()
    before = take(rounds.git)
    found = measure(rounds.session, rounds.git.root)
    restore(rounds.git, before, take(rounds.git, before))
    last = attrs.asdict(found)
    state.save_last(rounds.git.root, {"measured": last, "scope": rounds.measured_scope()})
    lines = [f"METRIC {name}={value:g}" for name, value in found.metrics.items()]
    _say(
        as_json,
        {**last, "decision": attrs.asdict(_decision(rounds, last))},
        "\n".join([*lines, *([found.said] if found.said else [])]),
    )
    return 1 if found.failure else 0


def _decision(rounds: Rounds, last: dict[str, Any]) -> Decision:
    if last["failure"] == "crash":
        return Decision("discard", "crash")
    measured = Measurement(**last).measured(rounds.session)
    return decide(measured, rounds.log().before(rounds.session.validation), rounds.session.policy)


def _last(rounds: Rounds) -> tuple[dict[str, Any], str]:
    """What was measured last, and the digest of the scope that it was measured with."""
    last = state.load_last(rounds.git.root)
    if last is None:
        raise ConfigError("nothing was measured since the last entry: dicast autoresearch run does it")
    return last["measured"], last["scope"]


@autoresearch.command("decide")
@as_json
def decide_command(as_json: bool) -> None:
    """Say whether the newest run is to be kept, and why. Nothing is changed."""
    rounds = _rounds()
    found = _decision(rounds, _last(rounds)[0])
    words = f"{found.decision}: {found.reason}"
    if found.delta is not None:
        words += f" (delta {found.delta:+g}" + (f", needed {found.needed:g})" if found.needed is not None else ")")
    _say(as_json, attrs.asdict(found), words)


@autoresearch.command("log")
@click.option("--status", type=click.Choice(logs.STATUSES), required=True)
@click.option("--description", default="", metavar="TEXT", help="What was changed.")
@click.option("--hypothesis", metavar="TEXT", help="What was believed to improve.")
@click.option("--learned", metavar="TEXT", help="What the experiment has shown.")
@click.option("--rollback-reason", metavar="TEXT", help="Why it is discarded; not needed to keep.")
@click.option("--next-action-hint", metavar="TEXT", help="What to try next.")
@as_json
def log_command(status: str, description: str, as_json: bool, **asi: str | None) -> None:
    """Write the newest run into the log; keep commits the scope, anything else restores it."""
    rounds = _rounds()
    git, session = rounds.git, rounds.session
    last, scope = _last(rounds)
    given = {
        **{name: last["asi"].get(name) for name in ASI},
        **{key: value for key, value in asi.items() if value is not None},
    }
    check_side_information({"status": status, **given})
    if status == "keep" and scope != rounds.measured_scope():
        raise ConfigError(
            "Cannot keep: the scope is not what was measured; measure it again with dicast autoresearch run"
        )
    if status == "keep" and last["failure"] is not None:
        raise ConfigError(
            f"Cannot keep: {REASONS[last['failure']]} ({last['said']}). Log as '{last['failure']}' instead"
        )
    decision = _decision(rounds, last)
    words = {key: str(value) for key, value in given.items() if value is not None}
    entry = Entries(git, session).entry(
        Measurement(**last), status, decision, words, description or words["hypothesis"]
    )
    entry = rounds.settle(entry)
    state.clear_last(git.root)
    _say(
        as_json,
        attrs.asdict(entry),
        f"experiment {entry.experiment}: {status} ({session.primary} {entry.primary_metric})",
    )


@autoresearch.command()
@click.option(
    "--html", "to", type=click.Path(path_type=Path), metavar="FILE", help="Write one page that loads nothing."
)
@as_json
def status(to: Path | None, as_json: bool) -> None:
    """Show where the session stands."""
    rounds = _rounds()
    found = rounds.log()
    if to is not None:
        with AtomicFile(to, replaces=BEGINS) as file:
            file.write(page(rounds.session, found).encode())
            file.commit()
    _say(as_json, document(rounds.session, found), text(rounds.session, found) if to is None else f"{to} is written")


@autoresearch.command()
@as_json
def resume(as_json: bool) -> None:
    """Undo what a killed loop has left of a round, and say where the session stands; loop goes on from there."""
    rounds = _rounds()
    said = rounds.recover() or "nothing was cut off"
    _say(as_json, {"recovered": said, **document(rounds.session, rounds.log())}, said)


@autoresearch.command()
@click.option(
    "--propose", required=True, metavar="CMD", help="Changes files in the scope; told the state as JSON on stdin."
)
@click.option("--runs", type=click.IntRange(1), metavar="N", help="At most N experiments in this loop.")
@as_json
def loop(propose: str, runs: int | None, as_json: bool) -> int:
    """Let CMD propose changes, one a round: each is measured, and kept or undone.

    The loop ends when the session's budget is spent, or after 20 discards and crashes in a row. Exit code 0; 2 where the session
    cannot go on.
    """
    if not sessions.is_command(propose):
        raise ConfigError(f"--propose {propose!r} is no command: write it as in a shell, with its quotes closed")
    rounds = _rounds()
    with sigterm_as_ctrl_c():
        if said := rounds.recover():
            click.echo(said, err=True)
        rounds.refuse_dirty()
        made, ended = _loop(rounds, propose, runs)
    entries = [attrs.asdict(one.experiment) for one in made]
    _say(
        as_json,
        {"experiments": entries, "ended": ended, **document(rounds.session, rounds.log())},
        f"{text(rounds.session, rounds.log())}\n\nended: {ended}",
    )
    return 0


def _loop(rounds: Rounds, propose: str, runs: int | None) -> tuple[list[Outcome], str]:
    """The rounds that were made, and why there are no more."""
    made = [] if rounds.log().current else [_told(rounds.baseline())]
    began, tried = time.monotonic(), 0
    while (why := _spent(rounds, began)) is None:
        if tried == runs:
            return made, f"{tried} rounds were asked for"
        run_hook(rounds.git.root, rounds.report("before"))
        made.append(_told(rounds.propose(propose)))
        run_hook(rounds.git.root, rounds.report("after"))
        tried += 1
        if _failures(rounds) > MOST_FAILURES:
            return made, f"{MOST_FAILURES} experiments in a row were discarded"
    return made, why


def _told(outcome: Outcome) -> Outcome:
    one, decision = outcome.experiment, outcome.decision
    value = "-" if one.primary_metric is None else f"{one.primary_metric:g}"
    why = REASONS.get(decision.reason, decision.reason).replace("_", " ")
    click.echo(
        f"{one.experiment:>4}  {one.status:<13} {value:>12}  {one_line(one.rollback_reason or why)[:45]}", err=True
    )
    return outcome


def _failures(rounds: Rounds) -> int:
    """How many of the newest experiments were discarded or crashed, in a row."""
    count = 0
    for one in reversed(rounds.log().current):
        if one.status not in {"discard", "crash"}:
            break
        count += 1
    return count


def _spent(rounds: Rounds, began: float) -> str | None:
    """Which budget is spent; None while there is room."""
    session, done = rounds.session, rounds.log().current
    if session.runs is not None and len(done) - 1 >= session.runs:
        return f"STOP: the budget of {session.runs} runs is spent"
    if session.minutes is not None and time.monotonic() - began >= session.minutes * 60:
        return f"STOP: the budget of {session.minutes:g} minutes is spent"
    costs = [Decimal(str(one.cost["usd"])) for one in done if isinstance(one.cost.get("usd"), int | float)]
    if session.money is not None and sum(costs, Decimal(0)) >= Decimal(session.money):
        return f"STOP: the budget of {session.money} USD is spent"
    return None


def _refuse_spent(rounds: Rounds) -> None:
    if (why := _spent(rounds, time.monotonic())) is not None:
        raise ConfigError(why)


def _say(as_json: bool, found: dict[str, Any], words: str) -> None:
    if as_json:
        print_json(found)
    else:
        click.echo(words)
