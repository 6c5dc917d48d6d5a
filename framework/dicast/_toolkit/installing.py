"""The command that adds a part of dicast to this environment, whichever way dicast came into it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

import orjson


def how_to_install(extra: str) -> str:
    """The command that installs *extra* of dicast: ``pip install 'dicast[openai]'``.

    In a clone it is the command that takes the extra from there, of uv where uv keeps the environment, else of pip, with
    the extra's name behind it as a comment of the shell.
    """
    pip = "pip" if find_spec("pip") else "uv pip"
    clone = _clone()
    if clone is None:
        return f"{pip} install 'dicast[{extra}]'"
    if Path(sys.prefix) == clone / ".venv" and _said("INSTALLER").strip() == "uv":
        elsewhere = "" if Path.cwd().is_relative_to(clone) else f" --project {quote(str(clone))}"
        command = f"uv sync --inexact --extra {extra}{elsewhere}"
    elif extra == "all":
        command = f"{pip} install {quote(str(clone))}/plugins/* {quote(str(clone))}/contrib/*"
    else:
        command = f"{pip} install " + " ".join(quote(place) for place in _places(clone, extra))
    return f"{command}  # dicast[{extra}]"


def extras() -> set[str]:
    """The extras of the installed dicast, as its metadata names them; none where the kernel alone is installed."""
    try:
        return set(metadata.metadata("dicast").get_all("Provides-Extra") or ())
    except metadata.PackageNotFoundError:
        return set()


def _clone() -> Path | None:
    """The folder that dicast was installed from, if it was one."""
    origin = orjson.loads(_said("direct_url.json") or "{}")
    return Path(unquote(urlsplit(origin["url"]).path)) if "dir_info" in origin else None


def _said(name: str) -> str:
    """What the installer wrote into the file *name* of dicast's metadata; nothing where there is none."""
    try:
        return metadata.distribution("dicast").read_text(name) or ""
    except metadata.PackageNotFoundError:
        return ""


def _places(clone: Path, extra: str) -> Iterator[str]:
    """The folders of the distributions that *extra* adds, with their own extras."""
    for line in metadata.requires("dicast") or ():
        part = re.match(rf"dicast(?:-([\w-]+))?(?:\[([\w,-]+)\])?.*extra\s*==\s*['\"]{re.escape(extra)}['\"]", line)
        if part and part[1] is None:
            for other in part[2].split(","):
                yield from _places(clone, other)
        elif part:
            name = part[1].replace("-", "_")
            found = [folder for folder in (clone / "plugins" / name, clone / "contrib" / name) if folder.is_dir()]
            yield from (f"{folder}[{part[2]}]" if part[2] else str(folder) for folder in found)
