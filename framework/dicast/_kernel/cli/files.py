"""``dicast check``, ``plugins`` and ``schema``: checks and lists that run no pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from ...toolkit.printable import one_line
from ...toolkit.terminal import Drawing, Part, print_lines
from ...toolkit.text_table import TextTable
from ..contract.kinds import Component
from ..contract.protocols import estimate
from ..contract.registry import Plugin, Registry
from ..pipeline.schema import json_schema, options_schema
from ..plan.sections import Pipeline
from ..run.suite import load_experiments
from ..timing.system import missing_promises
from ..values import ChatRequest, Message, Subject
from ..values.errors import ConfigError, PluginError, Problem, RequestError
from .options import as_json, overrides
from .output import only_document, print_json, problems_json, problems_text

_SUBJECTS = (Subject("row", "0"), Subject("row", "0", input="what?", output="that"))
_REQUESTS = tuple(ChatRequest((Message("user", text),)) for text in ("", "How good is it?"))


@click.command()
@click.argument("files", type=click.Path(path_type=Path), metavar="FILE...", nargs=-1, required=True)
@overrides
@as_json
def check(files: tuple[Path, ...], overrides: tuple[str, ...], as_json: bool) -> int:
    """Build everything in each FILE and run nothing. Exit code 2 if a file has an error."""
    errors, placement = [], dict[str, dict[str, str]]()
    for file in files:
        try:
            with only_document(as_json):
                pipelines = load_experiments(file, overrides)
                if weightless := [*_weightless(pipelines)]:
                    raise ConfigError(weightless)
        except RequestError as error:
            errors.append(error)
            if not as_json:
                click.echo(problems_text(error), err=True)
            continue
        for name, labels in _placement(pipelines).items():
            placement.setdefault(name, {}).update(labels)
        if not as_json:
            _print_ok(file, _placement(pipelines))
    if as_json:
        problems = [problem for error in errors for problem in problems_json(error)]
        missing = missing_promises()
        system = {"not_promised": missing} if missing else {}
        print_json({"ok": not errors, "errors": problems, **({**placement, **system} if not errors else {})})
    elif not errors:
        for promise in missing_promises():
            click.echo(f"not guaranteed on this system: {promise}", err=True)
    return 2 if errors else 0


def _print_ok(file: Path, placement: Mapping[str, Mapping[str, str]]) -> None:
    click.echo(one_line(f"{file}: ok"))
    for label, why in placement.get("main_process", {}).items():
        click.echo(one_line(f"{label} runs in the main process: {why}"))


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
@click.argument("name", required=False)
@click.option("--load", is_flag=True, help="Import each plugin and list its components.")
@as_json
def plugins(name: str | None, load: bool, as_json: bool) -> None:
    """List the installed plugins, or show the plugin NAME: its components with their options.

    The list is read from metadata without importing, unless --load is given. NAME is imported.
    """
    registry = Registry()
    with only_document(as_json):
        listed = (
            _named_plugin(registry, name)
            if name is not None
            else [*(registry.load_all() if load else registry.scan()).values()]
        )
    if as_json:
        print_json({"plugins": [_plugin_json(plugin) for plugin in sorted(listed, key=lambda plugin: plugin.name)]})
        return
    print_lines(
        _parts(sorted(listed, key=lambda plugin: plugin.name), _component_line if name is None else _component_text)
    )
    if name is None:
        advice = "" if load else "dicast plugins --load imports them and lists their components, "
        print_lines(["", f"{advice}dicast plugins NAME shows one with its options."])


def _named_plugin(registry: Registry, name: str) -> list[Plugin]:
    """Return the plugin *name*, loaded; its status has the error if it cannot be loaded.

    :raises PluginError: when it is not installed.
    """
    try:
        registry.load(name)
    except PluginError:
        if name not in registry.scan():
            raise
    return [registry.scan()[name]]


def _parts(plugins: Sequence[Plugin], text: Callable[[Component], str]) -> Iterator[Part]:
    """Yield a table of plugins, with the error of each plugin and the *text* of its components if it was loaded."""
    heads = ("PLUGIN", "DISTRIBUTION", "STATUS")
    rows = [_plugin_row(plugin) for plugin in plugins]
    name, distribution = (max(len(row[column]) for row in (heads, *rows)) for column in (0, 1))
    lines = [f"{row[0]:<{name}}  {row[1]:<{distribution}}  {row[2]}" for row in (heads, *rows)]
    if not any(plugin.error or plugin.components for plugin in plugins):
        yield Drawing(TextTable(heads, rows), lines)
        return
    yield lines[0]
    for line, plugin in zip(lines[1:], plugins, strict=True):
        yield line
        if plugin.error:
            yield f"    {one_line(plugin.error)}"
        yield from (text(component) for component in plugin.components or ())


def _plugin_row(plugin: Plugin) -> tuple[str, str, str]:
    status = "installed" if plugin.status == "not_loaded" else plugin.status
    return plugin.name, f"{plugin.distribution} {plugin.version}", status


def _plugin_json(plugin: Plugin) -> dict[str, object]:
    names = ("name", "distribution", "version", "target", "status", "error")
    listed = None if plugin.components is None else [_component_json(component) for component in plugin.components]
    return {**{name: getattr(plugin, name) for name in names}, "components": listed}


def _component_json(component: Component) -> dict[str, object]:
    return {
        **{name: getattr(component, name) for name in ("name", "kind", "tier", "summary")},
        "cost": cost(component),
        "docstring": inspect.cleandoc(component.cls.__doc__ or ""),
        "options": options(component),
        "required": options_schema(component.cls)["required"],
    }


def _component_line(component: Component) -> str:
    about = ", ".join(filter(None, (component.kind, component.tier, cost(component))))
    return f"    {component.name} ({about}): {component.summary}"


def _component_text(component: Component) -> str:
    lines = (_option_text(name, about) for name, about in options(component).items())
    return "\n".join([_component_line(component), *lines])


def cost(component: Component) -> str:
    """Return the largest cost of a call as text, derived from the class: ``free``, ``0.01 usd``, ``as its model``, ``by its price`` …"""
    schema = options_schema(component.cls)
    nested = [name for name, about in schema["properties"].items() if b'"$ref"' in orjson.dumps(about)]
    if required := [name for name in nested if name in schema["required"]]:
        return f"as its {' and '.join(required)}"
    if component.kind == "preset":
        return "as its metrics"
    costs = [_own_cost(component), *(f"as its {name}" for name in nested)]
    return " or ".join(filter(None, costs)) or f"by its {'price' if 'price' in schema['properties'] else 'options'}"


def _own_cost(component: Component) -> str | None:
    """Return the cost that no option changes, else the cost with default options; None if an option has no default."""
    examples = _REQUESTS if component.kind == "model" else _SUBJECTS
    return _cost(lambda: object.__new__(component.cls), examples) or _cost(component.cls, examples)


def _cost(make: Callable[[], Any], examples: Sequence[Any]) -> str | None:
    try:
        first, second = (estimate(make(), example) for example in examples)
    except Exception:  # code of a plugin: without required options there is no estimate
        return None
    return "by its input" if first != second else "free" if first.is_zero else str(first)


def options(component: Component) -> dict[str, Any]:
    """Return the component's options, each with its JSON Schema."""
    schemas: dict[str, Any] = options_schema(component.cls)["properties"]
    return schemas


def _option_text(name: str, about: Mapping[str, Any]) -> str:
    default = f" = {orjson.dumps(about['default']).decode()}" if "default" in about else ""
    description = f"  {about['description']}" if "description" in about else ""
    return f"        {name}{default} ({_type_text(about)}){description}"


def _type_text(about: Mapping[str, Any]) -> str:
    """Return the type that the JSON Schema *about* accepts, such as ``string or none``; for a component, its kind."""
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(map(_type_text, about["anyOf"])))
    if "enum" in about:
        return "one of " + ", ".join(map(repr, about["enum"]))
    if "$ref" in about:
        return str(about["$ref"]).rpartition("/")[2]
    kinds = about.get("type", "anything")
    return " or ".join("none" if kind == "null" else kind for kind in ([kinds] if isinstance(kinds, str) else kinds))


@click.command()
@as_json
def schema(as_json: bool) -> None:
    """Print the JSON Schema of the pipeline file for editors, with the options of the installed plugins. --json changes nothing."""
    document, broken = json_schema(Registry())
    for name, error in broken.items():
        click.echo(one_line(f"left out plugin {name!r}: {error}"), err=True)
    print_json(document)
