"""JSON form of the value types."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import cattrs

from . import Secret

T = TypeVar("T")


def unstructure(value: object) -> Any:
    """Return *value*, one of dicast's value types, as JSON data."""
    return _shared().unstructure(value)


def structure(data: object, cls: type[T]) -> T:
    """Return the value of the type *cls* from the *data* of :func:`unstructure`."""
    return _shared().structure(data, cls)


@cache
def _shared() -> cattrs.Converter:
    return make_converter()


def make_converter() -> cattrs.Converter:
    """Return the converter between dicast's value types and JSON data.

    An amount of money is a decimal string, an unknown amount is None, a secret is ``***``. Mappings of JSON values are unchanged.
    """
    converter = cattrs.Converter(unstruct_collection_overrides={tuple: list})
    converter.register_unstructure_hook(Decimal, lambda amount: format(amount, "f"))
    converter.register_structure_hook(Decimal, lambda text, _: Decimal(text))
    converter.register_unstructure_hook(Path, str)
    converter.register_structure_hook(Path, lambda text, _: Path(text))
    converter.register_unstructure_hook(Secret, str)
    converter.register_structure_hook(Secret, lambda text, _: Secret(text))
    for plain in (object, Mapping[str, object]):
        converter.register_unstructure_hook_func(_equals(plain), lambda value: value)
        converter.register_structure_hook_func(_equals(plain), lambda value, _: value)
    return converter


def _equals(expected: object) -> Any:
    return lambda annotation: annotation == expected
