"""Kinds of components, and the checks of a component's class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from ..classes import frozen
from ..values.errors import PluginError
from ..values.names import nearest
from .plugin_errors import in_brackets, place_of
from .protocols import (
    Aggregate,
    ChatModel,
    Comparison,
    EarlyStop,
    Executor,
    Extractor,
    Judge,
    Ledger,
    Metric,
    Preset,
    Sandbox,
    Sink,
    Source,
    Task,
)

SLOT_KEYS = ("as", "weight", "timeout", "retries", "on", "range", "on_failure", "pass_at")
"""Keys that a pipeline may have next to the options of a metric or a judge; none of their options may have such a name."""

CLAIMABLE = ("retries", "timeout")
"""Slot keys that a component may have as options: it knows which requests to try again, and when the time of each is over."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@frozen
class Kind:
    """A kind of component.

    :param protocol: the type of a field that takes a component of this kind.
    :param members: the members that its class needs.
    :param also: the kinds that are accepted in its place.
    :param slot: whether slot keys are accepted next to its options.
    """

    protocol: type
    members: tuple[str, ...]
    also: tuple[str, ...] = ()
    slot: bool = False


KINDS: Mapping[str, Kind] = {
    "source": Kind(Source, ("subjects",)),
    "task": Kind(Task, ("produce",), slot=True),
    "extractor": Kind(Extractor, ("writes", "extract")),
    "aggregate": Kind(Aggregate, ("add", "finish")),
    "comparison": Kind(Comparison, ("compare",)),
    "early_stop": Kind(EarlyStop, ("observe",)),
    "metric": Kind(Metric, ("score",), also=("judge",), slot=True),
    "preset": Kind(Preset, ("metrics",), slot=True),
    "judge": Kind(Judge, ("judge",), slot=True),
    "model": Kind(ChatModel, ("complete",)),
    "sink": Kind(Sink, ("write", "close")),
    "ledger": Kind(Ledger, ("append", "read", "head", "verify", "reserve", "reservations")),
    "sandbox": Kind(Sandbox, ("execute",)),
    "executor": Kind(Executor, ("concurrency",)),
}


@frozen
class Component:
    """A class that a plugin offers, under *name* (``proxy/format``). *tier* is the tier of a metric, None for other kinds.

    *distribution* is the name in fingerprints. A plugin that moved to another distribution keeps its fingerprints if its module has the
    older name as ``former_distribution``.
    """

    name: str
    kind: str
    cls: type[Any]
    distribution: str
    version: str
    tier: str | None
    summary: str


def describe_component(kind: str, cls: object, plugin: str, distribution: str, version: str) -> Component:
    """Return the description of *cls*, which *plugin* offers as a *kind*.

    :raises PluginError: if it is not a frozen attrs class with the kind's members, or if its name is invalid.
    """
    if not (isinstance(cls, type) and attrs.has(cls) and _is_frozen(cls)):
        if attrs.has(type(cls)):
            name = type(cls).__qualname__
            raise PluginError(
                f"the hook returns an object of {name}, not the class; return [{name}]{in_brackets(place_of(type(cls)))}"
            )
        decorator = f", or decorate the function with @dicast.{kind}" if kind in ("metric", "judge") else ""
        raise PluginError(f"{cls!r} is not a frozen attrs class; decorate the class with @attrs.frozen{decorator}")
    own_name = getattr(cls, "name", None)
    name = own_name if isinstance(own_name, str) else snake_case(cls.__name__)
    if not _NAME.fullmatch(name):
        raise PluginError(f"{cls.__qualname__} has the name {name!r}; a name is {_NAME.pattern}")
    _check_members(kind, cls)
    tier = getattr(cls, "tier", None) if kind == "metric" else None
    if kind == "metric" and tier not in ("proxy", "truth"):
        raise PluginError(f"metric {cls.__qualname__} needs the class attribute tier, 'proxy' or 'truth', not {tier!r}")
    return Component(f"{plugin}/{name}", kind, cls, distribution, version, tier, summary(cls))


def _check_members(kind: str, cls: type[Any]) -> None:
    if not hasattr(cls, "open"):
        for fault in member_faults(kind, cls, cls):
            raise PluginError(f"{kind} {cls.__qualname__} {fault}")
    reserved = set(SLOT_KEYS).difference(CLAIMABLE) if KINDS[kind].slot else {"shuffle"} if kind == "source" else ()
    reserved_names = [field.name for field in attrs.fields(cls) if field.name in reserved]
    if reserved_names:
        raise PluginError(
            f"{kind} {cls.__qualname__} has an option {reserved_names[0]!r}, which is a slot key; rename the option"
        )


def member_faults(kind: str, cls: type[Any], value: object) -> Iterator[str]:
    """Yield a message if *value*, the class *cls* or an object of it, lacks members of *kind*."""
    if missing := [member for member in KINDS[kind].members if not hasattr(value, member)]:
        place = "" if value is cls else in_brackets(place_of(cls))
        yield f"has no {', '.join(missing)}{_advice(kind, cls, missing[0])}{place}"


def _advice(kind: str, cls: type[Any], missing: str) -> str:
    """Return the nearest name to the *missing* member, or the kind that *cls* is; empty if there is neither."""
    if near := nearest(missing, (name for name in vars(cls) if not name.startswith("_"))):
        return f"; rename its {near!r} to {missing!r}"
    fitting = [other for other, entry in KINDS.items() if all(hasattr(cls, member) for member in entry.members)]
    return f"; it is a {fitting[0].replace('_', ' ')}: return it from dicast_{fitting[0]}s" if fitting else ""


def _is_frozen(cls: type[Any]) -> bool:
    try:
        object.__new__(cls).dicast = True
    except attrs.exceptions.FrozenInstanceError:
        return True
    except AttributeError:
        return False  # slotted, but not frozen
    return False


def snake_case(name: str) -> str:
    """Return *name* (``ToolParamsSchema``) in snake case (``tool_params_schema``)."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def parts(value: object) -> Iterator[object]:
    """Yield *value* and all values inside it: the fields of components, the items of lists and mappings."""
    yield value
    inside: Iterable[object] = ()
    cls: Any = type(value)
    if attrs.has(cls):
        inside = [getattr(value, field.name, None) for field in attrs.fields(cls)]
    elif isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    for item in inside:
        yield from parts(item)


def summary(cls: type[Any]) -> str:
    """Return the first line of the docstring of *cls*, or nothing."""
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()
    return lines[0] if lines else ""
