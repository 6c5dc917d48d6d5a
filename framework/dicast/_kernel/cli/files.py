"""``dicast check`` and ``dicast schema``: checks and lists that run no pipeline."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from ...toolkit.printable import one_line
from ...toolkit.terminal import print_wrapped
from ..contract.registry import Registry
from ..pipeline.schema import json_schema
from ..plan.sections import Pipeline
from ..run.check_data import check_baselines, check_data
from ..run.suite import load_experiments
from ..timing.system import missing_promises
from ..values.errors import ConfigError, Problem, RequestError
from .options import as_json, overrides
from .output import only_document, print_json, problems_json, problems_text

_WARNING = "warning: "


@click.command()
@click.argument("files", type=click.Path(path_type=Path), metavar="FILE...", nargs=-1, required=True)
@overrides
@as_json
def check(files: tuple[Path, ...], overrides: tuple[str, ...], as_json: bool) -> int:
    """Build everything in each FILE, read its data files, and run nothing. Exit code 2 if a file has an error."""
    errors, placement, warnings = [], dict[str, dict[str, str]](), list[dict[str, str]]()
    for file in files:
        try:
            with only_document(as_json):
                pipelines = load_experiments(file, overrides)
                if weightless := [*_weightless(pipelines)]:
                    raise ConfigError(weightless)
                unread = [*check_data(pipelines), *check_baselines(pipelines)]
        except RequestError as error:
            errors.append(error)
            if click.get_current_context().find_root().obj:  # --traceback
                traceback.print_exception(error)
            if not as_json:
                print_wrapped(problems_text(error), err=True)
            continue
        for name, labels in _placement(pipelines).items():
            placement.setdefault(name, {}).update(labels)
        notes = [*unread, *dict.fromkeys(f"{_WARNING}{text}" for pipeline in pipelines for _, text in pipeline.notes)]
        warnings += [{"file": str(file), "message": note.removeprefix(_WARNING)} for note in notes]
        if not as_json:
            _print_ok(file, _placement(pipelines), notes)
    if as_json:
        problems = [problem for error in errors for problem in problems_json(error)]
        missing = missing_promises()
        system = {"not_promised": missing} if missing else {}
        members = {**placement, **system} if not errors else {}
        print_json({"ok": not errors, "errors": problems, **({"warnings": warnings} if warnings else {}), **members})
    elif not errors:
        for promise in missing_promises():
            click.echo(f"not guaranteed on this system: {promise}", err=True)
    return 2 if errors else 0


def _print_ok(file: Path, placement: Mapping[str, Mapping[str, str]], unread: Iterable[str]) -> None:
    click.echo(one_line(f"{file}: ok"))
    for reason in unread:
        print_wrapped(one_line(reason))
    for label, reason in placement.get("main_process", {}).items():
        click.echo(one_line(f"{label} runs in the main process: {reason}"))


def _weightless(pipelines: Iterable[Pipeline]) -> Iterator[Problem]:
    """Yield a problem for each pipeline whose metrics all have weight 0: each of its subjects would fail."""
    for pipeline in pipelines:
        if pipeline.metrics and not any(slot.weight for slot in pipeline.metrics):
            labels = ", ".join(slot.label for slot in pipeline.metrics)
            message = f"every metric has weight 0 ({labels}), so no subject gets a score; set a weight above 0"
            yield Problem(message, file=pipeline.file, path="metrics", value=0)


def _placement(pipelines: Iterable[Pipeline]) -> dict[str, Mapping[str, str]]:
    """Return the metrics that a multi-process executor runs in the main process, with the reason for each."""
    reasons: dict[str, str] = {}
    for pipeline in pipelines:
        placement = getattr(pipeline.executor.component, "placement", None)
        reasons |= {} if placement is None else placement(pipeline.metrics)
    return {"main_process": reasons} if reasons else {}


@click.command()
@as_json
def schema(as_json: bool) -> None:
    """Print the JSON Schema of the pipeline file for editors, with the options of the installed plugins. --json changes nothing."""
    document, broken = json_schema(Registry())
    for name, error in broken.items():
        print_wrapped(one_line(f"left out plugin {name!r}: {error}"), err=True)
    print_json(document)
