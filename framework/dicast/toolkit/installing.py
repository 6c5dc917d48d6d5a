"""The command that installs a part of dicast, for the way in which this environment's dicast was installed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

import orjson

_EXTRA = re.compile(r"dicast\[([\w-]+)\]")


def how_to_install(*names: str) -> str:
    """Return the command that installs the extras *names* of dicast: ``pip install 'dicast[openai]'``.

    If dicast was installed from a clone, the command installs them from the clone: with uv if uv manages the environment, else with pip.
    The names of the extras then follow as a comment of the shell. In a job of the GitHub action, the text is the action's input.
    """
    pip, listed = installer(), ",".join(names)
    clone = _clone()
    if clone is None and os.environ.get("DICAST_ACTION"):
        others = [name.strip() for name in os.environ.get("DICAST_EXTRAS", "").split(",")]
        wanted = dict.fromkeys([name for name in others if name] + [*names])
        return f"extras: {','.join(wanted)}  # in the action's inputs, dicast[{listed}]"
    if clone is None:
        return f"{pip} install 'dicast[{listed}]'"
    if Path(sys.prefix) == clone / ".venv" and _metadata("INSTALLER").strip() == "uv":
        elsewhere = "" if Path.cwd().is_relative_to(clone) else f" --project {quote(str(clone))}"
        command = f"uv sync --inexact{''.join(f' --extra {name}' for name in names)}{elsewhere}"
    elif "all" in names:
        command = f"{pip} install {quote(str(clone))}/plugins/* {quote(str(clone))}/contrib/*"
    else:
        places = dict.fromkeys(place for name in names for place in _places(clone, name))
        command = f"{pip} install " + " ".join(map(quote, places))
    return f"{command}  # dicast[{listed}]"


def installer() -> str:
    """Return the installer of this environment: ``pip``, or ``uv pip`` where there is no pip."""
    return "pip" if find_spec("pip") else "uv pip"


def with_one_command(messages: Sequence[str]) -> tuple[list[str], str | None]:
    """Return *messages* without their install commands, and one command for all their extras.

    The messages are unchanged, and the command is None, if they install fewer than two extras.
    """
    named = [name for message in messages for name in _EXTRA.findall(message)]
    commands = {name: how_to_install(name) for name in dict.fromkeys(named)}
    missing = [name for name, command in commands.items() if any(command in message for message in messages)]
    if len(missing) < 2:
        return [*messages], None
    return [_without(message, [commands[name] for name in missing]) for message in messages], how_to_install(*missing)


def _without(message: str, commands: Iterable[str]) -> str:
    for command in commands:
        message = message.replace(f"; {command}", "").replace(f": {command}", "")
    return message


def extras() -> set[str]:
    """Return the extras of the installed dicast from its metadata; none if the kernel alone is installed."""
    try:
        return set(metadata.metadata("dicast").get_all("Provides-Extra") or ())
    except metadata.PackageNotFoundError:
        return set()


def _clone() -> Path | None:
    """Return the folder that dicast was installed from, if any."""
    origin = orjson.loads(_metadata("direct_url.json") or "{}")
    return Path(unquote(urlsplit(origin["url"]).path)) if "dir_info" in origin else None


def _metadata(name: str) -> str:
    """Return the text of the file *name* of dicast's metadata, which the installer wrote; empty if there is none."""
    try:
        return metadata.distribution("dicast").read_text(name) or ""
    except metadata.PackageNotFoundError:
        return ""


def _places(clone: Path, extra: str) -> Iterator[str]:
    """Return the folders of the distributions that *extra* adds, with their own extras."""
    for line in metadata.requires("dicast") or ():
        part = re.match(rf"dicast(?:-([\w-]+))?(?:\[([\w,-]+)\])?.*extra\s*==\s*['\"]{re.escape(extra)}['\"]", line)
        if part and part[1] is None:
            for other in part[2].split(","):
                yield from _places(clone, other)
        elif part:
            name = part[1].replace("-", "_")
            folders = [folder for folder in (clone / "plugins" / name, clone / "contrib" / name) if folder.is_dir()]
            yield from (f"{folder}[{part[2]}]" if part[2] else str(folder) for folder in folders)
