"""Positions of values in a rubric's text."""

from __future__ import annotations

import re

from dicast import ConfigError
from dicast.toolkit import yaml


def place_of(text: str, path: str, *, key: bool = False) -> tuple[int, int] | None:
    """Return line and column, from 1, of the value at *path* (``weights.tool_failed``, ``confidence[0].value``) in YAML.

    With *key* it is the place of the key. Where a key is missing it is the place of the mapping around it; None where *text* is
    not YAML.
    """
    try:
        node = yaml.read_yaml(text, "rubric", [])
    except ConfigError:  # a rubric in Markdown, which has no single place for a value
        return None
    if node.value is None:
        return None
    place = node.place
    for step in filter(None, re.split(r"[.\[\]]", path)):
        address = int(step) if isinstance(node.value, list) and step.isdecimal() else step
        child = node.find((address,))
        if child is node:
            break
        place = child.key if key and child.key else child.place
        node = child
    return None if place.line is None or place.column is None else (place.line, place.column)
