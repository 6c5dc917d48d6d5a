"""Pages name the extras of their commands, because a clone has no extras before ``uv sync`` installs them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dicast._kernel.cli import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *(
        page
        for folder in ("start", "how-to", "concepts", "reference")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = PROJECT["optional-dependencies"]
PLAIN = set(re.findall(r"dicast-([\w-]+)", " ".join(PROJECT["dependencies"]))) | {
    extra for extra, needs in OPTIONAL.items() if set(needs) <= set(PROJECT["dependencies"])
}
"""Plugins of a plain install."""
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SYNC = re.compile(r"uv\s+sync((?:\s+--(?:inexact|extra\s+[\w-]+))+)")
COMPONENT = re.compile(r"(?<![\w/.])([a-z_]+)/[a-z_]+(?![\w/.-])")


def plugins_of(extra: str) -> set[str]:
    """Return the plugins that *extra* installs, also by other extras."""
    text = " ".join(OPTIONAL[extra])
    inner = ",".join(re.findall(r"dicast\[([\w,-]+)\]", text))
    return {extra, *re.findall(r"dicast-([\w-]+)", text)} | {p for e in inner.split(",") if e for p in plugins_of(e)}


def needed(command: str, files: dict[str, str]) -> set[str]:
    """Return the plugins outside a plain install that the shell lines *command* use, in the pipelines *files* or of the repository."""
    names = {EXTRAS[name] for name in re.findall(r"^\$ dicast (\w+)", command, re.MULTILINE) if name in EXTRAS}
    for name in re.findall(r"[\w./-]+\.ya?ml", command):
        text = files.get(name) or ((ROOT / name).read_text() if (ROOT / name).is_file() else "")
        text = re.sub(r"#.*", "", text)
        names |= {plugin.replace("_", "-") for plugin in COMPONENT.findall(text)} & set(OPTIONAL)
    return names - PLAIN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_extras_are_named_above_the_first_command_that_needs_them(page):
    text, files, missing = page.read_text(), dict[str, str](), dict[str, int]()
    for block in BLOCK.finditer(text):
        if (title := re.search(r'title="([^"]+)"', block[2])) is not None:
            files[title[1]] = block[3]
        if block[1] == "console":
            named = {
                extra for sync in SYNC.findall(text[: block.start()]) for extra in re.findall(r"extra\s+([\w-]+)", sync)
            }
            installed = {plugin for extra in named for plugin in plugins_of(extra)}
            for plugin in needed(block[3], files) - installed:
                missing.setdefault(plugin, text[: block.start()].count("\n") + 1)
    assert not missing, (
        f"write `uv sync --inexact --extra {' --extra '.join(sorted(missing))}` above line {min(missing.values())}"
    )
