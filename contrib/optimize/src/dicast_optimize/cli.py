"""``dicast optimize``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import click

from dicast import ConfigError
from dicast.commands import print_json, sigterm_as_ctrl_c
from dicast.toolkit.files import error_reason, read_text
from dicast.toolkit.overwriting import refuse_overwrite
from dicast.toolkit.printable import one_line

from .checks import compared, judged, measured, read_baselines, write_baselines
from .optimization import check, opened, optimized
from .spec import Spec, read_spec


def absolute(path: str) -> str:
    """Return the absolute path of *path*, which is relative to the current folder, not to the spec's folder."""
    return str(Path(path).absolute())


_SPEC = click.Path(path_type=Path)
_INSTEAD: tuple[tuple[str, Any, str], ...] = (
    ("seed-file", absolute, "The file with the text to improve."),
    ("objective", str, "The purpose of the text."),
    ("dataset", absolute, "The records that candidates are tried on."),
    ("valset", absolute, "The records that decide the winner."),
    ("test", absolute, "The records for the winner's final score, which the search never sees."),
    ("budget", int, "The largest number of evaluations in the search."),
    ("money", str, "The largest cost, as in '0.50 usd'."),
    ("early-stop", bool, "Let a plateau end the search."),
    ("early-stop-window", int, "The number of steps in a plateau."),
    ("early-stop-threshold", float, "The largest rise of the best score in a plateau."),
    ("task-model", str, "The task model, passed to evaluators."),
    ("cache", bool, "Reuse earlier evaluations of the same candidate."),
    ("cache-from", absolute, "The run folder of another optimization; its evaluations are reused."),
    ("run-dir", absolute, "The folder of the ledger and the journal."),
    ("output", absolute, "The file for the best text."),
)

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def instead_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add options for the keys of a spec's section ``optimization``; paths are relative to the current folder."""
    for name, type_, text in reversed(_INSTEAD):
        flags = f"--{name}/--no-{name}" if type_ is bool else f"--{name}"
        command = click.option(flags, default=None, type=type_, help=text)(command)
    return command


class _SpecFirst(click.Group):
    """A group whose first argument may be a spec instead of a command; that runs ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``run`` before arguments that do not start with a command."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_SpecFirst)
def optimize() -> None:
    """Improve a text by an evaluator's scores.

    SPEC is a TOML or YAML file; the commands below do other work with specs.
    """


@optimize.command()
@click.argument("spec", type=_SPEC)
@instead_options
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the optimization in the run folder, without a second payment for its evaluations.",
)
@as_json_option
def run(spec: Path, *, resume: bool, as_json: bool, **overrides: Any) -> int:
    """Optimize the text of SPEC, and report its gain on the test split. Options take precedence over the spec."""
    read = read_spec(
        spec, needs_model=True, instead={name: value for name, value in overrides.items() if value is not None}
    )
    with chdir(read.folder), sigterm_as_ctrl_c():
        report, code = optimized(read, resume=resume, say=lambda text: click.echo(one_line(text), err=True))
    if as_json:
        print_json(report)
    else:
        for line in _lines(report):
            click.echo(line)
    return code


@optimize.command()
@click.argument("spec", type=_SPEC)
@click.option("--candidate", type=_SPEC, help="The file with the text; by default, the text of SPEC.")
@as_json_option
def validate(spec: Path, candidate: Path | None, *, as_json: bool) -> int:
    """Score the text of SPEC with its judges (model.judges, two or more); exit code 1 if all of them fail."""
    read = read_spec(spec, needs_model=False)
    if len(read.model.get("judges", ())) < 2:
        raise ConfigError(read.document.problem(("model", "judges"), "validate needs model.judges, two or more"))
    text = read.seed if candidate is None else _read(candidate)
    with TemporaryDirectory(prefix="dicast-") as folder, chdir(read.folder), opened(read, Path(folder)) as parts:
        document = judged(read, parts, text)
    if as_json:
        print_json(document)
    else:
        for judge_result in document["judges"]:
            click.echo(
                one_line(f"{judge_result['judge']}: {_figure(judge_result['score'])}{_why(judge_result['error'])}")
            )
        click.echo(f"mean {_figure(document['mean'])}, standard deviation {_figure(document['stddev'])}")
    return 0 if document["ok"] else 1


@optimize.command("score-check")
@click.argument("specs", type=_SPEC, nargs=-1, required=True)
@click.option("--baseline", type=_SPEC, required=True, help="The file with the baseline scores.")
@click.option("--update", is_flag=True, help="Store the scores as the new baselines, if nothing failed.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    help="The largest accepted loss; 0.01 by default, and required for raw scores.",
)
@as_json_option
def score_check(specs: Sequence[Path], baseline: Path, tolerance: float | None, *, update: bool, as_json: bool) -> int:
    """Score the text of each of SPECS, and compare with the baselines; exit code 1 if a score is lower or missing."""
    read = [read_spec(path, needs_model=False) for path in specs]
    names = [check.name for check in read]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ConfigError(f"several specs are called {', '.join(twice)}: give each a different optimization.name")
    if tolerance is None and (raw := [check for check in read if check.is_raw]):
        raise ConfigError(f"{raw[0].document.path}: raw scores have no default tolerance. Add --tolerance.")
    if update:
        refuse_overwrite(baseline, {f"the spec {check.name}": check.document.path for check in read})
    before, target = read_baselines(baseline), baseline.absolute()
    checks = [
        compared(check.name, *_score(check), before.get(check.name), 0.01 if tolerance is None else tolerance)
        for check in read
    ]
    ok = all(check["passed"] for check in checks)
    if update and ok:
        write_baselines(target, before, checks, datetime.now(UTC))
    if as_json:
        print_json({"ok": ok, "checks": checks, "updated": update and ok})
    else:
        for line in _check_lines(checks):
            click.echo(line)
    return 0 if ok else 1


def _score(spec: Spec) -> tuple[float | None, str | None]:
    """Return the score of the text of *spec*, by evaluations in a temporary folder."""
    with (
        TemporaryDirectory(prefix="dicast-") as folder,
        chdir(spec.folder),
        opened(_alone(spec), Path(folder)) as parts,
    ):
        check(spec, needs_model=False)
        return measured(spec, parts)


def _alone(spec: Spec) -> Spec:
    """Return *spec* without the cache of another optimization, so that a check measures again."""
    return attrs.evolve(spec, optimization={k: v for k, v in spec.optimization.items() if k != "cache_from"})


def _read(path: Path) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error_reason(error)}") from error


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _why(error: str | None) -> str:
    return "" if error is None else f" ({error})"


def _check_lines(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        one_line(
            f"{'PASS' if check['passed'] else 'FAIL'}  {check['name']}  score {_figure(check['score'])}, "
            f"baseline {_figure(check['baseline'])}{_why(check['error'])}"
        )
        for check in checks
    ]


def _failed_lines(failures: Mapping[str, Any]) -> list[str]:
    """Return lines with the number of failed evaluations and the first reasons; empty without failures."""
    if not failures["failed"]:
        return []
    kinds = ", ".join(f"{kind} {count}" for kind, count in failures["kinds"].items())
    counts = f"failed evaluations: {failures['failed']} of {failures['of']} ({kinds})"
    return [counts, *(f"  {message}" for message in failures["messages"])]


def _lines(report: Mapping[str, Any]) -> list[str]:
    """Return the summary for people; the text itself goes to stdout last."""
    best, test, scores = report["best"], report["test"], report["score_summary"]
    spent = f"{report['calls']} calls, {report['reflections']} reflections, {report['cost']['usd'] or 'unknown'} usd"
    lines = [f"{report['name']}: {spent}; ended: {report['stopped']['message']}"]
    if best is None:
        return [*map(one_line, [lines[0], *_failed_lines(report["failed_evaluations"])]), "no candidate has a score"]
    lines += _failed_lines(report["failed_evaluations"])
    lines.append(f"best on {best['on']}: {_figure(best['score'])} (seed {_figure(scores['initial'])})")
    if test is not None:
        gain = test["gain"]
        lines.append(f"test: {_figure(test['score'])} [{_figure(test['ci_low'])}, {_figure(test['ci_high'])}]")
        lines.append(
            f"gain over the seed: {_figure(gain['value'])} [{_figure(gain['ci_low'])}, {_figure(gain['ci_high'])}]"
        )
    else:
        lines.append("there is no test split: the gain above is on the records that chose the winner")
    return [*map(one_line, lines), f"run folder: {report['run_dir']}", "", best["candidate"]]
