"""Ledgers that are no file: a component, or the URL of a component, in place of a path."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ...toolkit.yaml.reader import read_yaml
from ..contract.kinds import Component
from ..contract.registry import Registry
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from .builder import Builder
from .faults import Invalid, visible_steps
from .ledger_path import FILE, LEDGER_PATH, ledger_place
from .types import option_path
from .yaml_nodes import to_data

OPTION = "--ledger"
"""Name of the option that messages show as the place of a value."""

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://")


def component_at(place: str) -> tuple[Component, Any]:
    """Return the component that *place*, a URL or a component, names, and its configuration.

    :raises ConfigError: with every fault of the value.
    """
    try:
        built = Builder(Registry(), {}, lambda _: Path.cwd(), {}).component(section_of(place), ("ledger",))
    except Invalid as invalid:
        raise ConfigError(
            Problem(fault.message, OPTION, path=option_path(visible_steps(fault.path)) or None, hint=fault.hint)
            for fault in invalid.faults
        ) from invalid
    return built.component, built.live


def ledger_section(place: Path | str | None) -> object:
    """Return the section ``ledger`` of a pipeline for *place*, an argument of ``--ledger``; by default for ``$DICAST_LEDGER`` or ``.dicast/ledger.db``.

    :raises ConfigError: if no ledger reads the URL, or a component is not YAML.
    """
    at = place or ledger_place(os.environ.get("DICAST_LEDGER") or os.fspath(LEDGER_PATH))
    return {FILE: {"path": os.fspath(at)}} if isinstance(at, Path) else section_of(at)


def section_of(place: str) -> object:
    """Return the section ``ledger`` of a pipeline for a URL or a component."""
    url = _URL.match(place)
    return {_reader_of(url[1]): {"url": place}} if url else to_data(read_yaml(place, OPTION))


def _reader_of(scheme: str) -> str:
    """Return the name of the ledger that reads URLs with *scheme*.

    :raises ConfigError: if there is none, or several.
    """
    plugins = Registry().load_all().values()
    ledgers = [component for plugin in plugins for component in plugin.components or () if component.kind == "ledger"]
    names = {component.name: tuple(getattr(component.cls, "schemes", ())) for component in ledgers}
    fitting = [name for name, schemes in names.items() if scheme in schemes]
    if len(fitting) == 1:
        return fitting[0]
    schemes = [scheme for known in names.values() for scheme in known]
    if fitting:
        message = f"{', '.join(fitting)} read {scheme}:// URLs; name one as a component: {{{fitting[0]}: {{url: URL}}}}"
    else:
        known = f"installed ledgers read {', '.join(schemes)}" if schemes else "no installed ledger reads URLs"
        message = f"no ledger for {scheme}://: {known}; install the plugin of such a ledger, or name a file"
    raise ConfigError(Problem(message, OPTION, value=scheme, hint=nearest(scheme, schemes)))
