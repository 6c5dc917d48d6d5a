"""Strict structuring of plain data: nothing is guessed, and every fault is found, not only the first.

The hooks here know their place in the data. cattrs structures the types without a hook, such as enums, and is imported for them alone.
"""

from __future__ import annotations

import contextlib
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from ..contract.plugin_errors import error_text
from ..values import Cost, Rubric, Secret
from ..values.errors import DicastError, PluginError, RequestError
from ..values.json_form import make_converter
from ..values.names import nearest
from ..values.score import DECIMAL, MOST
from . import types as hints
from .faults import Fault, Invalid, Path, visible_steps

if TYPE_CHECKING:
    import cattrs

Fields = tuple["attrs.Attribute[Any]", ...]
Hook = Callable[[str, Path], Any]
_Structure = Callable[[Any, Any], Any]
"""Returns a value of the type in the second argument."""

_INVALID = object()  # placeholder of an invalid value

_SCALARS: Mapping[type[Any], tuple[type[Any], ...]] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    str: (str,),
    Decimal: (int, float, str),
    type(None): (type(None),),
}


class Structurer:
    """Structurer of the parts of one pipeline.

    :param nested: builds a component of one of some kinds from plain data.
    :param texts: for further types, functions that make a value from text at a path.
    """

    def __init__(self, nested: Callable[[object, tuple[str, ...]], Any], texts: Mapping[Any, Hook]) -> None:
        self.path: Path = ()
        self._nested = nested
        plain: dict[Any, Hook] = {Secret: lambda text, _: Secret(text), Cost: lambda text, _: Cost.parse(text)}
        self._leaves: dict[Any, _Structure] = {
            **dict.fromkeys(_SCALARS, self._scalar),
            **{type_: self._text(hook) for type_, hook in {**plain, **texts}.items()},
        }
        self._hooks: dict[Any, _Structure] = {**self._leaves, **dict.fromkeys((object, Any), lambda value, _: value)}

    def structure(self, value: object, annotation: Any) -> Any:
        """Return a value of the type *annotation*.

        :raises Invalid: with every fault.
        """
        try:
            return (self._hook(annotation) or self._structure_other)(value, annotation)
        except (ValueError, TypeError) as error:
            raise self.mismatch(value, annotation) from error

    def _hook(self, annotation: Any) -> _Structure | None:
        """Return the hook for values of the type *annotation*, or None."""
        if annotation not in self._hooks and (hook := self._container_hook(annotation)) is not None:
            self._hooks[annotation] = hook
        return self._hooks.get(annotation)

    def _container_hook(self, annotation: Any) -> _Structure | None:
        """Return the hook for a type of values with other values inside, for a union or for literals; None for any other type."""
        if hints.is_component(annotation):
            return lambda value, member: self._nested(value, hints.kinds(member))
        if len(hints.members(annotation)) > 1:
            return self._union
        origin = typing.get_origin(annotation) or annotation
        if origin is typing.Literal:
            return self._literal
        if origin in hints.SEQUENCES:
            return self._sequence
        if origin in hints.MAPPINGS:
            return self._mapping
        has_leaf_base = any(base in self._leaves for base in getattr(annotation, "__mro__", ()))
        return self.options if attrs.has(annotation) and not has_leaf_base else None

    def _structure_other(self, value: object, annotation: Any) -> Any:
        """Return a value of a type without a hook."""
        from cattrs import StructureHandlerNotFoundError  # imported late, as in make_converter

        try:
            return self._library.structure(value, annotation)
        except StructureHandlerNotFoundError as error:
            raise self.mismatch(value, annotation) from error

    @cached_property
    def _library(self) -> cattrs.Converter:
        """Converter with the hooks of this structurer."""
        converter = make_converter()
        for type_, hook in self._leaves.items():
            converter.register_structure_hook(type_, hook)
        converter.register_structure_hook_func(
            lambda annotation: self._hook(annotation) is not None,
            lambda value, annotation: self._hooks[annotation](value, annotation),
        )
        return converter

    def options(self, data: object, cls: type[Any], of: str | None = None, extra_keys: Iterable[str] = ()) -> Any:
        """Return an instance of the attrs class *cls*; *of* names it in messages, *extra_keys* are further keys that may be there."""
        if not isinstance(data, Mapping):
            raise self.mismatch(data, cls)
        owner, faults, values = of or hints.option_path(visible_steps(self.path)), list[Fault](), dict[str, Any]()
        fields = self._fields(cls)
        by_key = {key: field for field in fields for key in hints.keys(field)}
        for key, value in data.items():
            field = by_key.get(key)
            if field is None:
                from .unknown_keys import unknown_option  # needed for invalid files alone

                similar = nearest(key, (*by_key, *extra_keys))
                message = unknown_option(key, owner, () if similar else by_key)
                faults.append(Fault(self.path, message, key, similar, key))
            elif field.name in values:
                both = " and ".join(hints.keys(field))
                message = f"{both} are one option, but both are set; remove one of them"
                faults.append(Fault(self.path, message, key, None, key))
            else:
                values[field.name] = _INVALID
                with self.at(key, faults=faults):
                    values[field.name] = self.structure(value, field.type)
        with self.at(faults=faults):
            values |= self._defaults(fields, values, owner)
        if faults:
            raise Invalid((*faults, *self._check_fields(cls, fields, values)))
        return self._construct(cls, fields, values)

    def _fields(self, cls: type[Any]) -> Fields:
        try:
            return hints.fields(cls)
        except PluginError as error:
            raise Invalid([Fault(self.path, str(error), plugin=True)]) from error

    def _defaults(self, fields: Fields, values: Mapping[str, Any], owner: str) -> dict[str, Any]:
        """Return the values of missing fields that the class itself cannot know: rubrics with an id as default."""
        absent = [field for field in fields if field.name not in values]
        faults = [
            Fault(self.path, f"{owner} needs the option {hints.keys(field)[0]!r}")
            for field in absent
            if field.default is attrs.NOTHING
        ]
        defaults = {}
        for field in absent:
            if isinstance(field.default, str) and hints.mentions(field.type, Rubric):
                with self.at(faults=faults):
                    defaults[field.name] = self.structure(field.default, field.type)
        if faults:
            raise Invalid(faults)
        return defaults

    def _construct(self, cls: type[Any], fields: Fields, values: Mapping[str, Any]) -> Any:
        try:
            return cls(**{field.alias or field.name: values[field.name] for field in fields if field.name in values})
        except Exception as error:  # checks of a component: code of a plugin
            faults = self._check_fields(cls, fields, values)
            raise Invalid(faults or _error_faults(error, self.path)) from error

    def _check_fields(self, cls: type[Any], fields: Fields, values: Mapping[str, Any]) -> list[Fault]:
        """Run each field's own converter and check, because attrs stops at the first failure."""
        shell, faults = object.__new__(cls), list[Fault]()
        usable = [field for field in fields if _is_known(field, values)]
        for field in usable:
            with self._blaming(field, values, faults):
                object.__setattr__(shell, field.name, _converted(field, values))
        for field in usable:
            if field.validator is not None and field.name in values and hasattr(shell, field.name):
                with self._blaming(field, values, faults):
                    field.validator(shell, field, getattr(shell, field.name))
        return faults

    @contextlib.contextmanager
    def _blaming(self, field: attrs.Attribute[Any], values: Mapping[str, Any], faults: list[Fault]) -> Iterator[None]:
        try:
            yield
        except AttributeError:
            return  # the check reads another option, whose value is invalid or missing
        except Exception as error:  # code of a plugin, as in _construct
            value = None if hints.mentions(field.type, Secret) else values.get(field.name)
            faults.extend(_error_faults(error, (*self.path, hints.keys(field)[0]), value))

    @contextlib.contextmanager
    def at(self, *steps: str | int, faults: list[Fault]) -> Iterator[None]:
        """Go down *steps* for the length of the block; faults there are added to *faults*."""
        with self.jump((*self.path, *steps)):
            try:
                yield
            except Invalid as invalid:
                faults.extend(invalid.faults)

    @contextlib.contextmanager
    def jump(self, path: Path) -> Iterator[None]:
        """Set the path to *path* for the length of the block."""
        before, self.path = self.path, path
        try:
            yield
        finally:
            self.path = before

    def invalid(self, message: str, value: object = None, hint: str | None = None, key: str | None = None) -> Invalid:
        """Return the error for the value at the current path, or for its *key*."""
        return Invalid([Fault(self.path, message, value, hint, key)])

    def mismatch(self, value: object, annotation: Any) -> Invalid:
        """Return the error for a value that is not of the type *annotation*."""
        # A container may hold a secret, and a scalar in place of a secret is a secret.
        plain = not isinstance(value, Mapping | list) and not hints.mentions(annotation, Secret)
        name = hints.option_path(_last(visible_steps(self.path)))
        got = f", got {value!r}" if plain else ""
        message = f"invalid value for {name}, expected {hints.expected(annotation)}{got}"
        hint = nearest(value, hints.literals(annotation)) if isinstance(value, str) and plain else None
        return Invalid([Fault(self.path, message, value if plain else None, hint, mismatch=True)])

    def _text(self, hook: Hook) -> Callable[[Any, Any], Any]:
        def structure(value: Any, annotation: Any) -> Any:
            if not isinstance(value, str):
                raise self.mismatch(value, annotation)
            try:
                return hook(value, self.path)
            except (DicastError, ValueError) as error:
                raise Invalid(_error_faults(error, self.path, value)) from error

        return structure

    def _scalar(self, value: Any, annotation: Any) -> Any:
        if type(value) not in _SCALARS[annotation] or (isinstance(value, float) and not math.isfinite(value)):
            raise self.mismatch(value, annotation)
        if annotation is Decimal:
            return self._decimal(value)
        return float(value) if annotation is float else value

    def _decimal(self, value: float | str) -> Decimal:
        if not DECIMAL.match(value) if isinstance(value, str) else abs(value) >= MOST:
            raise self.mismatch(value, Decimal)
        return Decimal(str(value))  # the digits as written, not the digits of the binary float

    def _literal(self, value: Any, annotation: Any) -> Any:
        for literal in typing.get_args(annotation):
            if type(literal) is type(value) and literal == value:
                return literal
        raise self.mismatch(value, annotation)

    def _union(self, value: Any, annotation: Any) -> Any:
        one_of = [member for member in hints.members(annotation) if member is not type(None)]
        if value is None and len(one_of) < len(hints.members(annotation)):
            return None
        if hints.kinds(annotation) and isinstance(value, str | Mapping) and len(one_of) == 1:
            return self.structure(value, one_of[0])
        tried = list[Invalid]()
        for member in one_of:
            try:
                return self.structure(value, member)
            except Invalid as invalid:
                tried.append(invalid)
        near = [t for t in tried if any(not fault.mismatch or fault.path != self.path for fault in t.faults)]
        raise near[0] if len(near) == 1 else self.mismatch(value, annotation)

    def _sequence(self, value: Any, annotation: Any) -> Any:
        if not isinstance(value, list):
            raise self.mismatch(value, annotation)
        origin, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation) or (object,)
        fixed = origin is tuple and args[-1] is not Ellipsis and typing.get_args(annotation)
        if fixed and len(value) != len(args):
            raise self.mismatch(value, annotation)
        items, faults = list[Any](), list[Fault]()
        for index, item in enumerate(value):
            with self.at(index, faults=faults):
                items.append(self.structure(item, args[index] if fixed else args[0]))
        if faults:
            raise Invalid(faults)
        return hints.SEQUENCES[origin](items)

    def _mapping(self, value: Any, annotation: Any) -> Any:
        if not isinstance(value, Mapping):
            raise self.mismatch(value, annotation)
        of_keys, of_values = typing.get_args(annotation) or (object, object)
        members, faults = dict[Any, Any](), list[Fault]()
        for key, item in value.items():
            with self.at(key, faults=faults):
                members[self.structure(key, of_keys)] = self.structure(item, of_values)
        if faults:
            raise Invalid(faults)
        return members


def _last(path: Path) -> Path:
    """Return the steps from the last key on: ``required[0]``."""
    start = max((index for index, step in enumerate(path) if isinstance(step, str)), default=0)
    return path[start:]


def _is_known(field: attrs.Attribute[Any], values: Mapping[str, Any]) -> bool:
    if field.name in values:
        return values[field.name] is not _INVALID
    return field.default is not attrs.NOTHING and not isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]  # a class, although attrs' stubs declare a function


def _converted(field: attrs.Attribute[Any], values: Mapping[str, Any]) -> Any:
    convert: Any = field.converter
    value = values.get(field.name, field.default)
    return value if convert is None or isinstance(convert, attrs.Converter) else convert(value)


def _error_faults(error: Exception, path: Path, value: object = None) -> list[Fault]:
    """Return *error* as faults at *path*."""
    plugin = isinstance(error, PluginError)
    if isinstance(error, RequestError):
        # The text of a ValueError may repeat the value, which may be a secret.
        cause = None if isinstance(error.__cause__, ValueError | None) else error
        return [
            Fault(
                path, str(attrs.evolve(problem, hint=None, path=None)), value, problem.hint, plugin=plugin, cause=cause
            )
            for problem in error.problems
        ]
    expected = isinstance(error, ValueError | TypeError | DicastError)
    message = str(error.args[0] if error.args else error)  # validators of attrs add the field and more
    return [Fault(path, message if expected else f"{type(error).__name__}: {error_text(error)}", value)]
