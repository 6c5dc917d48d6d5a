"""Check of the options of a component that a Python program made: attrs itself compares no types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Any, Literal, Protocol, get_args, get_origin

import attrs

from ..contract.kinds import KINDS
from ..values import InputPath, Secret
from ..values.errors import PluginError
from . import types as hints

_SETS = (set, frozenset, AbstractSet)
_SCALARS: Mapping[object, Callable[[object], bool]] = {
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    type(None): lambda value: value is None,
    InputPath: lambda value: isinstance(value, PurePath),
}


def wrong_options(component: object) -> Iterator[str]:
    """Yield a message for each option of *component*, and of the components inside it, whose value is not of its type.

    An option with a converter is not compared, nor is a type that cannot be read at run time.
    """
    cls: Any = type(component)
    try:
        fields = {field.name: field for field in hints.fields(cls)}
    except PluginError:  # a class inside a function may use names of the function
        return
    for name, field in fields.items():
        value = getattr(component, name)
        if not (_is_converted(field) or _is_default(field, value) or _fits(value, field.type)):
            got = "" if hints.mentions(field.type, Secret) else f", got {value!r:.80}"
            yield f"invalid value for {hints.keys(field)[0]}, expected {hints.expected(field.type)}{got}"
        for inner in _nested(value, field.type):
            owner = getattr(inner, "name", None) or type(inner).__name__
            yield from (f"{owner}: {message}" for message in wrong_options(inner))


def _nested(value: object, annotation: Any) -> Iterator[object]:
    """Yield the components in *value*, also in sequences and mappings."""
    if not any(hints.mentions(annotation, kind.protocol) for kind in KINDS.values()):
        return
    if isinstance(value, Mapping):
        value = [*value.values()]
    for item in value if isinstance(value, list | tuple) else (value,):
        if attrs.has(type(item)):
            yield item


def _is_converted(field: attrs.Attribute[Any]) -> bool:
    return field.converter is not None or "takes" in field.metadata


def _is_default(field: attrs.Attribute[Any], value: object) -> bool:
    return field.default is not attrs.NOTHING and value is field.default


def _fits(value: object, annotation: Any) -> bool:
    """Return True if *value* is of the type *annotation*; True also for types that cannot be compared at run time, such as functions."""
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if len(members := hints.members(annotation)) > 1:
        return any(_fits(value, member) for member in members)
    if check := _SCALARS.get(origin):
        return check(value)
    if origin is Literal:
        return any(type(value) is type(literal) and value == literal for literal in arguments)
    if kinds := hints.kinds(annotation):
        return hasattr(value, "open") or any(_has_members(value, kind) for kind in kinds)
    if origin in hints.MAPPINGS:
        of_keys, of_values = arguments or (object, object)
        return isinstance(value, Mapping) and all(
            _fits(key, of_keys) and _fits(item, of_values) for key, item in value.items()
        )
    if origin in hints.SEQUENCES:
        return _is_sequence(value, origin, arguments)
    comparable = isinstance(origin, type) and origin is not Any and Protocol not in origin.__mro__
    return not comparable or isinstance(value, origin)


def _is_sequence(value: object, origin: object, arguments: tuple[Any, ...]) -> bool:
    if origin in _SETS:
        return isinstance(value, AbstractSet) and all(_fits(item, argument) for item in value for argument in arguments)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    return all(_fits(item, arguments[0]) for item in value) if arguments else True


def _has_members(value: object, kind: str) -> bool:
    return all(hasattr(value, member) for member in KINDS[kind].members)
