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
from dicast.commands import as_json, print_json, sigterm_as_ctrl_c
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
"""So many discards and crashes in a row end a loop."""


@click.group()
def autoresearch() -> None:
    """Try changes and keep the improvements."""


@autoresearch.command()
@click.option("--primary", required=True, metavar="NAME", help="The METRIC that decides.")
@click.option("--direction", type=click.Choice([*DIRECTIONS]), required=True, help="Which way is better.")
@click.option("--command", required=True, metavar="CMD", help="Prints METRIC lines.")
@click.option("--checks", metavar="CMD", help="Has to exit with 0 before anything is measured.")
@click.option("--scope", multiple=True, required=True, metavar="PATH", help="What a change may touch; repeatable.")
@click.option("--link", multiple=True, metavar="PATH", help="An untracked path that the commands need; repeatable.")
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
    made = sessions.make({**values, "scope": list(options["scope"])}, "dicast autoresearch init")
    _refuse_scope(git, made.scope)
    rounds = Rounds(git, made)
    rounds.guard.refuse_dirty()
    linked, left = [*rounds.links.paths()], rounds.links.left_out()
    with state.exclusive(git.root):
        rounds.recover()
        _exclude(git)
        ref = begin(git, made.name)
        sessions.write(git.root, made)
        state.clear_last(git.root)
        unit = logs.unit_of(made.primary)
        logs.append(git.root / LOG, Config(name=made.name, metric=made.primary, unit=unit, direction=made.direction))
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
    """Keep the session's own files out of what git shows, in this clone alone."""
    path = git.path("info/exclude")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = read_text(path).splitlines() if path.exists() else []
    own = [f"/{FOLDER}/", f"/{LOG}"]
    if missing := [line for line in own if line not in lines]:
        with AtomicFile(path) as file:  # a full disk leaves the user's lines
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
        found = rounds.measure_tree(tree)
        last = attrs.asdict(found)
        state.save_last(rounds.git.root, {"measured": last, "tree": tree, "base": rounds.base})
    lines = [f"METRIC {name}={value:g}" for name, value in found.metrics.items()]
    _say(
        as_json,
        {**last, "decision": attrs.asdict(_decision(rounds, last))},
        "\n".join([*lines, *([found.said] if found.said else [])]),
    )
    return 1 if found.failure else 0


def _recover(rounds: Rounds) -> None:
    if message := rounds.recover():
        click.echo(message, err=True)


def _warn_uncommitted(rounds: Rounds, *, outside_scope: bool = False) -> None:
    """Name the changes of the working tree that the checkouts do not have."""
    names = [path for path in rounds.guard.unmeasured() if not (outside_scope and rounds.guard.in_scope(path))]
    if names:
        click.echo(f"not measured, because it is not committed: {', '.join(names[:10])}", err=True)


def _decision(rounds: Rounds, last: dict[str, Any]) -> Decision:
    if last["failure"] == "crash":
        return Decision("discard", "crash")
    measured = Measurement(**last).measured(rounds.session)
    return decide(measured, rounds.log().before(rounds.session.validation), rounds.session.policy)


def _last(rounds: Rounds) -> tuple[dict[str, Any], str, str]:
    """Return what was measured last, the measured tree, and the commit that it is on top of."""
    last = state.load_last(rounds.git.root)
    if last is None or "base" not in last:
        raise ConfigError("nothing was measured since the last entry: dicast autoresearch run does it")
    return last["measured"], last["tree"], last["base"]


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
    """Write the newest run into the log. Your working tree stays as it is.

    keep commits the measured scope on the loop's ref; any other status keeps it under refs/dicast/discarded.
    """
    rounds = _rounds()
    git, session = rounds.git, rounds.session
    last, tree, base = _last(rounds)
    given = {
        **{name: last["asi"].get(name) for name in ASI},
        **{key: value for key, value in asi.items() if value is not None},
    }
    check_side_information({"status": status, **given})
    if status == "keep" and tree != rounds.working_tree():
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
    """Finish the round of a killed loop, and show where the session stands. Your branches and files need no recovery."""
    rounds = _rounds()
    with state.exclusive(rounds.git.root):
        said = rounds.recover() or "nothing was cut off"
    _say(as_json, {"recovered": said, **document(rounds.session, rounds.log())}, said)


@autoresearch.command()
@click.option(
    "--propose", required=True, metavar="CMD", help="Changes files in the scope; reads the state as JSON from stdin."
)
@click.option("--runs", type=click.IntRange(1), metavar="N", help="At most N experiments in this loop.")
@as_json
def loop(propose: str, runs: int | None, as_json: bool) -> int:
    """Let CMD propose changes, one a round: each is measured, and kept as a commit on the loop's ref or discarded.

    CMD works in a checkout of its own, and your working tree, index and branches stay as they are. The loop ends when the session's budget is spent, or after 20 discards and crashes in a row. Exit code 0; 2 where the session
    cannot go on.
    """
    if not sessions.is_command(propose):
        raise ConfigError(f"--propose {propose!r} is no command: write it as in a shell, with its quotes closed")
    rounds = _rounds()
    with state.exclusive(rounds.git.root), sigterm_as_ctrl_c():
        _recover(rounds)
        rounds.guard.refuse_dirty()
        _warn_uncommitted(rounds)
        made, ended = _loop(rounds, propose, runs)
    entries = [attrs.asdict(one.experiment) for one in made]
    _say(
        as_json,
        {"experiments": entries, "ended": ended, "ref": rounds.ref, **document(rounds.session, rounds.log())},
        f"{text(rounds.session, rounds.log())}\n\nended: {ended}{_hint(rounds)}",
    )
    return 0


def _hint(rounds: Rounds) -> str:
    """Return how the kept experiments come to the branch; an empty text if it has them."""
    if rounds.git.is_ancestor(rounds.base, rounds.git.head()):
        return ""
    return f"\nkept on {rounds.ref}; dicast autoresearch merge brings it to your branch"


@autoresearch.command()
@as_json
def merge(as_json: bool) -> int:
    """Fast-forward the current branch to the kept experiments, or print the git command that merges them.

    Exit code 0 where the branch has them, 1 where it cannot be fast-forwarded: the branch has other commits, or there are uncommitted
    changes.
    """
    rounds = _rounds()
    found = merging.merge(rounds.git, rounds.ref, rounds.guard)
    _say(as_json, attrs.asdict(found), found.message)
    return 0 if found.merged else 1


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
