"""Reads values out of replies."""

from __future__ import annotations

from dicast import hookimpl

from .json_path import JsonPath
from .label import Label
from .regex import Regex


@hookimpl
def dicast_extractors() -> list[type]:
    """Offer what this plugin has."""
    return [JsonPath, Label, Regex]
