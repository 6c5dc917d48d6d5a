"""Outputs that are objects: the place of the answer in them."""

from __future__ import annotations

from collections.abc import Mapping

from .._kernel.values.errors import ConfigError
from ..toolkit.json_values import MISSING, lookup
from ..toolkit.outputs import PLACES, text_places
from .columns import Column
from .guesses import Guess, Guesses
from .sample import Sample
from .written import one_comment

_KEYS = 12
"""The most places of an object that a message lists."""

_REPLY_KEYS = ("choices", "candidates", "status_code", "message.content")
"""Keys that objects have if they are replies of a service, one of them at least."""


def read_objects(guesses: Guesses, sample: Sample) -> None:
    """Take the text inside the objects of the output column as the output, unless the reference has objects too.

    An object is never compared with a text, because its JSON has keys and other fields.

    :raises ConfigError: if the place of the answer is unknown, and there is a text reference or the objects are replies of a service.
    """
    output, reference = guesses.column("output"), guesses.column("reference")
    if output is None or not output.objects or (reference is not None and reference.json):
        return
    place = _place_in(output)
    if place is None and reference is None and not _is_reply(output):
        return  # objects by themselves: their form is judged
    if place is None:
        keys = ", ".join(_places(output)) or "none"
        why = "" if reference is None else f", and {one_comment(repr(reference.name))} has text to compare with"
        raise ConfigError(
            f"column {one_comment(repr(output.name))} has objects{why}: name the place of the answer, "
            f"--fields output={output.name}.PATH; places: {keys}"
        )
    path = f"{output.name}.{place}"
    guesses.columns = {**guesses.columns, path: Column.of(path, sample.rows)}
    guesses.by_field["output"] = Guess(path, f"the text in the objects of {one_comment(repr(output.name))}")


def _place_in(column: Column) -> str | None:
    """Return the likeliest place that has text in most of the objects of *column*."""
    counts: dict[str, int] = {}
    for value in column.values:
        for path in text_places(value):
            counts[path] = counts.get(path, 0) + 1
    return next((path for path in PLACES if 2 * counts.get(path, 0) > len(column.values)), None)


def _is_reply(column: Column) -> bool:
    """Return whether the objects are replies of a service, and not structured outputs of a model."""
    return any(lookup(value, key) is not MISSING for value in column.values for key in _REPLY_KEYS)


def _places(column: Column) -> list[str]:
    """Return the keys of the first object; keys of objects inside it have dots."""
    first = next((value for value in column.values if isinstance(value, Mapping)), {})
    paths = []
    for name, value in first.items():
        inner = [f"{name}.{key}" for key in value] if isinstance(value, Mapping) else []
        paths += inner or [str(name)]
    return paths[:_KEYS]
