"""Installed plugins, which are loaded by name, one at a time, when a pipeline first names them.

Listing reads metadata and imports no plugin. A plugin that cannot be loaded is an error only for a pipeline that names it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...toolkit.installing import extras, how_to_install
from ..classes import evolve, frozen
from ..values.errors import PluginError, Problem
from ..values.names import nearest
from .kinds import Component
from .plugin_errors import describe_error, listed_plugins
from .requirements import head_fields, refuse_conflicts

if TYPE_CHECKING:
    from .loading import Offered

Status = Literal["not_loaded", "ok", "blocked", "duplicate", "broken"]

_KERNEL = "dicast"  # the name of the kernel's own plugin
_GATE_CLAUSES, _CORRECTED = "dicast.gate_clauses", "corrected"

_OF_TRUST = (
    *(_CORRECTED, "require_card", "min_labels", "min_class", "min_kappa", "max_flips", "min_consistency"),
    *("max_moved", "min_canaries", "max_failures"),
)
CLAUSE_EXTRAS: Mapping[str, str] = {
    **dict.fromkeys(_OF_TRUST, "trust"),
    **dict.fromkeys(("baseline", "max_drop", "undecided"), "stats"),
}
"""Keys of the gate that a plain install may lack, each with the extra that installs it."""


@frozen
class Offer:
    """An entry point of *distribution* in its metadata; *error* is the reason why it cannot be used."""

    name: str
    distribution: str
    version: str
    target: str
    error: str | None = None


@frozen
class _Distribution:
    """A distribution with *entries*, as group, name and target, in its *text*; *error* is the reason why they cannot be read."""

    name: str
    version: str
    text: str
    entries: tuple[tuple[str, str, str], ...]
    error: str | None = None


@frozen
class Plugin:
    """An installed plugin. *components* is None until it is loaded; *error* is the reason why it cannot be loaded."""

    name: str
    distribution: str
    version: str
    target: str
    status: Status = "not_loaded"
    error: str | None = None
    components: tuple[Component, ...] | None = None

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.distribution} {self.version})"


class Registry:
    """Installed plugins, and the components of loaded plugins.

    :param block: plugins that must not be loaded, in addition to the names in ``DICAST_BLOCK``, separated by commas.
    """

    def __init__(self, block: Iterable[str] = (), environ: Mapping[str, str] = os.environ) -> None:
        named = (name.strip() for name in environ.get("DICAST_BLOCK", "").split(","))
        self._blocked = frozenset(name for name in (*named, *block) if name)
        self._plugins: dict[str, Plugin] = {}
        self._errors: dict[str, PluginError] = {}
        self._offered: dict[str, Offered] = {}

    def scan(self) -> Mapping[str, Plugin]:
        """Return every installed plugin in its current state. Reads metadata and imports no plugin."""
        if not self._plugins:
            entries = sorted((_kernel(), *offers("dicast")), key=lambda offer: offer.name)
            for name in dict.fromkeys(offer.name for offer in entries):
                self._plugins[name] = _plugin([o for o in entries if o.name == name], blocked=name in self._blocked)
        return self._plugins

    def load(self, name: str) -> tuple[Component, ...]:
        """Import the plugin *name* alone, at most once, and return its components.

        :raises PluginError: if it is not installed, blocked, offered twice, requires another dicast, or does not load.
        """
        plugin = self.scan().get(name)
        if plugin is None:
            raise PluginError(self.unknown(name))
        if plugin.status == "not_loaded":
            try:
                plugin = evolve(plugin, status="ok", components=self._import(plugin).components())
            except PluginError as error:
                self._break(plugin, error)
                raise
            self._plugins[name] = plugin
        if plugin.components is None:
            raise PluginError(plugin.error or f"{plugin} cannot be used") from self._errors.get(name)
        return plugin.components

    def load_all(self) -> Mapping[str, Plugin]:
        """Load every plugin; a plugin that cannot be loaded has the reason in its *status* and *error*."""
        for name in list(self.scan()):
            self.attempt(name)
        return self._plugins

    def load_error(self, name: str) -> PluginError | None:
        """Return the error that the loading of the plugin *name* raised, with its cause."""
        return self._errors.get(name)

    def attempt(self, name: str) -> Plugin:
        """Load the installed plugin *name*, and return its state: *error* has the reason why it cannot be loaded."""
        if self.scan()[name].status == "not_loaded":
            with suppress(PluginError):  # recorded as the plugin's status
                self.load(name)
        return self._plugins[name]

    def find(self, name: str, kinds: Sequence[str]) -> Component:
        """Return the component *name* (``proxy/format``), which must be of one of *kinds*, the expected kind first.

        :raises PluginError: if there is no such component, or it is of another kind.
        """
        plugin, slash, own_name = name.partition("/")
        if not slash:
            raise PluginError(Problem(f"{name!r} is not a component's name; write PLUGIN/{name}", value=name))
        offered = self._named(plugin, own_name) or self.load(plugin)
        matches = [component for component in offered if component.name == name]
        for component in matches:
            if component.kind in kinds:
                return component
        if matches:
            raise PluginError(Problem(f"{name} is a {matches[0].kind}, not a {kinds[0]}", value=name))
        raise PluginError(_not_offered(name, kinds, offered))

    def _named(self, name: str, own_name: str) -> tuple[Component, ...]:
        """Return the component *own_name* of the plugin *name*, imported alone; nothing if all components of the plugin are needed."""
        plugin = self.scan().get(name)
        if plugin is None or plugin.status != "not_loaded":
            return ()
        offered = self._import(plugin)
        if not offered.has_names:
            return ()
        return tuple(part for part in offered.components(own_name) if part.name == f"{name}/{own_name}")

    def _import(self, plugin: Plugin) -> Offered:
        """Import *plugin* alone, at most once, and return its classes."""
        if plugin.name not in self._offered:
            from .loading import load_plugin  # needed for a plugin alone, not for a list

            try:
                refuse_conflicts(str(plugin), plugin.distribution)
                details = plugin.name, plugin.distribution, plugin.version, plugin.target
                self._offered[plugin.name] = load_plugin(str(plugin), *details)
            except PluginError as error:
                self._break(plugin, error)
                raise
        return self._offered[plugin.name]

    def _break(self, plugin: Plugin, error: PluginError) -> None:
        """Record the reason why *plugin* cannot be loaded."""
        self._plugins[plugin.name] = evolve(plugin, status="broken", error=str(error))
        self._errors[plugin.name] = error

    def unknown(self, name: str, packages: Iterable[str] = ()) -> Problem:
        """Return the problem that no plugin *name* is installed; *packages* are the distributions that may be meant too."""
        packages = tuple(packages)
        meant = {package.removeprefix("dicast-"): package for package in packages}
        meant |= {own_name: own_name for own_name in (*packages, *self.scan())}
        if _extra(name) in extras() and name not in meant:  # its name may resemble the name of an installed plugin
            command = how_to_install(_extra(name))
            return Problem(f"the plugin {name!r} is an extra that is not installed; {command}", value=name)
        installed = [*(plugin for plugin in self.scan() if plugin != _KERNEL), *packages]
        message = f"unknown plugin {name!r} (installed: {listed_plugins(installed)})"
        hint = meant.get(nearest(name, meant) or "")
        if re.fullmatch(r"[a-z][a-z0-9_-]*", name):  # an installed plugin with a similar name may not be meant
            message += "; is the package that offers it installed" + ("?" if hint is None else "")
        return Problem(message, value=name, hint=hint)


def commands() -> Mapping[str, Offer]:
    """Return the sub-commands that plugins add, by name. Reads metadata and imports no plugin."""
    return offers_by_name("dicast.commands")


def readers() -> Mapping[str, Offer]:
    """Return the readers of ledgers that plugins add, by name. Reads metadata and imports no plugin."""
    return offers_by_name("dicast.readers")


def formats() -> Mapping[str, Offer]:
    """Return the plugins with sources that detect the format of a file, by name. Reads metadata and imports no plugin."""
    return offers_by_name("dicast.formats")


def exporters() -> Mapping[str, Offer]:
    """Return the formats of ``dicast export`` that plugins add, by name. Reads metadata and imports no plugin."""
    return offers_by_name("dicast.exporters")


def rubrics() -> Mapping[str, Offer]:
    """Return the installed rubrics, by id; the target is the package that holds the file."""
    return offers_by_name("dicast.rubrics")


def gate_clauses() -> Mapping[str, Offer]:
    """Return the offers of plugins for clauses of the gate, by key. Reads metadata and imports no plugin."""
    return offers_by_name(_GATE_CLAUSES)


def load_gate_clause(key: str) -> type[Any]:
    """Import the class that adds *key* to the clauses of the gate (:class:`~dicast._kernel.plan.clauses.GateClause`).

    :raises PluginError: if it is not installed, is offered twice, or does not load.
    """
    offer = gate_clauses().get(key)
    if offer is None:
        raise PluginError(f"no installed plugin has the key {key!r} of the gate")
    cls: type[Any] = load_offer(_GATE_CLAUSES, offer)
    return cls


def load_offer(group: str, offer: Offer) -> Any:
    """Import the object of *offer* in *group*.

    :raises PluginError: if it is offered twice, or does not load.
    """
    from .loading import load_object  # as in Registry

    if offer.error:
        raise PluginError(offer.error)
    owner = f"{_noun(group)} {offer.name!r} ({offer.distribution} {offer.version})"
    refuse_conflicts(owner, offer.distribution)
    return load_object(owner, group, offer.name, offer.target)


def _noun(group: str) -> str:
    return group.removeprefix("dicast.").removesuffix("s").replace("_", " ")


def audit_estimator() -> Any:
    """Return the class that estimates means from audits: ``estimator`` of the plugin with the gate's key ``corrected``.

    :raises PluginError: if it is not installed, or does not load.
    """
    if _CORRECTED not in gate_clauses():
        raise PluginError(f"corrected scores need the plugin trust; {how_to_install(CLAUSE_EXTRAS[_CORRECTED])}")
    return load_gate_clause(_CORRECTED).estimator


def offers_by_name(group: str) -> Mapping[str, Offer]:
    """Return the offers of *group* by name; a name that two distributions offer has an error. Reads metadata alone."""
    by_name: dict[str, Offer] = {}
    for offer in sorted(offers(group), key=lambda offer: (offer.name, offer.distribution)):
        other = by_name.setdefault(offer.name, offer)
        if other is not offer:
            error = _twice(f"{_noun(group)} {offer.name!r}", (other, offer))
            by_name[offer.name] = evolve(other, error=error)
    return by_name


def _extra(plugin: str) -> str:
    """Return the name of the extra of dicast that would bring *plugin*, spelled as in metadata."""
    return plugin.replace("_", "-")


@cache
def _kernel() -> Offer:
    try:
        version = _identity(metadata.distribution("dicast-kernel"))[1]
    except metadata.PackageNotFoundError:
        version = "unknown"  # run from the source tree, not installed
    return Offer(_KERNEL, "dicast-kernel", version, "dicast._processes.component")


def offers(group: str) -> Iterator[Offer]:
    """Yield the offers of the installed distributions in *group*.

    A name that several distributions offer is yielded several times. A distribution that metadata lists twice (editable and on the path) counts once.
    """
    seen = set()
    for folder in map(os.path.abspath, sys.path):
        for distribution in _distributions(folder, _changed(folder)):
            key = re.sub(r"[-_.]+", "-", distribution.name).lower()
            if f"[{group}]" in distribution.text and key not in seen:
                seen.add(key)
                yield from _entries(distribution, group)


def _changed(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:  # the path may name a folder that does not exist
        return 0


@cache
def _distributions(folder: str, changed: int) -> tuple[_Distribution, ...]:
    """Return the distributions with entry points of dicast in a *folder* of the path, which was *changed* then; most folders have none."""
    listed = []
    for distribution in metadata.distributions(path=[folder]):
        try:
            text = distribution.read_text("entry_points.txt") or ""
        except (OSError, UnicodeDecodeError):  # nothing in it can be offered; it must not break other plugins
            continue
        if f"[{_KERNEL}" in text:  # reading the metadata of each would take 20 times as long
            listed.append(_read(distribution, text))
    return tuple(listed)


def _entry_points(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield group, name and target of each entry point in the *text* of an ``entry_points.txt``.

    ``Distribution.entry_points`` raises for all entries of a distribution if importlib_metadata is imported and an entry is invalid.

    :raises ValueError: for a line without ``=``.
    """
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and not line.startswith(("#", ";")):
            name, target = line.split("=", 1)
            yield group, name.strip(), target.strip()


def _read(distribution: metadata.Distribution, text: str) -> _Distribution:
    name, version = _identity(distribution)
    try:
        return _Distribution(name, version, text, tuple(_entry_points(text)))
    except ValueError as error:  # the list of plugins names the distribution
        message = f"the entry points of {name} {version} cannot be read: {describe_error(error)}"
        return _Distribution(name, version, text, (), message)


def _identity(distribution: Any) -> tuple[str, str]:
    try:
        fields = dict(head_fields(distribution))
        return fields["Name"], fields["Version"]
    except Exception as error:  # site-packages has metadata of any age and state; it must not break other plugins
        return f"unreadable ({type(error).__name__})", "unknown"


def _entries(distribution: _Distribution, group: str) -> Iterator[Offer]:
    name, version = distribution.name, distribution.version
    if distribution.error:
        yield Offer(name.removeprefix("dicast-"), name, version, "", distribution.error)
    for section, entry, target in distribution.entries:
        if section == group:
            yield Offer(entry, name, version, target)


def _plugin(offers: Sequence[Offer], *, blocked: bool) -> Plugin:
    first = offers[0]
    plugin = Plugin(first.name, first.distribution, first.version, first.target)
    if blocked:
        message = f"{plugin} is blocked, by DICAST_BLOCK or by plugins.block in the pipeline"
        return evolve(plugin, status="blocked", error=message)
    if len(offers) > 1:
        return evolve(plugin, status="duplicate", error=_twice(f"plugin {first.name!r}", offers))
    if first.error:
        return evolve(plugin, status="broken", error=first.error)
    return plugin


def _twice(noun: str, offers: Iterable[Offer]) -> str:
    names = " and ".join(f"{offer.distribution} {offer.version}" for offer in offers)
    return f"{noun} is offered by {names}; uninstall all but one"


def _not_offered(name: str, kinds: Sequence[str], offered: Collection[Component]) -> Problem:
    fitting = [component.name for component in offered if component.kind in kinds]
    plugin, _, own_name = name.partition("/")
    short = ", ".join(sorted(fitting_name.partition("/")[2] for fitting_name in fitting))
    nothing = "none" if offered else "nothing: no function of its module has @dicast.hookimpl"
    message = f"plugin {plugin!r} offers no {kinds[0]} {own_name!r} (offers: {short or nothing})"
    return Problem(message, value=name, hint=nearest(name, fitting))
