"""Places in JSON values, and the places that a comparison leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dicast import ConfigError

ANY = "*"
"""In a path that is left out: any key, any index."""

Path = tuple[Any, object] | None
"""The path of the object or list that a value is in, and its key or index there; None for the whole value."""

Branch = Mapping[str, Any]
"""The next steps of the paths to leave out; an empty key marks the end of a path."""

Branches = tuple[Branch, ...]

_END = ""
_LONGEST = 200


def pointer(path: Path) -> str:
    """Return *path* as a JSON pointer (RFC 6901), of a very long path both ends. Characters outside of UTF-8 are escaped."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(str(step).replace("~", "~0").replace("/", "~1"))
    text = "".join(f"/{step}" for step in reversed(steps))
    shortened = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
    return shortened.encode(errors="backslashreplace").decode()


def grow(paths: Iterable[str]) -> Branches:
    """Return the dotted paths and JSON pointers *paths* as branches of one tree; no branches without paths.

    :raises ConfigError: for a path without steps.
    """
    tree: dict[str, Any] = {}
    for path in paths:
        if not path.strip("/."):
            raise ConfigError(f"ignore has the path {path!r}, which is the whole value; write a.b.0, /a/b/0 or a.*.b")
        branch = tree
        for step in _steps(path):
            branch = branch.setdefault(f"/{step}", {})
        branch[_END] = True
    return (tree,) if tree else ()


def follow(branches: Branches, step: object) -> Branches:
    """Return the rest of *branches* below *step*."""
    return tuple(branch[key] for branch in branches for key in dict.fromkeys((f"/{step}", f"/{ANY}")) if key in branch)


def ends(branches: Branches) -> bool:
    """Return True if one of the paths ends here, so that this value is left out."""
    return any(_END in branch for branch in branches)


def _steps(path: str) -> list[str]:
    if not path.startswith("/"):
        return path.split(".")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]
