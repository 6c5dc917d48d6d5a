"""Types of options, read at run time."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union

import attrs

from ..contract.kinds import KINDS
from ..contract.plugin_errors import in_brackets, place_of
from ..values import Cost, InputPath, Rubric, Secret
from ..values.errors import PluginError

SEQUENCES: Mapping[object, type[Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    AbstractSet: frozenset,
    **dict.fromkeys((tuple, Sequence, Collection, Iterable), tuple),
}
MAPPINGS = (dict, Mapping, MutableMapping)

_NAMES: Mapping[object, str] = {
    bool: "true or false",
    type(None): "null",
    Cost: "amount ('0.10 usd')",
    Decimal: "decimal",
    InputPath: "path of a file",
    Path: "path",
    Rubric: "rubric id or path",
    Secret: "str",
    object: "any value",
    Any: "any value",
}


def fields(cls: type[Any]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the fields of *cls* that can be passed, with their types resolved.

    ``metadata={"takes": TYPE}`` is the type of the passed value, if a converter changes it.

    :raises PluginError: when a type cannot be read at run time.
    """
    try:
        attributes = (field for field in attrs.fields(attrs.resolve_types(cls)) if field.init)
        return tuple(field.evolve(type=field.metadata.get("takes", field.type or object)) for field in attributes)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        class_name = f"{cls.__module__}.{cls.__qualname__}"
        advice = "types of options are read at run time: import them outside of 'if TYPE_CHECKING'"
        raise PluginError(
            f"the options of {class_name} cannot be read ({error}); {advice}{in_brackets(place_of(cls))}"
        ) from error


def keys(field: attrs.Attribute[Any]) -> tuple[str, ...]:
    """Return the possible keys of the option *field*, the preferred key first."""
    names: tuple[str, ...] = field.metadata.get("keys", (field.alias or field.name,))
    return names


def option_path(path: Iterable[str | int]) -> str:
    """Render *path* as ``metrics[1].words``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def members(annotation: object) -> tuple[Any, ...]:
    """Return the members of a union; for any other type, only itself."""
    is_union = typing.get_origin(annotation) in (Union, types.UnionType)
    return typing.get_args(annotation) if is_union else (annotation,)


def kinds(annotation: object) -> tuple[str, ...]:
    """Return the kinds of components that a field of this type accepts; empty if none."""
    names = (name for member in members(annotation) for name, kind in KINDS.items() if member is kind.protocol)
    return tuple(dict.fromkeys(name for kind in names for name in (kind, *KINDS[kind].also)))


def is_component(annotation: object) -> bool:
    """Return True if a field of this type accepts only components. None is handled by the union."""
    return bool(kinds(annotation)) and type(None) not in members(annotation)


def mentions(annotation: object, type_: object) -> bool:
    """Return True if *type_* occurs in *annotation*."""
    return annotation is type_ or any(mentions(argument, type_) for argument in typing.get_args(annotation))


def literals(annotation: object) -> Iterator[str]:
    """Yield the texts that a field of this type accepts."""
    for member in members(annotation):
        if typing.get_origin(member) is Literal:
            yield from (text for text in typing.get_args(member) if isinstance(text, str))


def expected(annotation: Any) -> str:
    """Return the values that a field of this type accepts, in words."""
    if kinds(annotation):
        return f"{_either(list(kinds(annotation)))} (NAME or {{NAME: {{options}}}})"
    if len(members(annotation)) > 1:
        return _either([expected(member) for member in members(annotation) if member is not type(None)])
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _either([repr(member) for member in args])
    if annotation in _NAMES:
        return _NAMES[annotation]
    if (origin or annotation) in SEQUENCES:
        return f"list of {expected(args[0])}" if args else "list"
    if (origin or annotation) in MAPPINGS:
        return f"mapping of {expected(args[1])}" if args else "mapping"
    if attrs.has(annotation):
        return f"mapping {{{', '.join(key for field in fields(annotation) for key in keys(field)[:1])}}}"
    return getattr(annotation, "__name__", str(annotation))


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
