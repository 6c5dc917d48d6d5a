"""``dicast new``: a complete plugin to start from."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from string import Template

import click

from ..classes import frozen
from ..contract.kinds import snake_case
from ..contract.registry import Registry
from ..values.errors import ConfigError
from .options import as_json
from .output import print_json

KINDS = ("metric", "judge", "sink", "source", "task", "extractor", "aggregate", "comparison", "early_stop")

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_FILES = {
    "pyproject.toml": "pyproject.toml.tmpl",
    "README.md": "README.md.tmpl",
    "src/${package}/__init__.py": "${kind}.py.tmpl",
    "src/${package}/py.typed": "py.typed.tmpl",
    "tests/test_${package}.py": "test_${kind}.py.tmpl",
    ".github/workflows/ci.yml": "ci.yml.tmpl",
    ".gitignore": "gitignore.tmpl",
}


@frozen
class NewPlugin:
    """A plugin to write: *name* names both the plugin and its component, *kind* is the kind of the component."""

    kind: str
    name: str
    folder: Path

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
        contents = {}
        for name, template in _FILES.items():
            path, source = (Template(template_text).substitute(words) for template_text in (name, template))
            contents[Path(path)] = Template((templates / source).read_text("utf-8")).substitute(words)
        return contents

    def _words(self) -> dict[str, str]:
        """Return the values for the variables of the templates."""
        return {
            "kind": self.kind,
            "a_kind": f"{'an' if self.kind[0] in 'ae' else 'a'} {self.kind.replace('_', ' ')}",
            "name": self.name,
            "package": f"dicast_{self.name}",
            "distribution": self.folder.name,
            "class_name": "".join(word.capitalize() for word in self.name.split("_")),
            "kernel": _kernel_range(),
        }


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder in which to create the plugin's folder; the current one by default.",
)
@as_json
def new(kind: str, name: str, directory: Path, as_json: bool) -> None:
    """Write a plugin with one component of KIND, called NAME: code, tests, packaging."""
    _check_name(name)
    plan = NewPlugin(kind, name, directory / f"dicast-{name.replace('_', '-')}")
    written = plan.write()
    if as_json:
        print_json({"plugin": name, "path": str(plan.folder), "files": [str(path) for path in written]})
        return
    click.echo(
        f"Wrote {plan.folder}: the {kind.replace('_', ' ')} {name}/{name}, in {written[2]}.\n\nNext:\n"
        + _next_steps(plan.folder)
    )


def _next_steps(folder: Path) -> str:
    """Return the commands that install and test the plugin; they use uv in an environment without pip."""
    place = folder if folder.is_absolute() else f"./{folder}"  # without ./ installers look for a distribution
    pip, run = ("pip", "") if find_spec("pip") else ("uv pip", "uv run ")
    return (
        f"  {pip} install -e {quote(f'{place}[test]')}\n"
        f"  {run}pytest {quote(str(folder))}\n"
        f"  {run}dicast plugins --load"
    )


def _check_name(name: str) -> None:
    """Refuse a name that no plugin may have, or that an installed plugin has.

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


def _kernel_range() -> str:
    """Return the versions of the kernel that a new plugin works with: up to the next breaking version."""
    from importlib.metadata import version

    major, minor = (int(part) for part in version("dicast-kernel").split(".")[:2])
    return f">={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"
