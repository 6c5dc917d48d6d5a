"""The path of a ledger file, as text of ``--ledger`` and ``$DICAST_LEDGER``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson

from ..values import Secret

_PATH = re.compile(r"(?!\s*\{|[a-z][a-z0-9+.-]*://|[a-z][a-z0-9_]*/[a-z][a-z0-9_]*:\s)")
"""The beginning of a path; a URL or a component begins in another way."""

FILE = "ledger/sqlite"
"""The component for a file."""

LEDGER_PATH = Path(".dicast") / "ledger.db"
"""Default path, relative to the current folder."""


def ledger_place(text: str) -> Path | str:
    """Return the path in *text*, or *text* itself if it is a URL or a component."""
    return Path(text) if _PATH.match(text) else text


def without_password(place: Path | str) -> str:
    """Return *place* for a command that is printed, without the user, the password and the query of a URL."""
    return (
        str(place) if isinstance(place, Path) else re.sub(r"(?<=//)[^/@]*@", "USER:PASSWORD@", place).partition("?")[0]
    )


def printed_place(name: str, component: Any) -> str:
    """Return the ledger *component*, called *name*, as text of ``--ledger`` for a command that is printed: its URL, or the component.

    A secret is ``***``. Options with their defaults are left out.
    """
    options = {
        field.name: getattr(component, field.name)
        for field in (attrs.fields(type(component)) if attrs.has(type(component)) else ())
        if field.init and getattr(component, field.name) != field.default
    }
    url = options.get("url")
    if isinstance(url, str):
        options["url"] = printed = without_password(url)
        if len(options) == 1 and url.partition(":")[0] in getattr(component, "schemes", ()):
            return printed
    return orjson.dumps({name: options}, default=_plain).decode()


def ledger_option(ledger: Mapping[str, Any] | None) -> str:
    """Return the option for a command that reads the *ledger* of a run's document; empty for the default ledger of this folder."""
    path = (ledger or {}).get("path")
    if path is None:
        place = (ledger or {}).get("place")
        return "" if place is None else f" --ledger {shlex.quote(place)}"
    if Path(path) in (LEDGER_PATH, LEDGER_PATH.absolute()):
        return ""
    inside = Path(path).is_relative_to(Path.cwd())
    return f" --ledger {shlex.quote(str(Path(path).relative_to(Path.cwd())) if inside else str(path))}"


def _plain(value: object) -> str:
    return "***" if isinstance(value, Secret) else str(value)
