"""``dicast plugins``: the installed plugins, and the packages that add commands, rubrics or keys of the gate without a plugin."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
import orjson

from ...toolkit.printable import one_line
from ...toolkit.terminal import Drawing, Part, print_lines
from ...toolkit.text_table import TextTable
from ..classes import evolve
from ..contract.kinds import Component
from ..contract.plugin_errors import describe_error
from ..contract.protocols import WrongEstimate, estimate
from ..contract.registry import Plugin, Registry, load_gate_clause
from ..contract.requirements import version_conflicts
from ..pipeline.packages import Package, packages
from ..pipeline.schema import options_schema
from ..values import ChatRequest, Message, Subject
from ..values.errors import PluginError
from .options import as_json
from .output import only_document, print_json

_MOST_NAMES = 3
"""Number of names that the table of packages lists."""

_SUBJECTS = (Subject("row", "0"), Subject("row", "0", input="what?", output="that"))
_REQUESTS = tuple(ChatRequest((Message("user", text),)) for text in ("", "How good is it?"))


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
        package_list = packages(load=load or name is not None)
        if name is None:
            listed = [*(registry.load_all() if load else registry.scan()).values()]
        else:
            without = [package.distribution for package in package_list]
            named = [package for package in package_list if name in (package.distribution, *package.names["commands"])]
            listed = [] if named and name not in registry.scan() else _named_plugin(registry, name, without)
            owners = {plugin.distribution for plugin in listed}
            package_list = [package for package in package_list if package in named or package.distribution in owners]
        listed = sorted(map(_with_error, listed), key=lambda plugin: plugin.name)
    if as_json:
        documents = {"plugins": [*map(_plugin_json, listed)], "packages": [*map(_package_json, package_list)]}
        print_json(documents)
        return
    print_lines(
        [
            *_plugin_parts(listed, _component_line if name is None else _component_text),
            *_package_parts(package_list, {plugin.distribution for plugin in listed}, is_whole=name is not None),
        ]
    )
    if name is None:
        advice = [] if load else ["dicast plugins --load imports them and lists their components."]
        print_lines(["", *advice, "dicast plugins NAME shows one with its options."])


def _with_error(plugin: Plugin) -> Plugin:
    """Return *plugin* with the error of a version conflict, or of a component that cannot be described."""
    conflicts = [] if plugin.status == "broken" else version_conflicts(plugin.distribution)
    try:
        for component in plugin.components or ():
            _component_json(component)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the border to a plugin's code: its class is read for the first time
        reason = str(error) if isinstance(error, PluginError) else describe_error(error, component.cls.__module__)
        return evolve(plugin, status="broken", error=f"{plugin}: {component.name}: {reason}", components=None)
    return evolve(plugin, status="broken", error=f"{plugin}: {'; '.join(conflicts)}") if conflicts else plugin


def _named_plugin(registry: Registry, name: str, package_names: Iterable[str]) -> list[Plugin]:
    """Return the plugin *name*, loaded; its status has the error if it cannot be loaded, and ``--traceback`` prints the error with its cause.

    :raises PluginError: when it is not installed.
    """
    if name not in registry.scan():
        owners = {plugin.distribution for plugin in registry.scan().values()}
        raise PluginError(registry.unknown(name, (package for package in package_names if package not in owners)))
    plugin = registry.attempt(name)
    if click.get_current_context().find_root().obj and (error := registry.load_error(name)) is not None:
        traceback.print_exception(error)
    return [plugin]


def _package_parts(added: Iterable[Package], plugins: Collection[str], *, is_whole: bool) -> Iterator[Part]:
    """Yield a table of the packages without a plugin, and the errors of all packages."""
    added = list(added)
    without = [(str(package), _offers(package)) for package in added if package.distribution not in plugins]
    if without:
        yield from ([""] if plugins else [])
        yield TextTable(("PACKAGE", "OFFERS"), without, uncut=("OFFERS",))
    if is_whole and without:
        yield from (
            f"    {kind}: {name}"
            for package in added
            for kind, names in package.names.items()
            for name in names
            if kind != "gate_clauses" or package.errors
        )
    if is_whole:
        yield from (
            _clause_text(key) for package in added for key in package.names["gate_clauses"] if not package.errors
        )
    for package in added:
        yield from (f"    {package}: {one_line(error)}" for error in package.errors)


def _clause_text(key: str) -> str:
    """Return the line of a key of the gate: its type, its default and its description."""
    return f"    gate: {_option_text(key, options_schema(load_gate_clause(key))['properties'][key]).strip()}"


def _offers(package: Package) -> str:
    """Return the names of the package's entry points by kind, or their number if there are many."""
    kinds = {kind.replace("_", " "): names for kind, names in package.names.items() if names}
    return "; ".join(
        f"{kind if len(names) > 1 else kind[:-1]} {', '.join(names)}"
        if len(names) <= _MOST_NAMES
        else f"{len(names)} {kind}"
        for kind, names in kinds.items()
    )


def _package_json(package: Package) -> dict[str, object]:
    error = "; ".join(package.errors) or None
    return {"distribution": package.distribution, "version": package.version, **package.names, "error": error}


def _plugin_parts(plugins: Sequence[Plugin], text: Callable[[Component], str]) -> Iterator[Part]:
    """Yield a table of plugins, with the error of each plugin and the *text* of its components if it was loaded."""
    if not plugins:
        return
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
    """Return the largest cost of a call as text, derived from the class: ``free``, ``0.01 usd``, ``as its model``, ``own price`` …"""
    schema = options_schema(component.cls)
    nested = [name for name, about in schema["properties"].items() if b'"$ref"' in orjson.dumps(about)]
    if required := [name for name in nested if name in schema["required"]]:
        return f"{_own_price_text(component, schema)}as its {' and '.join(required)}"
    if component.kind == "preset":
        return "as its metrics"
    costs = [_own_cost(component), *(f"as its {name}" for name in nested)]
    return " or ".join(filter(None, costs)) or ("by its price" if component.kind == "model" else "own price")


def _own_price_text(component: Component, schema: Mapping[str, Any]) -> str:
    """Return the component's own price in addition to the cost of nested components; empty if it has none."""
    fixed = _cost(lambda: object.__new__(component.cls), _SUBJECTS)
    if fixed is None:  # the estimate depends on options, such as an estimate of the nested model
        return "own price and " if "price" in schema["properties"] and component.kind != "model" else ""
    return "" if fixed == "free" else f"own price {fixed} and "


def _own_cost(component: Component) -> str | None:
    """Return the cost that the class alone determines, otherwise the cost with default options; None if a required option decides it."""
    examples = _REQUESTS if component.kind == "model" else _SUBJECTS
    return _cost(lambda: object.__new__(component.cls), examples) or _cost(component.cls, examples)


def _cost(make: Callable[[], Any], examples: Sequence[Any]) -> str | None:
    try:
        component = make()
        first, second = (estimate(component, example) for example in examples)
    except WrongEstimate as error:
        raise PluginError(str(error)) from error
    except KeyboardInterrupt:
        raise
    except BaseException:  # code of a plugin: without required options there is no estimate
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
