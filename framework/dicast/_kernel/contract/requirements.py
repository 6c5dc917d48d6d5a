"""Requirements of an installed plugin on dicast that the installed dicast does not meet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from itertools import zip_longest
from operator import eq, ge, gt, le, lt, ne

from ...toolkit.installing import installer
from ..values.errors import PluginError

Release = tuple[int, ...]

_REQUIREMENT = re.compile(
    r"(?P<name>dicast(?:[-_.][a-z0-9]+)*)\s*(?:\[[^]]*\])?\s*\(?(?P<limits>[^;)]*)\)?\s*(?P<marker>;.*)?", re.IGNORECASE
)
_LIMIT = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?\S*\s*")
_OPERATORS: Mapping[str, Callable[[Release, Release], bool]] = {
    "==": eq,
    "!=": ne,
    "<=": le,
    ">=": ge,
    "<": lt,
    ">": gt,
}


def refuse_conflicts(owner: str, distribution: str) -> None:
    """Refuse *owner*, a part of *distribution*, if the installed dicast is not a version that the distribution requires.

    :raises PluginError: with every conflict, and the command that resolves it.
    """
    if conflicts := version_conflicts(distribution):
        raise PluginError(f"{owner}: {'; '.join(conflicts)}")


def version_conflicts(distribution: str) -> list[str]:
    """Return each requirement of *distribution* on a part of dicast that the installed version does not meet, with the fix.

    Release numbers alone are compared. A requirement with a marker, or on a missing package, is left to the installer.
    """
    try:
        lines = _requirements(metadata.distribution(distribution))
    except Exception:  # metadata of any age and state: the list of plugins names a distribution that cannot be read
        return []
    return [*_conflicts(lines)]


def head_fields(distribution: metadata.Distribution) -> list[tuple[str, str]]:
    """Return the fields of the metadata of *distribution*, without its long description, which takes five times as long to read."""
    head = (distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or "").partition("\n\n")[0]
    return [(name, value.strip()) for name, _, value in (line.partition(":") for line in head.splitlines())]


def _requirements(distribution: metadata.Distribution) -> list[str]:
    lines = [value for name, value in head_fields(distribution) if name == "Requires-Dist"]
    return lines or distribution.requires or []  # eggs have their requirements in a file of its own


def _conflicts(lines: list[str]) -> Iterator[str]:
    for line in lines:
        match = _REQUIREMENT.fullmatch(line)
        if match is None or match["marker"]:
            continue
        name, limits = match["name"], match["limits"].replace(" ", "")
        version = _installed_version(name)
        if version is not None and not all(_meets(version, limit) for limit in limits.split(",") if limit):
            fix = f"{installer()} install '{name}{limits}', or another version of the plugin"
            yield f"it requires {name}{limits}, and {version} is installed; {fix}"


def _installed_version(name: str) -> str | None:
    try:
        return dict(head_fields(metadata.distribution(name))).get("Version")
    except metadata.PackageNotFoundError:
        return None


def _meets(version: str, limit: str) -> bool:
    """Return whether *version* meets *limit*, such as ``>=0.1``; a limit of another form is met."""
    match = _LIMIT.fullmatch(limit)
    if match is None:
        return True
    operator, bound, is_prefix = match[1], _release(match[2]), match[3] is not None
    release = _release(version)
    if operator == "~=":
        return _padded(ge, release, bound) and release[: len(bound) - 1] == bound[:-1]
    return _padded(_OPERATORS[operator], release[: len(bound)] if is_prefix else release, bound)


def _release(version: str) -> Release:
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def _padded(compare: Callable[[Release, Release], bool], left: Release, right: Release) -> bool:
    pairs = [*zip_longest(left, right, fillvalue=0)]
    return compare(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))
