"""Where an extractor reads, and where it writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dicast import ConfigError, Record, responses

_NAME = re.compile(r"[a-z][a-z0-9_]*")
SCORES = "scores"


def _scores_of(extractor: Any) -> str:
    """Where statistics read: the scores of all criteria, or that of the one criterion."""
    return SCORES if extractor.criterion is None else f"{SCORES}.{extractor.criterion}"


scores_of: Any = attrs.Factory(_scores_of, takes_self=True)
"""The default of ``into``."""


def check_into(extractor: Any, attribute: attrs.Attribute[str], into: str) -> None:
    """An attrs validator: *into* is a dotted path of names in snake case; one may be the criterion's.

    :raises ConfigError: when it is not.
    """
    for name in into.split("."):
        if not _NAME.fullmatch(name) and (not name or name != extractor.criterion):
            raise ConfigError(f"into is a dotted path of names in snake case, such as scores.clarity: {name!r} is none")


def extracted(
    record: Record, into: str, criterion: str | None, read: Callable[[object], object]
) -> Mapping[str, object]:
    """What *read* makes of the content of the *criterion*, or of each, at the place *into*; None where there is nothing."""
    found = responses(record)
    if criterion is None:
        return _nested(into, {name: read(response.get("content")) for name, response in found.items()})
    return _nested(into, read(found.get(criterion, {}).get("content")))


def _nested(path: str, value: object) -> Mapping[str, object]:
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, Mapping)  # a path has a name at least
    return value
