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
from dicast.toolkit.files import read_text
from dicast.toolkit.overwriting import refuse_overwrite
from dicast.toolkit.printable import one_line

from .checks import compared, judged, measured, read_baselines, write_baselines
from .optimization import check, opened, optimized
from .spec import Spec, read_spec


def absolute(path: str) -> str:
    """*path*, which is relative to the current folder and not to the spec's."""
    return str(Path(path).absolute())


_SPEC = click.Path(path_type=Path)
_INSTEAD: tuple[tuple[str, Any, str], ...] = (
    ("seed-file", absolute, "The file with the text to improve."),
    ("objective", str, "What the text is for."),
    ("dataset", absolute, "What candidates are tried on."),
    ("valset", absolute, "What the winner is chosen on."),
    ("test", absolute, "What is looked at once, at the end."),
    ("budget", int, "How many evaluations the search may ask for."),
    ("money", str, "What it may cost, as in '0.50 usd'."),
    ("early-stop", bool, "Whether a plateau ends the search."),
    ("early-stop-window", int, "Over how many steps."),
    ("early-stop-threshold", float, "What the best score has to rise by."),
    ("task-model", str, "The model that evaluators are told of."),
    ("cache", bool, "Answer what was asked before from what is known."),
    ("cache-from", absolute, "A run folder whose evaluations count, too."),
    ("run-dir", absolute, "Where ledger and journal are kept."),
    ("output", absolute, "Where the best text is written."),
)

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def instead_options(command: Callable[..., int]) -> Callable[..., int]:
    """Options for the keys of a spec's section ``optimization``; paths are relative to the current folder."""
    for name, type_, text in reversed(_INSTEAD):
        flags = f"--{name}/--no-{name}" if type_ is bool else f"--{name}"
        command = click.option(flags, default=None, type=type_, help=text)(command)
    return command


class _SpecFirst(click.Group):
    """A group whose first word may be a spec: it is optimised then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` before what begins with no command."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_SpecFirst)
def optimize() -> None:
    """Improve a text by an evaluator's scores.

    SPEC is a TOML or YAML file; what else there is to do with one are the commands below.
    """


@optimize.command()
@click.argument("spec", type=_SPEC)
@instead_options
@click.option(
    "--resume", is_flag=True, help="Go on with the optimisation in the run folder, at no cost for what it has."
)
@as_json_option
def run(spec: Path, *, resume: bool, as_json: bool, **given: Any) -> int:
    """Optimise the text of SPEC, and report its gain on the test split. What is given here wins over the spec."""
    read = read_spec(
        spec, needs_model=True, instead={name: value for name, value in given.items() if value is not None}
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
@click.option("--candidate", type=_SPEC, help="The file with the text; by default the spec's own.")
@as_json_option
def validate(spec: Path, candidate: Path | None, *, as_json: bool) -> int:
    """Let the judges of SPEC (model.judges, two or more) judge its text; exit code 1 where all of them fail."""
    read = read_spec(spec, needs_model=False)
    if len(read.model.get("judges", ())) < 2:
        raise ConfigError(read.document.problem(("model", "judges"), "validate needs model.judges, two or more"))
    text = read.seed if candidate is None else _read(candidate)
    with TemporaryDirectory(prefix="dicast-") as folder, chdir(read.folder), opened(read, Path(folder)) as parts:
        found = judged(read, parts, text)
    if as_json:
        print_json(found)
    else:
        for one in found["judges"]:
            click.echo(one_line(f"{one['judge']}: {_figure(one['score'])}{_why(one['error'])}"))
        click.echo(f"mean {_figure(found['mean'])}, standard deviation {_figure(found['stddev'])}")
    return 0 if found["ok"] else 1


@optimize.command("score-check")
@click.argument("specs", type=_SPEC, nargs=-1, required=True)
@click.option("--baseline", type=_SPEC, required=True, help="The file with the scores of before.")
@click.option("--update", is_flag=True, help="Make the scores the baselines, where nothing failed.")
@click.option(
    "--tolerance", type=click.FloatRange(0), help="How much may be lost; by default 0.01, and none for raw scores."
)
@as_json_option
def score_check(specs: Sequence[Path], baseline: Path, tolerance: float | None, *, update: bool, as_json: bool) -> int:
    """Score the text of each of SPECS, and compare with the baselines; exit code 1 where one is lower, or has no score."""
    read = [read_spec(path, needs_model=False) for path in specs]
    names = [one.name for one in read]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ConfigError(f"several specs are called {', '.join(twice)}: give each an optimization.name of its own")
    if tolerance is None and (raw := [one for one in read if one.is_raw]):
        raise ConfigError(f"{raw[0].document.path}: raw scores have no default tolerance. Add --tolerance.")
    if update:
        refuse_overwrite(baseline, {f"the spec {one.name}": one.document.path for one in read})
    before, target = read_baselines(baseline), baseline.absolute()
    checks = [
        compared(one.name, *_score(one), before.get(one.name), 0.01 if tolerance is None else tolerance) for one in read
    ]
    ok = all(one["passed"] for one in checks)
    if update and ok:
        write_baselines(target, before, checks, datetime.now(UTC))
    if as_json:
        print_json({"ok": ok, "checks": checks, "updated": update and ok})
    else:
        for line in _check_lines(checks):
            click.echo(line)
    return 0 if ok else 1


def _score(spec: Spec) -> tuple[float | None, str | None]:
    """The score of the text of *spec*, by evaluations that leave nothing behind."""
    with (
        TemporaryDirectory(prefix="dicast-") as folder,
        chdir(spec.folder),
        opened(_alone(spec), Path(folder)) as parts,
    ):
        check(spec, needs_model=False)
        return measured(spec, parts)


def _alone(spec: Spec) -> Spec:
    """*spec* without the cache of another optimisation: a check measures anew."""
    return attrs.evolve(spec, optimization={k: v for k, v in spec.optimization.items() if k != "cache_from"})


def _read(path: Path) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _why(error: str | None) -> str:
    return "" if error is None else f" ({error})"


def _check_lines(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        one_line(
            f"{'PASS' if one['passed'] else 'FAIL'}  {one['name']}  score {_figure(one['score'])}, "
            f"baseline {_figure(one['baseline'])}{_why(one['error'])}"
        )
        for one in checks
    ]


def _failed_lines(failures: Mapping[str, Any]) -> list[str]:
    """Return how many evaluations failed, and the first reasons; nothing where none did."""
    if not failures["failed"]:
        return []
    kinds = ", ".join(f"{kind} {count}" for kind, count in failures["kinds"].items())
    counts = f"failed evaluations: {failures['failed']} of {failures['of']} ({kinds})"
    return [counts, *(f"  {message}" for message in failures["messages"])]


def _lines(report: Mapping[str, Any]) -> list[str]:
    """The summary for people; the text itself goes to stdout last."""
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
        lines.append("no test split was looked at: the gain above is on what the winner was chosen by")
    return [*map(one_line, lines), f"run folder: {report['run_dir']}", "", best["candidate"]]
