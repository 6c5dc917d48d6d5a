"""Writes components back as plain data, for fingerprints and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from inspect import getsource, isroutine
from pathlib import Path
from typing import Any

import attrs

from ..values import Rubric, Secret

_LARGEST = 2**63


def describe(
    value: Any,
    names: Mapping[type[Any], str],
    written: Mapping[Path, str],
    *,
    counting: bool = False,
    whole: bool = False,
) -> Any:
    """Return *value* as JSON data that says all that matters of it and holds no secret.

    :param names: the names of components' classes; a component becomes ``{name: {options}}``.
    :param written: paths as the user wrote them, so that a moved project is described the same.
    :param whole: have the options that came later (``metadata={"later": True}``) also where they are at their default.
    :param counting: leave out the options that can change no number: those with ``metadata={"counts": False}``.
    """

    def inner(one: Any) -> Any:
        if isinstance(one, Secret):
            return "***"
        if isinstance(one, Rubric):
            return {"id": one.id, "version": one.version, "sha256": sha256(one.text.encode()).hexdigest()}
        if attrs.has(type(one)):
            fields = [field for field in attrs.fields(type(one)) if field.init]
            fields = [field for field in fields if not counting or field.metadata.get("counts", True)]
            # it is in no digest then: runs of the version before are resumed and compared
            fields = [
                field
                for field in fields
                if whole or not field.metadata.get("later") or getattr(one, field.name) != _default(field)
            ]
            options = {field.name: inner(getattr(one, field.name)) for field in fields}
            return {names[type(one)]: options} if type(one) in names else options
        if isinstance(one, Mapping):
            return {str(key): inner(item) for key, item in one.items()}
        if isinstance(one, AbstractSet):
            return sorted((inner(item) for item in one), key=str)
        if isinstance(one, Sequence) and not isinstance(one, str | bytes):
            return [inner(item) for item in one]
        return _scalar(one, written)

    return inner(value)


def _default(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]  # a class; attrs' stubs call it a function


def _scalar(value: Any, written: Mapping[Path, str]) -> Any:
    if isinstance(value, Path):
        return written.get(value, str(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return str(value)  # larger than what JSON writers take
    if value is None or isinstance(value, str | int | float):
        return value
    return _function(value) if isroutine(value) else str(value)


def _function(function: Any) -> dict[str, str]:
    """The name of *function*, and a digest of its source, or of its code where there is no source."""
    name = f"{function.__module__}:{function.__qualname__}"
    try:
        text = getsource(function).encode()
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = b"" if code is None else code.co_code + repr(code.co_consts).encode()
    return {"function": name, "sha256": sha256(text).hexdigest()}
