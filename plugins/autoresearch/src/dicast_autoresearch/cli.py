"""``dicast autoresearch``: a loop that keeps the changes which improve a measured number."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import click

from dicast import ConfigError
from dicast.commands import as_json, print_json, requires, sigterm_as_ctrl_c
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import read_text
from dicast.toolkit.printable import one_line

from . import log as logs
from . import merging, state
from . import session as sessions
from .decision import DIRECTIONS, Decision, decide
from .entries import REASONS, Entries
from .git import Git, open_repository
from .hooks import run_hook
from .log import ASI, LOG, Config, check_side_information
from .measure import Measurement
from .refs import begin
from .rounds import Outcome, Rounds
from .session import FOLDER
from .status import BEGINS, document, page, text

MOST_FAILURES = 20
"""Discards and crashes in a row that end a loop."""


@click.group()
def autoresearch() -> None:
    """Try changes and keep the improvements."""


@autoresearch.command()
@click.option("--primary", required=True, metavar="NAME", help="The deciding METRIC.")
@click.option(
    "--direction", type=click.Choice([*DIRECTIONS]), required=True, help="Whether higher or lower values are better."
)
@click.option("--command", required=True, metavar="CMD", help="Prints METRIC lines.")
@click.option("--checks", metavar="CMD", help="Must exit with 0 before anything is measured.")
@click.option(
    "--scope", multiple=True, required=True, metavar="PATH", help="A path that a change may touch; repeatable."
)
@click.option("--link", multiple=True, metavar="PATH", help="An untracked path that the commands need; repeatable.")
@click.option("--name", metavar="TEXT", help="The session's name; the primary metric's by default.")
@click.option("--goal", default="", metavar="TEXT", help="The goal, passed to hooks and proposers.")
@click.option("--min-delta", type=float, default=0.0, metavar="N", help="The least improvement to keep.")
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
@requires(min_confidence="noise")
def init(as_json: bool, **options: Any) -> None:
    """Start a session in the git repository of the current folder. A second call starts a new segment."""
    git = open_repository(Path.cwd())
    values = {key: value for key, value in options.items() if value is not None}
    values["name"] = options["name"] or options["primary"]
    session = sessions.make({**values, "scope": list(options["scope"])}, "dicast autoresearch init")
    _refuse_scope(git, session.scope)
    rounds = Rounds(git, session)
    rounds.guard.refuse_dirty()
    linked, left = [*rounds.links.paths()], rounds.links.left_out()
    with state.exclusive(git.root):
        rounds.recover()
        _exclude(git)
        ref = begin(git, session.name)
        sessions.write(git.root, session)
        state.clear_last(git.root)
        unit = logs.unit_of(session.primary)
        logs.append(
            git.root / LOG, Config(name=session.name, metric=session.primary, unit=unit, direction=session.direction)
        )
    lines = [f"{git.root / sessions.FILE} is written; next: dicast autoresearch loop --propose CMD"]
    lines.append(f"kept experiments: {ref}; dicast autoresearch merge brings them to your branch")
    if rounds.namespace is None:
        lines.append("bubblewrap (bwrap) is missing or not permitted: checkouts are at another path, links are copied")
    lines += [f"linked into every checkout, read-only: {', '.join(linked)}"] if linked else []
    lines += [f"not in the checkouts, --link PATH adds them: {', '.join(left)}"] if left else []
    _say(
        as_json,
        {
            "session": str(git.root / sessions.FILE),
            "segment": logs.read(git.root / LOG).segment,
            "ref": ref,
            "mounted": rounds.namespace is not None,
            "linked": linked,
            "left_out": left,
        },
        "\n".join(lines),
    )


def _refuse_scope(git: Git, scope: Sequence[str]) -> None:
    """Refuse a scope that is missing or that git ignores."""
    for path in scope:
        if not (git.root / path).exists():
            raise ConfigError(f"--scope {path}: there is no such file or folder in {git.root}")
        if path in git.untracked() and git.is_ignored(path):
            raise ConfigError(f"--scope {path}: git ignores it, so no commit can keep a change of it")


def _exclude(git: Git) -> None:
    """Exclude the session's own files from git's view, in this clone only."""
    path = git.path("info/exclude")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = read_text(path).splitlines() if path.exists() else []
    own_lines = [f"/{FOLDER}/", f"/{LOG}"]
    if missing := [line for line in own_lines if line not in lines]:
        with AtomicFile(path) as file:  # keeps the user's lines on a full disk
            file.write("\n".join([*lines, *missing, ""]).encode())
            file.commit()


def _rounds() -> Rounds:
    git = open_repository(Path.cwd())
    return Rounds(git, sessions.read(git.root))


@autoresearch.command()
@as_json
def run(as_json: bool) -> int:
    """Measure the scope as it is in your working tree, and keep the result for decide and log. Exit code 1 if it failed."""
    rounds = _rounds()
    _refuse_spent(rounds)
    rounds.guard.refuse_changed_measure()
    with state.exclusive(rounds.git.root), sigterm_as_ctrl_c():
        _recover(rounds)
        _warn_uncommitted(rounds, outside_scope=True)
        tree = rounds.working_tree()
        measurement = rounds.measure_tree(tree)
        last = attrs.asdict(measurement)
        state.save_last(rounds.git.root, {"measured": last, "tree": tree, "base": rounds.base})
    lines = [f"METRIC {name}={value:g}" for name, value in measurement.metrics.items()]
    _say(
        as_json,
        {**last, "decision": attrs.asdict(_decision(rounds, last))},
        "\n".join([*lines, *([measurement.said] if measurement.said else [])]),
    )
    return 1 if measurement.failure else 0


def _recover(rounds: Rounds) -> None:
    if message := rounds.recover():
        click.echo(message, err=True)


def _warn_uncommitted(rounds: Rounds, *, outside_scope: bool = False) -> None:
    """Warn about changes of the working tree that the checkouts do not have."""
    names = [path for path in rounds.guard.unmeasured() if not (outside_scope and rounds.guard.in_scope(path))]
    if names:
        click.echo(f"not measured, because it is uncommitted: {', '.join(names[:10])}", err=True)


def _decision(rounds: Rounds, last: dict[str, Any]) -> Decision:
    if last["failure"] == "crash":
        return Decision("discard", "crash")
    measured = Measurement(**last).measured(rounds.session)
    return decide(measured, rounds.log().before(rounds.session.validation), rounds.session.policy)


def _last(rounds: Rounds) -> tuple[dict[str, Any], str, str]:
    """Return the newest measurement, the measured tree, and its parent commit."""
    last = state.load_last(rounds.git.root)
    if last is None or "base" not in last:
        raise ConfigError("nothing was measured since the last entry: run dicast autoresearch run")
    return last["measured"], last["tree"], last["base"]


@autoresearch.command("decide")
@as_json
def decide_command(as_json: bool) -> None:
    """Print the decision on the newest run, and its reason. It changes nothing."""
    rounds = _rounds()
    decision = _decision(rounds, _last(rounds)[0])
    words = f"{decision.decision}: {decision.reason}"
    if decision.delta is not None:
        words += f" (delta {decision.delta:+g}" + (
            f", needed {decision.needed:g})" if decision.needed is not None else ")"
        )
    _say(as_json, attrs.asdict(decision), words)


@autoresearch.command("log")
@click.option("--status", type=click.Choice(logs.STATUSES), required=True)
@click.option("--description", default="", metavar="TEXT", help="The change.")
@click.option("--hypothesis", metavar="TEXT", help="The expected improvement.")
@click.option("--learned", metavar="TEXT", help="The result of the experiment.")
@click.option("--rollback-reason", metavar="TEXT", help="The reason for discarding; not needed for keep.")
@click.option("--next-action-hint", metavar="TEXT", help="The next thing to try.")
@as_json
def log_command(status: str, description: str, as_json: bool, **asi: str | None) -> None:
    """Write the newest run into the log. Your working tree stays as it is.

    keep commits the measured scope on the loop's ref; any other status keeps it under refs/dicast/discarded.
    """
    rounds = _rounds()
    git, session = rounds.git, rounds.session
    last, tree, base = _last(rounds)
    side_information = {
        **{name: last["asi"].get(name) for name in ASI},
        **{key: value for key, value in asi.items() if value is not None},
    }
    check_side_information({"status": status, **side_information})
    if status == "keep" and tree != rounds.working_tree():
        raise ConfigError(
            "Cannot keep: the scope has changed since the measurement; measure it again with dicast autoresearch run"
        )
    if status == "keep" and last["failure"] is not None:
        raise ConfigError(
            f"Cannot keep: {REASONS[last['failure']]} ({last['said']}). Log as '{last['failure']}' instead"
        )
    decision = _decision(rounds, last)
    words = {key: str(value) for key, value in side_information.items() if value is not None}
    entry = Entries(git, session).entry(
        Measurement(**last), status, decision, words, description or words["hypothesis"]
    )
    with state.exclusive(git.root):
        _recover(rounds)
        entry = rounds.settle(entry, tree, base)
        state.clear_last(git.root)
    lines = [f"experiment {entry.experiment}: {status} ({session.primary} {entry.primary_metric})"]
    if entry.discarded_ref is not None:
        lines.append(
            f"your working tree still has the change; git restores the scope: {merging.restore_command(session.scope, rounds.base)}"
        )
    _say(as_json, attrs.asdict(entry), "\n".join(lines))


@autoresearch.command()
@click.option(
    "--html", "to", type=click.Path(path_type=Path), metavar="FILE", help="Write one page that loads nothing."
)
@as_json
def status(to: Path | None, as_json: bool) -> None:
    """Show the state of the session."""
    rounds = _rounds()
    log = rounds.log()
    if to is not None:
        with AtomicFile(to, replaces=BEGINS) as file:
            file.write(page(rounds.session, log).encode())
            file.commit()
    _say(as_json, document(rounds.session, log), text(rounds.session, log) if to is None else f"{to} is written")


@autoresearch.command()
@as_json
def resume(as_json: bool) -> None:
    """Finish the round of a killed loop, and show the state of the session. Your branches and files need no recovery."""
    rounds = _rounds()
    with state.exclusive(rounds.git.root):
        message = rounds.recover() or "no round was interrupted"
    _say(as_json, {"recovered": message, **document(rounds.session, rounds.log())}, message)


@autoresearch.command()
@click.option(
    "--propose", required=True, metavar="CMD", help="Changes files in the scope; reads the state as JSON from stdin."
)
@click.option("--runs", type=click.IntRange(1), metavar="N", help="At most N experiments in this loop.")
@as_json
def loop(propose: str, runs: int | None, as_json: bool) -> int:
    """Let CMD propose one change each round: it is measured, and kept as a commit on the loop's ref or discarded.

    CMD works in its own checkout; your working tree, index and branches stay unchanged. The loop ends when the session's budget is spent, or
    after 20 discards and crashes in a row. Exit code 0; 2 if the session cannot continue.
    """
    if not sessions.is_command(propose):
        raise ConfigError(f"--propose {propose!r} is not a command: write it as in a shell, with closed quotes")
    rounds = _rounds()
    with state.exclusive(rounds.git.root), sigterm_as_ctrl_c():
        _recover(rounds)
        rounds.guard.refuse_dirty()
        _warn_uncommitted(rounds)
        outcomes, reason = _loop(rounds, propose, runs)
    entries = [attrs.asdict(outcome.experiment) for outcome in outcomes]
    _say(
        as_json,
        {"experiments": entries, "ended": reason, "ref": rounds.ref, **document(rounds.session, rounds.log())},
        f"{text(rounds.session, rounds.log())}\n\nended: {reason}{_hint(rounds)}",
    )
    return 0


def _hint(rounds: Rounds) -> str:
    """Return how to bring the kept experiments to the branch; an empty text if it has them."""
    if rounds.git.is_ancestor(rounds.base, rounds.git.head()):
        return ""
    return f"\nkept on {rounds.ref}; dicast autoresearch merge brings it to your branch"


@autoresearch.command()
@as_json
def merge(as_json: bool) -> int:
    """Fast-forward the current branch to the kept experiments, or print the git command that merges them.

    Exit code 0 if the branch has them, 1 if it cannot be fast-forwarded: the branch has other commits, or there are uncommitted
    changes.
    """
    rounds = _rounds()
    result = merging.merge(rounds.git, rounds.ref, rounds.guard)
    _say(as_json, attrs.asdict(result), result.message)
    return 0 if result.merged else 1


def _loop(rounds: Rounds, propose: str, runs: int | None) -> tuple[list[Outcome], str]:
    """Run the rounds. Return their outcomes, and the reason for the end."""
    outcomes = [] if rounds.log().current else [_print_round(rounds.baseline())]
    began, tried = time.monotonic(), 0
    while (why := _spent(rounds, began)) is None:
        if tried == runs:
            return outcomes, f"all {tried} rounds are done"
        run_hook(rounds.git.root, rounds.report("before"))
        outcomes.append(_print_round(rounds.propose(propose)))
        run_hook(rounds.git.root, rounds.report("after"))
        tried += 1
        if _failures(rounds) > MOST_FAILURES:
            return outcomes, f"{MOST_FAILURES} experiments in a row were discarded"
    return outcomes, why


def _print_round(outcome: Outcome) -> Outcome:
    experiment, decision = outcome.experiment, outcome.decision
    value = "-" if experiment.primary_metric is None else f"{experiment.primary_metric:g}"
    why = REASONS.get(decision.reason, decision.reason).replace("_", " ")
    click.echo(
        f"{experiment.experiment:>4}  {experiment.status:<13} {value:>12}  {one_line(experiment.rollback_reason or why)[:45]}",
        err=True,
    )
    return outcome


def _failures(rounds: Rounds) -> int:
    """Return the number of newest experiments in a row that were discarded or crashed."""
    count = 0
    for experiment in reversed(rounds.log().current):
        if experiment.status not in {"discard", "crash"}:
            break
        count += 1
    return count


def _spent(rounds: Rounds, began: float) -> str | None:
    """Return a message on the spent budget; None while every budget lasts."""
    session, done = rounds.session, rounds.log().current
    if session.runs is not None and len(done) - 1 >= session.runs:
        return f"STOP: the budget of {session.runs} runs is spent"
    if session.minutes is not None and time.monotonic() - began >= session.minutes * 60:
        return f"STOP: the budget of {session.minutes:g} minutes is spent"
    costs = [
        Decimal(str(experiment.cost["usd"]))
        for experiment in done
        if isinstance(experiment.cost.get("usd"), int | float)
    ]
    if session.money is not None and sum(costs, Decimal(0)) >= Decimal(session.money):
        return f"STOP: the budget of {session.money} USD is spent"
    return None


def _refuse_spent(rounds: Rounds) -> None:
    if (why := _spent(rounds, time.monotonic())) is not None:
        raise ConfigError(why)


def _say(as_json: bool, document: dict[str, Any], words: str) -> None:
    if as_json:
        print_json(document)
    else:
        click.echo(words)
