"""The places that an extractor reads, and writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dicast import ConfigError, Record, responses

_NAME = re.compile(r"[a-z][a-z0-9_]*")
SCORES = "scores"


def _scores_of(extractor: Any) -> str:
    """Return the place that statistics read: the scores of all criteria, or the score of the one criterion."""
    return SCORES if extractor.criterion is None else f"{SCORES}.{extractor.criterion}"


scores_of: Any = attrs.Factory(_scores_of, takes_self=True)
"""The default of ``into``."""


def check_into(extractor: Any, attribute: attrs.Attribute[str], into: str) -> None:
    """Check, as an attrs validator, that *into* is a dotted path of names in snake case; one may be the criterion's name.

    :raises ConfigError: if it is not.
    """
    for name in into.split("."):
        if not _NAME.fullmatch(name) and (not name or name != extractor.criterion):
            raise ConfigError(f"into is a dotted path of names in snake case, such as scores.clarity: {name!r} is none")


def extracted(
    record: Record, into: str, criterion: str | None, read: Callable[[object], object]
) -> Mapping[str, object]:
    """Return the result of *read* on the content of the *criterion*, or of each criterion, at the place *into*. A missing content is None."""
    replies = responses(record)
    if criterion is None:
        return _nested(into, {name: read(response.get("content")) for name, response in replies.items()})
    return _nested(into, read(replies.get(criterion, {}).get("content")))


def _nested(path: str, value: object) -> Mapping[str, object]:
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, Mapping)  # a path has a name at least
    return value
