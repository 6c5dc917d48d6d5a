"""Stands for the candidate's module where tests are only listed: it has whatever they ask of it."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return MagicMock(name=name)
