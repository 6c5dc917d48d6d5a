"""Guards against writing over a file that is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .._kernel.values.errors import ConfigError


def is_same_file(first: Path, other: Path) -> bool:
    """Return whether both paths lead to one file, links included; neither has to exist."""
    if os.path.realpath(first) == os.path.realpath(other):  # Path.resolve refuses links in a circle
        return True
    try:
        return first.is_file() and first.samefile(other)
    except OSError:  # one of them does not exist, so that no hard link joins them
        return False


def refuse_overwrite(output: Path | None, inputs: Mapping[str, Path | str | None] | Iterable[Path | str]) -> None:
    """Refuse to write *output* over one of *inputs*, the files that the command reads: paths, or paths by option name.

    Symbolic and hard links are followed. None means that there is no file.

    :raises ConfigError: naming the output, and the input that it would overwrite.
    """
    named = inputs if isinstance(inputs, Mapping) else {str(path): path for path in inputs}
    for name, path in named.items():
        if output is not None and path is not None and is_same_file(output, Path(path)):
            given_name = f" as {name}" if name != str(path) else ""
            raise ConfigError(f"{output}: the command reads this file{given_name}. Name another file to write.")
