"""``dicast new``: a complete plugin to start from."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from string import Template

import click

from ..classes import frozen
from ..contract.kinds import snake_case
from ..contract.registry import Registry, commands
from ..values.errors import ConfigError
from .group import COMMANDS, EXTRAS
from .options import as_json
from .output import print_json

KINDS = (
    "metric",
    "judge",
    "preset",
    "model",
    "source",
    "reader",
    "task",
    "extractor",
    "aggregate",
    "comparison",
    "early_stop",
    "sink",
    "ledger",
    "sandbox",
    "executor",
    "command",
    "rubrics",
    "gate_clause",
)
"""Kinds of components, and other extensions: a command, a pack of rubrics, a key of the gate. A reader is a source of conversations."""

BACKENDS = ("hatch", "setuptools", "uv")

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_FILES = {
    "README.md": "README.md.tmpl",
    "src/${package}/__init__.py": "${kind}.py.tmpl",
    "src/${package}/py.typed": "py.typed.tmpl",
    "tests/test_${package}.py": "test_${kind}.py.tmpl",
    ".github/workflows/ci.yml": "ci.yml.tmpl",
    ".gitignore": "gitignore.tmpl",
}
_ENTRY_POINTS = {
    "command": ('"dicast.commands"', "${command}", "${package}:${name}"),
    "gate_clause": ('"dicast.gate_clauses"', "${name}", "${package}:${class_name}"),
    "rubrics": ('"dicast.rubrics"', "${rubric}", "${package}"),
}
"""Group, name and value of the entry point, for kinds that are no components."""
_COMPONENT = ("dicast", "${name}", "${package}")
_FORMATS = """
[project.entry-points."dicast.formats"]
${name} = "${package}"
"""
"""Second entry point of a reader, by which dicast detects its format."""
_NEEDS = {"metric": "", "rubrics": "", "command": '"click>=8.1", '}
"""Dependencies of kinds whose plugin does not need attrs."""
_USES = {
    "command": "Run it as `dicast ${command}`.",
    "gate_clause": "Pipelines use it as a key of the gate: `gate: {min_score: 0.5, ${name}: 0.02}`.",
    "rubrics": "Pipelines use a rubric by its id: `llm/judge: {model: grader, rubric: ${rubric}}`.",
}
_COMPONENT_USE = "Pipelines use it as `${name}/${name}`. `dicast plugins ${name}` prints its options."


@frozen
class NewPlugin:
    """A plugin to write: *name* names both the plugin and its component, *kind* is the kind of the component.

    *backend* builds its wheel: one of :data:`BACKENDS`.
    """

    kind: str
    name: str
    folder: Path
    backend: str = "hatch"

    @property
    def summary(self) -> str:
        """The kind of the plugin, its name, and the file with its code."""
        words = self._words()
        code = f"src/{words['package']}/__init__.py"
        if self.kind == "rubrics":
            return f"the rubric {words['rubric']}, in src/{words['package']}/{words['rubric']}.md"
        if self.kind in _ENTRY_POINTS:
            return f"the {self.kind.replace('_', ' ')} {words['entry_point']}, in {code}"
        return f"the {self.kind.replace('_', ' ')} {self.name}/{self.name}, in {code}"

    def write(self) -> list[Path]:
        """Write every file; return their paths below the folder.

        :raises ConfigError: when the folder exists or cannot be written.
        """
        contents = self._files()
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError as error:
            raise ConfigError(f"{self.folder} exists already; choose another name or --directory") from error
        except OSError as error:
            raise ConfigError(f"cannot create {self.folder}: {error.strerror}; choose another --directory") from error
        for path, text in contents.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-8")
        return list(contents)

    def _files(self) -> dict[Path, str]:
        """Return the text of every file by its path below the folder."""
        words, templates = self._words(), files(__package__) / "templates"
        sources: dict[str, tuple[str, ...]] = {
            "pyproject.toml": ("pyproject.toml.tmpl", f"build_{self.backend}.toml.tmpl")
        }
        sources |= {name: (template,) for name, template in _FILES.items()}
        if self.kind == "rubrics":
            sources["src/${package}/${rubric}.md"] = ("rubric.md.tmpl",)
        contents = {}
        for name, parts in sources.items():
            texts = [(templates / _fill(part, words)).read_text("utf-8") for part in parts]
            contents[Path(_fill(name, words))] = _fill("".join(texts), words)
        return contents

    def _words(self) -> dict[str, str]:
        """Return the values for the variables of the templates."""
        words = {
            "kind": self.kind,
            "a_kind": _with_article(self.kind),
            "name": self.name,
            "package": f"dicast_{self.name}",
            "distribution": self.folder.name,
            "class_name": "".join(word.capitalize() for word in self.name.split("_")),
            "command": _command(self.name),
            "rubric": f"{_command(self.name)}-v1",
            "data": ', "*.md", "*.yaml"' if self.kind == "rubrics" else "",
            "formats": _FORMATS if self.kind == "reader" else "",
            "needs": _NEEDS.get(self.kind, '"attrs>=24.2", '),
            "kernel": _kernel_range(),
        }
        group, name, value = _ENTRY_POINTS.get(self.kind, _COMPONENT)
        words |= {"group": group, "entry_point": _fill(name, words), "target": _fill(value, words)}
        words["formats"] = _fill(words["formats"], words)
        return {**words, "use": _fill(_USES.get(self.kind, _COMPONENT_USE), words)}


def _fill(template: str, words: Mapping[str, str]) -> str:
    return Template(template).substitute(words)


def _with_article(kind: str) -> str:
    """Return the kind in words, such as ``an early stop`` or ``rubrics``."""
    words = {"gate_clause": "key of the gate", "reader": "reader of conversations"}.get(kind, kind.replace("_", " "))
    return words if kind == "rubrics" else f"{'an' if words[0] in 'ae' else 'a'} {words}"


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder in which to create the plugin's folder; the current one by default.",
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="hatch",
    show_default=True,
    help="Build backend of the package.",
)
@as_json
def new(kind: str, name: str, directory: Path, backend: str, as_json: bool) -> None:
    """Write a plugin with one component of KIND, called NAME: code, tests, packaging."""
    _check_name(kind, name)
    plan = NewPlugin(kind, name, directory / f"dicast-{name.replace('_', '-')}", backend)
    written = plan.write()
    if as_json:
        print_json({"plugin": name, "path": str(plan.folder), "files": [str(path) for path in written]})
        return
    click.echo(f"Wrote {plan.folder}: {plan.summary}.\n\nNext:\n{_next_steps(plan)}")


def _next_steps(plan: NewPlugin) -> str:
    """Return the commands that install and test the plugin; they use uv in an environment without pip."""
    folder = plan.folder
    place = folder if folder.is_absolute() else f"./{folder}"  # without ./ installers look for a distribution
    pip, run = ("pip", "") if find_spec("pip") else ("uv pip", "uv run ")
    return (
        f"  {pip} install -e {quote(f'{place}[test]')}\n"
        f"  {run}pytest {quote(str(folder))}\n"
        f"  {run}dicast {f'{_command(plan.name)} --help' if plan.kind == 'command' else 'plugins --load'}"
    )


def _check_name(kind: str, name: str) -> None:
    """Refuse a name that no plugin may have, or that an installed plugin or command has.

    :raises ConfigError: with the reason and a valid name.
    """
    if not _NAME.fullmatch(name):
        proper = re.sub(r"_+", "_", re.sub(r"\W+", "_", snake_case(name), flags=re.ASCII)).strip("_0123456789")
        advice = f"; write {proper}" if _NAME.fullmatch(proper) else ""
        raise ConfigError(
            f"{name!r} is no valid name of a plugin: use lower-case words joined by '_', starting with a letter{advice}"
        )
    if keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a keyword of Python; use {name}_check, or the name of the judged quality")
    installed = Registry().scan().get(name)
    if installed is not None:
        raise ConfigError(f"{installed} is installed already; choose another name")
    command = _command(name)
    if kind == "command" and command in {*COMMANDS, *EXTRAS, *commands()}:
        raise ConfigError(
            f"the command 'dicast {command}' is installed already, or an extra of dicast; choose another name"
        )


def _command(name: str) -> str:
    return name.replace("_", "-")


def _kernel_range() -> str:
    """Return the versions of the kernel that a new plugin works with: up to the next breaking version."""
    from importlib.metadata import version

    major, minor = (int(part) for part in version("dicast-kernel").split(".")[:2])
    return f">={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"
