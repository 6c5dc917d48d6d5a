"""JSON form of the value types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from . import Secret

if TYPE_CHECKING:
    import cattrs

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
    import cattrs  # 30 ms, which a run of free checks does not need

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


def json_fault(document: object) -> str | None:
    """Return the reason why *document* is no JSON object, with the place of the first value without a form in JSON; None if it is one."""
    if not isinstance(document, Mapping):
        return f"returned {document!r:.200}, not a mapping"
    try:
        orjson.dumps(document)
    except TypeError as error:
        try:
            place, value = next(_not_json(document), ("", None))
        except RecursionError:  # the document contains itself
            place = ""
        return f"the result is not JSON: {f'{place} is {value!r:.100}' if place else error}"
    return None


def _not_json(value: object, place: str = "the result") -> Iterator[tuple[str, object]]:
    """Yield the place and the value of each part of *value* that has no form in JSON."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _not_json(item, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _not_json(item, f"{place}[{number}]")
    else:
        try:
            orjson.dumps(value)
        except TypeError:
            yield place, value
