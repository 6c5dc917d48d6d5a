"""The command ``dicast evaluate``: judge the subjects of a ledger again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import Any, cast

import attrs
import click
import orjson

from dicast import ConfigError, Cost, Ledger, Problem, Query, RequestError, Source, forecast, read_ledger, rubric
from dicast.commands import as_json, ledger_path, ledger_section, run_command
from dicast.toolkit.files import error_reason, read_text
from dicast.toolkit.printable import one_line

from .recorded import Recorded

_NAME = "evaluate"
_MAX_SHOWN = 20
_JUDGES = {
    "tool_cycle": ("heuristic/tool_cycle", "rubric"),
    "turn": ("heuristic/turn", "rubric"),
    "session": ("heuristic/session", "rubric"),
    "workload": ("heuristic/workload", "figures"),
}
"""Judge without a model, and its option for the rubric, by the kind of subject."""

_MODEL = "{openai/chat: {base_url: URL, model: MODEL}}"
_BEFORE, _INDENT = 3, 4
"""Number of lines before the judge in the pipeline, and the columns of its indentation."""


@click.command()
@click.option(
    "--since", metavar="TIME", help="Only subjects from this ISO 8601 date or time on, in UTC unless it has an offset."
)
@click.option("--until", metavar="TIME", help="Only subjects up to this date or time; a date includes the whole day.")
@click.option("--subject", "kind", metavar="KIND", required=True, help="turn, tool_cycle, session, row, workload …")
@click.option("--rubric", "rubric_id", metavar="ID", help="Judge by this rubric, with the judge that needs no model.")
@click.option(
    "--judge",
    metavar="YAML|FILE",
    help="Judge with this component, written as in the section judges of a pipeline file.",
)
@click.option("--model", metavar="YAML|FILE", help="The chat model for a model rubric or for KIND-hybrid-v1.")
@click.option("--session", metavar="ID", help="Only subjects of this session.")
@click.option("--yes", is_flag=True, help="Judge without asking for confirmation of the cost.")
@click.option(
    "--override-cap", is_flag=True, help="Ignore the caps, by default 0.10 usd per session and 1.00 usd per day."
)
@ledger_path
@as_json
def evaluate(
    since: str | None,
    until: str | None,
    kind: str,
    rubric_id: str | None,
    judge: str | None,
    model: str | None,
    session: str | None,
    yes: bool,
    override_cap: bool,
    ledger: Path | str | None,
    as_json: bool,
) -> int:
    """Judge the subjects of a ledger again.

    The new verdicts are appended; the old ones stay. A subject is judged in the state in which it was last read, with the events of its trace. The command reports the largest cost first, and asks for confirmation.
    Pattern stores that earlier runs of the ledger fed (patterns/outcomes) receive the new verdicts, too.
    """
    source = Recorded(kind, since, until, session)
    text = _pipeline(_component(kind, rubric_id, judge, model), ledger)
    if os.environ.get("DICAST_DISABLED", "") not in ("", "0"):  # nothing is read then
        return run_command(Path(_NAME), lambda _: source, kind="evaluate", as_json=as_json)
    head = read_ledger(ledger, lambda live: live.head())  # a run would create a ledger that is not there
    text += _sinks(read_ledger(ledger, followers))
    count, *costs = _forecast(text, source, rubric_id, modelled=model is not None)
    caps = "; no cap holds for this run (--override-cap)" if override_cap else ""
    _agree(f"{count:,} {kind}(s) to judge", [cost for cost in costs if not cost.is_zero], caps, yes=yes)
    code = run_command(text, lambda _: source, override_caps=override_cap, kind="evaluate", as_json=as_json)
    if not as_json:
        for line in read_ledger(ledger, lambda live: list(_lines(live, kind, head.seq if head else 0))):
            click.echo(one_line(line))
    return code


def _component(kind: str, rubric_id: str | None, judge: str | None, model: str | None) -> str:
    """Return the judge as YAML."""
    if (rubric_id is None) == (judge is None):
        example = f"--judge {_JUDGES[kind][0]}" if kind in _JUDGES else f"--judge '{{llm/judge: {{model: {_MODEL}}}}}'"
        raise click.UsageError(f"name the judge with --rubric ID or --judge, such as {example}")
    if judge is None:
        return _by_rubric(kind, str(rubric_id), None if model is None else _text("model", model))
    if model is not None:
        raise click.UsageError("--model goes with --rubric; a judge names its own: --judge '{llm/judge: {model: …}}'")
    return _text("judge", judge)


def _text(what: str, text: str) -> str:
    """Return the YAML of a component: *text* itself, or the content of the file that *text* names."""
    # Path.is_file raises for a text that is too long to be a name
    if not text.endswith((".yaml", ".yml")) and not os.path.isfile(text):  # noqa: PTH113
        return text
    try:
        return read_text(Path(text))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(f"cannot read the {what} {text}: {error_reason(error)}", value=text)) from error


def _by_rubric(kind: str, id: str, model: str | None) -> str:
    """Return the judge of *kind* for the rubric *id*, with the *model* if it needs one.

    :raises ConfigError: if there is no such rubric or judge, or the rubric needs a model and there is none.
    """
    if id == f"{kind}-hybrid-v1" and kind in _JUDGES:
        return _hybrid(kind, id, model)
    if (other := id.removesuffix("-hybrid-v1")) != id and other in _JUDGES:
        raise ConfigError(
            f"rubric {id!r} is for subjects of kind {other!r}, not {kind!r}; give --subject {other} with it"
        )
    if rubric(id).text.startswith("---"):  # Markdown: a text for a model
        if model is None:
            raise ConfigError(f"rubric {id!r} is a text for a model; name the model with it: --model '{_MODEL}'")
        forms = rubric(id).data.get("forms")
        form = "  form: yes_no\n" if isinstance(forms, list) and "verdict" not in forms else ""
        options = f"{form}  rubric: {orjson.dumps(id).decode()}\n"
        return f"llm/judge:\n{options}  model:\n{indent(model, ' ' * 4)}"
    if kind not in _JUDGES:
        raise ConfigError(f"no judge of subjects of kind {kind!r} goes by a rubric alone; name a judge with --judge")
    if model is not None:
        raise ConfigError(f"rubric {id!r} has the figures of a judge that asks no model; leave --model out")
    name, option = _JUDGES[kind]
    return orjson.dumps({name: {option: id}}).decode()


def _hybrid(kind: str, id: str, model: str | None) -> str:
    """Return the cascade from the judge without a model to the *model*.

    :raises ConfigError: without a model: the first stage alone is another rubric.
    """
    heuristic = _JUDGES[kind][0]
    if model is None:
        alone = f"--rubric {kind}-heuristic-v1 judges with {heuristic} alone"
        raise ConfigError(f"rubric {id!r} needs a model. Name it with --model '{_MODEL}'; {alone}.")
    return f"hybrid/cascade:\n  stages:\n  - {heuristic}\n  - llm/judge:\n      model:\n{indent(model, ' ' * 8)}"


def _pipeline(judge: str, ledger: Path | str | None) -> str:
    """Return the pipeline as YAML: :data:`_BEFORE` lines, then the *judge*, :data:`_INDENT` columns in."""
    place = Path(str(ledger).replace("${", "$${")) if isinstance(ledger, Path) else ledger
    where = "" if place is None else f"ledger: {orjson.dumps(ledger_section(place)).decode()}\n"
    return f"name: {_NAME}\njudges:\n-\n{indent(judge, ' ' * _INDENT)}\n{where}"


def followers(ledger: Ledger) -> list[Mapping[str, Any]]:
    """Return the sinks of earlier runs that take the verdicts of re-evaluations, each file once, in the order of the runs."""
    sinks: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in ledger.read(Query(types=("run.started",))):
        payload: Any = entry.event.payload
        for sink in payload.get("followers", ()):
            sinks[str(sink["name"]), str(sink["path"])] = sink
    return list(sinks.values())


def _sinks(sink_options: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the sinks *sink_options*, as YAML; a file that is gone is reported and left out."""
    sinks: list[dict[str, Any]] = []
    for sink in sink_options:
        if not Path(sink["path"]).is_file():
            message = (
                f"{sink['path']}: the file of {sink['name']} in an earlier run is missing, so it receives no verdicts"
            )
            click.echo(one_line(message), err=True)
            continue
        options = {**sink["options"], "path": sink["path"].replace("${", "$${")}
        label = {} if not sinks else {"as": f"{sink['name']} {len(sinks) + 1}"}
        sinks.append({sink["name"]: {**{k: v for k, v in options.items() if v is not None}, **label}})
    return f"sinks: {orjson.dumps(sinks).decode()}\n" if sinks else ""


def _forecast(text: str, source: Recorded, rubric_id: str | None, *, modelled: bool) -> tuple[int, Cost, Cost]:
    """Return the number of subjects to judge, and the largest cost in either unit. *modelled* is True if the judge asks a model.

    :raises RequestError: with places in the judge as the user wrote it.
    """
    try:
        estimate = forecast(text, cast(Source, source))  # an opened Recorded is a Source
    except RequestError as error:
        problems = [_replaced(problem) for problem in error.problems]
        if modelled and problems[0].file is not None:
            raise type(error)(
                attrs.evolve(fault, file="--model", line=None, column=None) for fault in problems
            ) from error
        if rubric_id is not None and problems[0].file is not None:
            first = f"{problems[0].message} ({len(problems):,} such problems)" if problems[1:] else problems[0].message
            message = f"rubric {rubric_id!r} is not one for subjects of kind {source.kind!r}: {first}"
            raise ConfigError(Problem(message, value=rubric_id)) from error
        raise type(error)(problems) from error
    if estimate.unjudged == estimate.subjects:
        raise ConfigError(f"the judge does not judge subjects of kind {source.kind!r}; name one that does with --judge")
    return estimate.subjects, estimate.usd, estimate.msat


def _replaced(problem: Problem) -> Problem:
    """Return *problem* at its place in the judge as the user wrote it; without a place after the judge's end."""
    if problem.file is None or problem.line is None or problem.column is None:
        return problem
    line, column = problem.line - _BEFORE, problem.column - _INDENT
    place = {"line": line, "column": column} if column > 0 else {"line": None, "column": None}
    return attrs.evolve(problem, file="--judge", path=None, **place)


def _agree(what: str, costs: Sequence[Cost], caps: str, *, yes: bool) -> None:
    """Report the planned work and its cost, and ask for confirmation if there is a cost.

    :param what: the planned work, such as ``7 turn(s) to judge``.
    :raises ConfigError: if the answer is no, or there is no terminal to ask.
    """
    most = f"for at most {' and '.join(map(str, costs))}" if costs else "at no cost"
    click.echo(f"{what}, {most}{caps}", err=True)
    if yes or not costs:
        return
    if not sys.stdin.isatty():
        raise ConfigError("the cost needs a confirmation, but standard input is not a terminal: add --yes to agree")
    if not click.confirm("Judge them?", err=True):
        raise ConfigError("the cost was not confirmed; nothing was judged")


def _lines(ledger: Ledger, kind: str, seq: int) -> Iterator[str]:
    """Yield one line per verdict of this command's run, which started after row *seq*, next to the older verdict."""
    runs = ledger.read(Query(types=("run.started",), after=seq, newest_first=True))
    run_id = next((entry.event.run_id for entry in runs if entry.event.payload["name"] == _NAME), None)
    if run_id is None:
        return  # the run was interrupted before it started
    query = Query(run_id=run_id, types=("eval.completed",))
    first = [entry.event for entry in islice(ledger.read(query), _MAX_SHOWN)]
    count = sum(1 for _ in ledger.read(query))
    before = _before(ledger, kind, run_id, {str(event.subject_id) for event in first})
    again = "re-" if before or not first else ""  # without an older verdict it is the first evaluation
    yield f"{again}evaluated {count:,} {kind}(s)" + (":" if count else "")
    for event in first:
        yield _line(event.payload, before.get(str(event.subject_id)))
    if count > len(first):
        yield f"… (dicast verdicts --run {run_id} lists them all)"


def _line(verdict: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    was = ""
    if before is not None:  # the older score may be another judge's
        is_same_judge = before["judge"] == verdict["judge"]
        was = f" (was {before['score']:.3f})" if is_same_judge else f" ({before['judge']} gave {before['score']:.3f})"
    rubric = f"{verdict['rubric_id']}@{verdict['rubric_version']}"
    return (
        f"{verdict['subject_id']} score={verdict['score']:.3f} confidence={verdict['confidence']:.3f} "
        f"judge={verdict['judge']} rubric={rubric}{was}"
    )


def _before(ledger: Ledger, kind: str, run_id: str, ids: set[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the newest verdict on each subject in *ids* from another run."""
    verdicts: dict[str, Mapping[str, Any]] = {}
    for entry in ledger.read(Query(types=("eval.completed",), subject_kind=kind, newest_first=True)):
        event = entry.event
        if event.run_id != run_id and event.subject_id in ids:
            verdicts.setdefault(str(event.subject_id), event.payload)
            if len(verdicts) == len(ids):
                break
    return verdicts
