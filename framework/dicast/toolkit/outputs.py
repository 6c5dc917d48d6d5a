"""Outputs that are objects: the places of their text, and the failure of a text metric without a ``field``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._kernel.values import Failure, Subject
from .json_values import MISSING, lookup

_REPLIES = (
    "choices.0.message.content",
    "choices.0.text",
    "candidates.0.content.parts.0.text",
    "content.0.text",
    "message.content",
    "output_text",
)
"""The paths of the text in replies of chat models."""

_PREFIXES = ("", "body.", "response.", "response.body.", "message.", "result.message.")
"""Keys that records of calls put around a reply."""

_NAMES = ("answer", "text", "content", "output", "response", "completion", "prediction", "result", "message", "value")
PLACES = (
    *(prefix + path for prefix in _PREFIXES for path in _REPLIES),
    *(prefix + name for prefix in _PREFIXES[:3] for name in _NAMES),
)
"""Dotted paths at which an object may have the text of an answer, the likeliest first."""

_LISTED, _LONG = 8, 40


def text_places(value: object) -> Iterator[str]:
    """Yield the :data:`PLACES` at which the object *value* has a text or a number."""
    for path in PLACES:
        text = lookup(value, path)
        if text is not MISSING and isinstance(text, str | int | float) and not isinstance(text, bool):
            yield path


def has_objects(value: object) -> bool:
    """Return whether *value* is an object, or a list with objects in it."""
    return isinstance(value, Mapping) or (isinstance(value, list | tuple) and any(map(has_objects, value)))


def unread_object(subject: Subject, output: object, field: str | None, metric: str) -> Failure | None:
    """Return the failure of *metric*, which reads text, for an *output* that is an object while *field* names no place in it.

    As text it would be JSON with keys and other fields, which could make a wrong answer pass. Return None for any other output.
    """
    if field is not None or not has_objects(output):
        return None
    names = ", ".join(str(key)[:_LONG] for key in list(output)[:_LISTED]) if isinstance(output, Mapping) else ""
    keys = names.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be recorded
    kind = f"an object with {keys or 'no keys'}" if isinstance(output, Mapping) else "a list of objects"
    place = next(text_places(output), "PATH")
    message = (
        f"the output of {subject.id!r} is {kind}, and {metric} reads text; name the place of the answer: field: {place}"
    )
    return Failure("missing_input", message)
