"""Loading of a plugin's code: the objects of its entry points, and the components of its hooks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Any

import pluggy

from ...toolkit.named_classes import NamedClasses
from ..classes import frozen
from ..values.errors import PluginError
from ..values.names import nearest
from . import hooks
from .kinds import Component, describe_component
from .plugin_errors import describe_error, in_brackets, place_of, raise_interruption

_MARK = f"{hooks.PROJECT}_impl"
"""Attribute that ``@hookimpl`` sets."""

_MIN_SIMILARITY = 0.85
"""Similarity from which an unmarked function is a hook whose name is misspelled."""


def load_object(owner: str, group: str, name: str, target: str) -> Any:
    """Return the object *target* (``module:attribute``) of the entry point *name* in *group*.

    :param owner: the plugin or the command, for messages.
    :raises PluginError: if there is no such module or attribute, or the module cannot be imported; with the author's line.
    """
    entry = metadata.EntryPoint(name, target, group)
    fix = f'Correct {name} = "{target}" under [project.entry-points.{_toml(group)}], and install the package again'
    if entry.pattern.match(target) is None:
        raise PluginError(f"{owner}: its entry point names {target!r}, not MODULE or MODULE:NAME. {fix}")
    try:
        module = import_module(entry.module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the border to other people's code
        raise_interruption(error)
        if isinstance(error, ModuleNotFoundError) and error.name and f"{entry.module}.".startswith(f"{error.name}."):
            near = nearest(error.name, _modules(error.name))
            message = f"its entry point names the module {entry.module!r}, and there is no module {error.name!r}"
            raise PluginError(f"{owner}: {message}{_hint(near) or '.'} {fix}") from error
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        fix = "Correct that line, or install another version of the package"
        fix = f"Install the package of {missing!r}" if missing else fix
        fix += f"; to go on without the plugin, set DICAST_BLOCK={name}" if group == "dicast" else ""
        raise PluginError(f"{owner} failed to import {target}: {describe_error(error, entry.module)}. {fix}") from error
    try:
        return functools.reduce(getattr, filter(None, (entry.attr or "").split(".")), module)
    except AttributeError as error:
        near = nearest(entry.attr, vars(module))
        message = f"its entry point names {entry.attr!r} of {entry.module}, which has no such name"
        raise PluginError(f"{owner}: {message}{_hint(near) or '.'} {fix}") from error


@frozen
class Offered:
    """Classes that an imported plugin offers, by hook. *owner* is the plugin with its distribution, for messages."""

    owner: str
    classes: tuple[tuple[str, Sequence[object]], ...]
    describe: Callable[[str, object], Component]

    @property
    def has_names(self) -> bool:
        """True if classes have names, so that :meth:`components` can import one of them alone."""
        return any(isinstance(classes, NamedClasses) for _, classes in self.classes)

    def components(self, name: str | None = None) -> tuple[Component, ...]:
        """Return the components. With *name*, a name without the plugin, named classes of other components are not imported.

        :raises PluginError: with the first fault, and the author's line.
        """
        return tuple(
            _unique(self.owner, (part for hook, classes in self.classes for part in self._of(hook, classes, name)))
        )

    def _of(self, hook: str, classes: Sequence[object], name: str | None) -> Iterator[Component]:
        if not isinstance(classes, NamedClasses):
            yield from (self._component(hook, cls) for cls in classes)
            return
        for own_name in classes.names:
            if name in (own_name, None):
                with _blaming(self.owner, hook, classes.package):
                    cls = classes.named(own_name)
                component = self._component(hook, cls)
                if component.name.partition("/")[2] != own_name:
                    message = f"{component.name} has the key {own_name!r} in NamedClasses; write its name"
                    raise PluginError(f"{self.owner}, {hook}: {message}{_at(cls)}")
                yield component

    def _component(self, hook: str, cls: Any) -> Component:
        try:
            return self.describe(hooks.KIND_OF_HOOK[hook], cls)
        except PluginError as error:
            raise PluginError(f"{self.owner}, {hook}: {error}{_at(cls)}") from error
        except Exception as error:  # as in load_object: a class is a plugin's code too
            raise_interruption(error)
            raise PluginError(
                f"{self.owner}, {hook}: {cls!r:.100}: {describe_error(error, getattr(cls, '__module__', ''))}"
            ) from error


def load_plugin(owner: str, plugin: str, distribution: str, version: str, target: str) -> Offered:
    """Import a plugin, and return the classes of its hooks.

    :param owner: the plugin with its distribution, for messages.
    :raises PluginError: with every fault of the hooks, each with the author's line.
    """
    module = load_object(owner, "dicast", plugin, target)
    if faults := [*_faults(module)]:
        raise PluginError(f"{owner}: {'; '.join(faults)}")
    caller = pluggy.PluginManager(hooks.PROJECT)
    caller.add_hookspecs(hooks)
    try:
        caller.register(module, plugin)
        caller.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(f"{owner} has a hook that dicast cannot call: {error}") from error
    distribution = getattr(module, "former_distribution", distribution)
    classes = [
        (hook, _call(owner, hook, impl.function))
        for hook in hooks.KIND_OF_HOOK
        for impl in reversed(getattr(caller.hook, hook).get_hookimpls())
    ]
    describe = functools.partial(describe_component, plugin=plugin, distribution=distribution, version=version)
    return Offered(owner, tuple(classes), describe)


def _toml(group: str) -> str:
    return group if "." not in group else f'"{group}"'


def _hint(near: str | None) -> str:
    return f", did you mean {near!r}?" if near else ""


def _modules(name: str) -> Iterator[str]:
    """Yield the names of modules next to the missing module *name*."""
    package, dot, _ = name.rpartition(".")
    path = import_module(package).__path__ if dot else None
    yield from (f"{package}{dot}{module.name}" for module in pkgutil.iter_modules(path))


def _faults(module: Any) -> Iterator[str]:
    """Yield each fault of the hooks in *module*, with its line."""
    members = vars(module) if isinstance(module, ModuleType) else _members(module)
    for name, function in members.items():
        mark = getattr(function, _MARK, None)
        if isinstance(mark, Mapping):
            yield from _faults_of_hook(mark.get("specname") or name, function)
        elif callable(function) and (hook := _meant_hook(name, function, module)):
            yield f"{name} has no @hookimpl, so it is not a hook; add @dicast.hookimpl to {hook}{_at(function)}"


def _members(plugin: Any) -> Mapping[str, Any]:
    """Return the members of *plugin*, an object that is no module, without calling its properties."""
    return {name: inspect.getattr_static(plugin, name, None) for name in dir(plugin)}


def _faults_of_hook(hook: str, function: Any) -> Iterator[str]:
    if hook not in hooks.KIND_OF_HOOK:
        near, listed = nearest(hook, hooks.KIND_OF_HOOK), ", ".join(hooks.KIND_OF_HOOK)
        yield f"unknown hook {hook!r}{_hint(near)}{'' if near else f' (hooks: {listed})'}{_at(function)}"
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not a function: pluggy reports it
        return
    if names := [
        str(parameter) for parameter in parameters if parameter.default is parameter.empty and parameter.name != "self"
    ]:
        yield f"{hook} takes no arguments, so remove {', '.join(names)}{_at(function)}"


def _meant_hook(name: str, function: Any, module: Any) -> str | None:
    """Return the hook that the unmarked *function* is meant to be, or None."""
    if name in hooks.KIND_OF_HOOK:
        return name
    if not (name.startswith("dicast_") and inspect.isfunction(function) and function.__module__ == module.__name__):
        return None
    from difflib import get_close_matches  # needed for such a name alone

    return next(iter(get_close_matches(name, hooks.KIND_OF_HOOK, 1, _MIN_SIMILARITY)), None)


def _at(definition: Any) -> str:
    return in_brackets(place_of(definition))


@contextlib.contextmanager
def _blaming(owner: str, hook: str, module: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # as in load_object
        raise_interruption(error)
        raise PluginError(f"{owner} failed in {hook}: {describe_error(error, module)}") from error


def _call(owner: str, hook: str, function: Any) -> Sequence[object]:
    with _blaming(owner, hook, function.__module__):
        offered = function()
        if isinstance(offered, NamedClasses):
            return offered
        classes = [*offered] if isinstance(offered, Iterable) and not isinstance(offered, str) else None
        if inspect.iscoroutine(offered):
            offered.close()  # hooks are called without an event loop
    if classes is None:
        text = "a coroutine" if inspect.iscoroutine(offered) else f"{offered!r:.100}"
        raise PluginError(f"{owner}: {hook} returned {text}, not a list of classes{_at(function)}")
    return classes


def _unique(owner: str, components: Iterable[Component]) -> Iterator[Component]:
    seen: dict[tuple[str, str], Component] = {}
    for component in components:
        space = "metric" if component.kind == "judge" else component.kind  # a judge is accepted as a metric
        other = seen.setdefault((space, component.name), component)
        if other is not component:
            both = " and ".join(f"{cls.__qualname__}{_at(cls)}" for cls in (other.cls, component.cls))
            raise PluginError(f"{owner} offers {component.name} twice: {both}")
        yield component
