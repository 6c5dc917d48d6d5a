"""Components as plain data, for fingerprints and reports."""

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
    include_later: bool = False,
) -> Any:
    """Return *value* as JSON data with everything that affects results, and without secrets.

    :param names: the names of components' classes; a component becomes ``{name: {options}}``.
    :param written: paths as the user wrote them, so that a moved project has the same description.
    :param include_later: include options of later versions (``metadata={"later": True}``) even if they have their default.
    :param counting: leave out options that cannot change a score: options with ``metadata={"counts": False}``.
    """

    def inner(part: Any) -> Any:
        if isinstance(part, Secret):
            return "***"
        if isinstance(part, Rubric):
            return {"id": part.id, "version": part.version, "sha256": sha256(part.text.encode()).hexdigest()}
        if attrs.has(type(part)):
            fields = [field for field in attrs.fields(type(part)) if field.init]
            fields = [field for field in fields if not counting or field.metadata.get("counts", True)]
            # left out of digests, so that runs of older versions can be resumed and compared
            fields = [
                field
                for field in fields
                if include_later or not field.metadata.get("later") or getattr(part, field.name) != _default(field)
            ]
            options = {field.name: inner(getattr(part, field.name)) for field in fields}
            return {names[type(part)]: options} if type(part) in names else options
        if isinstance(part, Mapping):
            return {str(key): inner(item) for key, item in part.items()}
        if isinstance(part, AbstractSet):
            return sorted((inner(item) for item in part), key=str)
        if isinstance(part, Sequence) and not isinstance(part, str | bytes):
            return [inner(item) for item in part]
        return _scalar(part, written)

    return inner(value)


def _default(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]  # a class, although attrs' stubs declare a function


def _scalar(value: Any, written: Mapping[Path, str]) -> Any:
    if isinstance(value, Path):
        return written.get(value, str(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return str(value)  # JSON writers accept no larger number
    if value is None or isinstance(value, str | int | float):
        return value
    return _function(value) if isroutine(value) else str(value)


def _function(function: Any) -> dict[str, str]:
    """Return the name of *function*, and a digest of its source, or of its code if there is no source."""
    name = f"{function.__module__}:{function.__qualname__}"
    try:
        text = getsource(function).encode()
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = b"" if code is None else code.co_code + repr(code.co_consts).encode()
    return {"function": name, "sha256": sha256(text).hexdigest()}
