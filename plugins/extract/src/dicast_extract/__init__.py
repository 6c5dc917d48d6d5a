"""Reads values out of replies."""

from __future__ import annotations

from dicast import hookimpl

from .json_path import JsonPath
from .label import Label
from .regex import Regex


@hookimpl
def dicast_extractors() -> list[type]:
    """Return the extractors ``extract/json_path``, ``extract/label`` and ``extract/regex``."""
    return [JsonPath, Label, Regex]
