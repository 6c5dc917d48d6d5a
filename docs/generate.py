"""Script that writes docs/reference: a page for each folder of plugins, from its README.md and ``dicast plugins --load --json``.

    uv run python docs/generate.py            # after a README, a docstring, an option or a default has changed
    uv run python docs/generate.py --check    # changes nothing; exit code 1 and the names of outdated pages

So the README is the only place for a plugin's purpose and use, and the class the only place for the text of an option.
"""  # noqa: INP001  # a script

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from author_reference import markdown, table, write_authors, write_toolkit

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
NOTE = "<!-- Written by docs/generate.py from {}: edit those, then run it. -->\n"
WHERE = re.compile(r"\n[^\n]*\]\((?:\.\./)+docs/reference/\w+\.md\)[^\n]*\n*\Z")
"""Last line of a README, with the link to its page."""


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or compare them with ``--check``, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is not up to date")
    check = parser.parse_args(arguments).check
    pages = dict(write_pages(load_plugins()))
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    mine = [path for path in PAGES.glob("*.md") if path.read_text(encoding="utf-8").startswith(NOTE[:30])]
    gone = sorted(set(mine) - set(pages))
    if not check:
        PAGES.mkdir(exist_ok=True)
        for path in stale:
            path.write_text(pages[path], encoding="utf-8")
        for path in gone:
            path.unlink()
    for path in sorted([*stale, *gone]):
        sys.stdout.write(f"{path.relative_to(ROOT)} {'is not up to date' if check else 'changed'}\n")
    if check and (stale or gone):
        sys.stdout.write("to fix it: uv run python docs/generate.py\n")
    return int(check and bool(stale or gone))


def load_plugins() -> list[Mapping[str, Any]]:
    """Return the plugins of this workspace with their components, by name; ``page`` is the name of a plugin's page."""
    command = [sys.executable, "-m", "dicast", "plugins", "--load", "--json"]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603  # our own
    plugins = {plugin["name"]: plugin for plugin in json.loads(result.stdout)["plugins"]}
    pages = {"dicast": "dicast"} | {
        name: path.parent.name
        for path in ROOT.glob("[pc]*/*/pyproject.toml")
        for name in tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"]["dicast"]
    }
    bad = [
        f"{name}: {plugins[name]['error'] if name in plugins else 'not installed'}"
        for name in sorted(pages)
        if name not in plugins or plugins[name]["status"] != "ok"
    ]
    if bad:
        raise SystemExit("\n".join([*bad, "every plugin has to load: uv sync"]))
    return [{**plugins[name], "page": pages[name]} for name in sorted(pages)]


def write_pages(plugins: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Path, str]]:
    """Yield each page's path with its text."""
    for name in dict.fromkeys(plugin["page"] for plugin in plugins):
        yield PAGES / f"{name}.md", page(name, [plugin for plugin in plugins if plugin["page"] == name])
    yield PAGES / "index.md", index(plugins)
    yield ROOT / "docs" / "reference" / "events.md", events()
    for name, text in (("authors", write_authors()), ("toolkit", write_toolkit())):
        yield PAGES / f"{name}.md", NOTE.format("the docstrings of framework/dicast") + "\n" + text


def index(plugins: Sequence[Mapping[str, Any]]) -> str:
    """Return the page with the tables of all components."""
    lines = [
        "# All components",
        "",
        "All components of this repository's plugins. The cost is the highest cost of a call, if it is known without options:",
        "`as its model` is the cost of the component in the option `model`. `dicast plugins NAME` prints the same for an installed plugin.",
    ]
    for kind in dict.fromkeys(component["kind"] for plugin in plugins for component in plugin["components"]):
        lines += ["", f"## {plural(kind)}", "", *table(("name", "tier", "cost", ""), rows(plugins, kind))]
    return NOTE.format("the plugins' docstrings") + "\n" + "\n".join(lines) + "\n"


def plural(kind: str) -> str:
    """Return the heading for the components of *kind*, such as ``Early stops`` for ``early_stop``."""
    words = kind.replace("_", " ").capitalize()
    return f"{words}es" if words.endswith("x") else f"{words}s"


def events() -> str:
    """Return the page of event types with their payloads, from the docstrings of the kernel's ``events``."""
    path = ROOT / "framework" / "dicast" / "_kernel" / "events.py"
    types = list(event_types(path.read_text(encoding="utf-8")))
    lines = [
        "# Events",
        "",
        "Every action of a run is an event: the [ledger](../concepts/ledger.md) records it first, then sinks and the report get it. To print the",
        "events of a run: `dicast ledger export --run last`.",
        "",
        "Events of a trace are recorded too, as `trace.TYPE` if the type begins like a type of this page. An event is `user_controlled` if its payload",
        "contains text of a user, else `pseudonymous`. A member with a question mark is absent if it has no value.",
        "",
        *table(
            ("type", "when", "sensitivity"),
            [(f"[`{name}`](#{anchor(name)})", when, kind) for name, when, kind, _ in types],
        ),
    ]
    for name, when, _, members in types:
        lines += ["", f"## `{name}`", "", when]
        lines += (
            ["", *table(("member", ""), [(f"`{member}`", text) for member, text in members.items()])] if members else []
        )
    return NOTE.format("framework/dicast/_kernel/events.py") + "\n" + "\n".join(lines) + "\n"


def event_types(source: str) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Yield each type in the module *source*: name, time of recording, sensitivity, and the members of its payload."""
    body = ast.parse(source).body
    for statement, docstring in pairwise(body):
        match statement, docstring:
            case ast.Assign(value=ast.Constant(value=str(name))), ast.Expr(value=ast.Constant(value=str(text))):
                when, _, parameters = text.partition("\n\n")
                when, users, where = markdown(" ".join(when.split())).partition(" User controlled")
                joined = re.sub(r"\n +", " ", parameters)
                members = re.findall(r"^:param (\w+\??): (.+)$", joined, re.MULTILINE)
                kind = f"`user_controlled`{where.rstrip('.')}" if users else "`pseudonymous`"
                yield name, when, kind, {member: markdown(description) for member, description in members}


def rows(plugins: Sequence[Mapping[str, Any]], kind: str) -> Iterator[tuple[str, ...]]:
    """Yield a row of the table for each component of *kind*."""
    for plugin in plugins:
        for component in plugin["components"]:
            if component["kind"] == kind:
                link = f"[`{component['name']}`]({plugin['page']}.md#{anchor(heading(component))})"
                yield link, component["tier"] or "", component["cost"], markdown(component["summary"])


def page(name: str, plugins: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of the folder *name*: its README, the command that installs it, and the options of the components of *plugins*."""
    folder = folder_of(name)
    title, _, text = WHERE.sub("\n", (folder / "README.md").read_text(encoding="utf-8")).partition("\n")
    text = re.sub(r"\]\(\.\./\.\./docs/([^)]+)\)", r"](../\1)", text)
    text = re.sub(r"\]\(\.\./(\w+)/README\.md\)", r"](\1.md)", text)
    owner = "the plugin's" if len(plugins) == 1 else "the plugins'"
    sources = f"{(folder / 'README.md').relative_to(ROOT)} and {owner} docstrings"
    parts = [NOTE.format(sources), f"{title}\n", f"{installed(folder)}\n", f"{text.strip()}\n"]
    parts += [section(component) for plugin in plugins for component in plugin["components"]]
    return "\n".join(parts)


def folder_of(name: str) -> Path:
    """Return the folder *name*, which has the README and the metadata of its plugins."""
    (folder,) = (
        [ROOT / "framework"] if name == "dicast" else (path.parent for path in ROOT.glob(f"[pc]*/{name}/README.md"))
    )
    return folder


def installed(folder: Path) -> str:
    """Return a sentence with the command that installs the distribution in *folder*, and one with the commands that it adds."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        name
        for name, needs in root["optional-dependencies"].items()
        if any(re.match(rf"{project['name']}>", need) for need in needs)
    ]
    if any(need.startswith(f"{project['name']}>") for need in root["dependencies"]):
        extras = []
    ways = " or ".join(f"`uv sync --inexact --extra {name}`" for name in extras)
    sentence = f"An extra: {ways}." if extras else "Part of a plain install."
    commands = [f"`dicast {name}`" for name in project.get("entry-points", {}).get("dicast.commands", {})]
    return sentence + (
        f" It adds {' and '.join(filter(None, [', '.join(commands[:-1]), commands[-1]]))}." if commands else ""
    )


def section(component: Mapping[str, Any]) -> str:
    """Return the section of a component with its options."""
    about = ". ".join(filter(None, (component["tier"] and f"Tier: {component['tier']}", f"Cost: {component['cost']}")))
    paragraphs = [part for part in component["docstring"].split("\n\n") if not part.startswith(":")]
    lines = [f"## {heading(component)}", "", "\n\n".join(map(markdown, paragraphs)), "", f"{about}."]
    options = [
        (
            f"`{name}`",
            type_text(option),
            default(name, option, component),
            markdown(option["description"]),
        )
        for name, option in component["options"].items()
    ]
    return "\n".join(
        [
            *lines,
            *(["", *table(("option", "type", "default", ""), options)] if options else [" It has no options."]),
            "",
        ]
    )


def heading(component: Mapping[str, Any]) -> str:
    """Return the component's name and kind, because a source and a sink may share a name."""
    return f"`{component['name']}`: {component['kind']}"


def anchor(text: str) -> str:
    """Return the anchor of the heading *text*."""
    return re.sub(r"[^\w -]", "", text).lower().replace(" ", "-")


def default(name: str, option: Mapping[str, Any], component: Mapping[str, Any]) -> str:
    """Return the option's default in YAML, ``required`` or ``none``."""
    if name in component["required"]:
        return "required"
    return f"`{json.dumps(option['default'], ensure_ascii=False)}`" if "default" in option else "none"


def type_text(schema: Mapping[str, Any]) -> str:
    """Return the type of an option in words, from its JSON Schema, without null, which means an absent option."""
    if "anyOf" in schema:
        kinds = dict.fromkeys(map(type_text, schema["anyOf"]))
        return " or ".join(kind for kind in kinds if kind)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {type_text(schema['items'])}"
    if schema.get("type") == "object":
        return object_text(schema)
    kinds = schema.get("type", "anything")
    return " or ".join(kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null")


def object_text(schema: Mapping[str, Any]) -> str:
    """Return the words for a mapping: its keys, or the type of its values."""
    if schema.get("properties"):
        return f"`{{{', '.join(schema['properties'])}}}`"
    values = schema.get("additionalProperties")
    return f"mapping to {type_text(values)}" if values else "mapping"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
