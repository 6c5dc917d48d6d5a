"""A single component without a pipeline around it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..contract.registry import Registry
from ..values.errors import ConfigError, Problem
from .builder import Builder
from .faults import Invalid
from .faults import Path as Address
from .read import dotted


def component(kind: str, written: str | Mapping[str, Mapping[str, object]]) -> Any:
    """Return the component that *written* describes, as in a pipeline file: ``NAME`` or ``{NAME: {options}}``. It is not opened.

    With this function a plugin uses a component of another plugin without importing it. Paths among the options are relative to the
    current folder.

    :param kind: the kind of the component: ``metric``, ``judge``, ``early_stop``, …
    :raises ConfigError: when there is no such component, or an option is invalid.
    """
    builder = Builder(Registry(), {}, _current_folder, {})
    try:
        return builder.component(written, (kind,)).live
    except Invalid as invalid:
        raise ConfigError(
            Problem(fault.message, path=dotted(fault.path) or None, value=fault.value, hint=fault.hint)
            for fault in invalid.faults
        ) from invalid


def _current_folder(path: Address) -> Path:
    return Path()
