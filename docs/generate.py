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

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
NOTE = "<!-- Written by docs/generate.py from {}: edit those, then run it. -->\n"
WHERE = re.compile(r"\n[^\n]*\]\((?:\.\./)+docs/reference/\w+\.md\)[^\n]*\n*\Z")
"""Last line of a README, with the link to its page."""
ERROR = re.compile("(Error|Exception|Refused)$")
"""Names of classes whose subclasses are errors."""
ROLES = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


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
    yield ROOT / "docs" / "reference" / "members.md", members()
    yield ROOT / "docs" / "reference" / "toolkit.md", toolkit()
    yield ROOT / "docs" / "reference" / "python.md", python_api()


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
                members = re.findall(r"^:param (\w+\??): (.+)$", parameters, re.MULTILINE)
                kind = f"`user_controlled`{where.rstrip('.')}" if users else "`pseudonymous`"
                yield name, when, kind, {member: markdown(description) for member, description in members}


def members() -> str:
    """Return the page of optional members of components, from the docstrings of ``dicast.optional``."""
    kernel = ROOT / "framework" / "dicast"
    texts = [
        (kernel / f"{name}.py").read_text(encoding="utf-8")
        for name in ("optional", "optional_ledgers", "optional_records")
    ]
    lines = [
        "# Optional members",
        "",
        "Optional members of a component, in addition to the methods of its kind ([hooks](hooks.md)). `dicast.optional` has protocols for them, for type checkers:",
        "`HasEstimate` for `estimate`, and so on. A class need not inherit from them. A ledger may also keep leases (`dicast.Leasing`).",
        "",
        *table(("member", "of", "protocol", ""), sorted(member for text in texts for member in optional_members(text))),
    ]
    return NOTE.format("framework/dicast/optional.py") + "\n" + "\n".join(lines) + "\n"


def python_api() -> str:
    """Return the page of the package ``dicast``: each public name with the first sentence of its docstring, by kind."""
    home = ROOT / "framework" / "dicast" / "__init__.py"
    names: dict[str, list[tuple[str, str]]] = {"Functions": [], "Classes": [], "Errors": [], "Constants and types": []}
    for name in exported_names(home):
        kind, text = definition(home, name)
        first = markdown(" ".join(text.partition("\n\n")[0].split())).replace("|", "\\|")
        names[kind].append((f"`{name}`", first))
    lines = [
        "# Python API",
        "",
        "Import these names from `dicast`: `from dicast import Subject`. Building blocks for plugins are in the [toolkit](toolkit.md), optional members",
        "of components in [optional members](members.md). The docstring of each name has its fields, arguments and errors: `help(dicast.Subject)`.",
    ]
    for kind, rows_of_kind in names.items():
        lines += ["", f"## {kind}", "", *table(("name", ""), sorted(rows_of_kind, key=lambda row: row[0].lower()))]
    return NOTE.format("the docstrings of framework/dicast") + "\n" + "\n".join(lines) + "\n"


def exported_names(path: Path) -> list[str]:
    """Return the names in ``__all__`` of the module at *path*."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name("__all__")], value=ast.List(elements)):
                return [ast.literal_eval(element) for element in elements]
    return []


def definition(path: Path, name: str) -> tuple[str, str]:
    """Return the kind of *name* and its docstring, from the module at *path* or the module that this one imports it from."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    for node, following in pairwise([*module.body, ast.Pass()]):
        match node:
            case ast.ClassDef(name=defined) if defined == name:
                is_error = any(isinstance(base, ast.Name) and ERROR.search(base.id) for base in node.bases)
                return "Errors" if is_error else "Classes", ast.get_docstring(node) or ""
            case ast.FunctionDef(name=defined) | ast.AsyncFunctionDef(name=defined) if defined == name:
                if text := ast.get_docstring(node):  # overloads have none
                    return "Functions", text
            case ast.Assign(targets=[ast.Name(defined)]) | ast.AnnAssign(target=ast.Name(defined)) if defined == name:
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        return "Constants and types", text
                return "Constants and types", ""
    for node in ast.walk(module):
        if (
            isinstance(node, ast.ImportFrom)
            and node.level
            and any(alias.asname in (None, name) and name in (alias.name, alias.asname) for alias in node.names)
        ):
            source = next(alias.name for alias in node.names if name in (alias.name, alias.asname))
            target = path.parents[node.level - 1] / (node.module or "").replace(".", "/")
            return definition(target / "__init__.py" if target.is_dir() else target.with_suffix(".py"), source)
    raise LookupError(f"{path}: {name} is not defined here")


def toolkit() -> str:
    """Return the page of ``dicast.toolkit``: its public modules with their classes and functions, by their docstrings."""
    home = ROOT / "framework" / "dicast" / "toolkit"
    paths = sorted({*home.glob("[a-z]*.py"), *home.glob("[a-z]*/__init__.py")})
    lines = [
        "# Toolkit",
        "",
        "`dicast.toolkit` has building blocks for plugins, one public module each. Import a module by its name:",
        "`from dicast.toolkit.conversations import Conversation`. The types of options and results are in the modules' docstrings.",
    ]
    for path in paths:
        name = path.parent.name if path.stem == "__init__" else path.stem
        module = ast.parse(path.read_text(encoding="utf-8"))
        text = markdown((ast.get_docstring(module) or "").partition("::\n")[0].strip().rstrip(":."))
        lines += ["", f"## `dicast.toolkit.{name}`", "", f"{text}."]
        names = [
            (
                f"`{node.name}`",
                markdown(" ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())).replace("|", "\\|"),
            )
            for node in toolkit_names(path, module)
        ]
        lines += ["", *table(("name", ""), names)] if names else []
    return NOTE.format("the docstrings of framework/dicast/toolkit") + "\n" + "\n".join(lines) + "\n"


def toolkit_names(path: Path, module: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """Yield the public classes and functions of a module, also re-exported ones of other modules of the framework."""
    for node in module.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node
        elif isinstance(node, ast.ImportFrom) and node.level and "__all__" in path.read_text(encoding="utf-8"):
            home = path.parents[node.level - 1]
            source = (home / (node.module or "").replace(".", "/")).with_suffix(".py")
            names = {alias.name for alias in node.names}
            inner = ast.parse(source.read_text(encoding="utf-8")) if source.exists() else module
            yield from (
                node for node in inner.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in names
            )


def optional_members(source: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield each member in the module *source*: signature, kinds of components, protocol, and description."""
    for protocol in ast.parse(source).body:
        if isinstance(protocol, ast.ClassDef):
            kinds = (ast.get_docstring(protocol) or "").rstrip(".").lower()
            for member in protocol.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    parameters = [*member.args.posonlyargs, *member.args.args][1:]
                    arguments = ", ".join(parameter.arg for parameter in parameters)
                    signature = member.name if member.decorator_list else f"{member.name}({arguments})"
                    description = markdown(ast.get_docstring(member) or "").replace("|", "\\|")
                    yield f"`{signature}`", kinds, f"`{protocol.name}`", description


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
            markdown(option["description"]).replace("|", "\\|"),
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


def markdown(text: str) -> str:
    """Return *text*, a docstring, as Markdown."""
    return ROLES.sub(r"`\1`", text).replace("``", "`")


def table(head: Sequence[str], body: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in (head, ["---"] * len(head), *body)]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
