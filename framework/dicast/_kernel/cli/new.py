"""``dicast new``: a whole plugin to start from."""

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
    """A plugin to be written: *name* is the plugin's and the component's, *kind* the component's."""

    kind: str
    name: str
    folder: Path

    def write(self) -> list[Path]:
        """Write every file; return their paths below the folder.

        :raises ConfigError: when the folder exists or cannot be written.
        """
        made = self._files()
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError as error:
            raise ConfigError(f"{self.folder} exists already; choose another name or --directory") from error
        except OSError as error:
            raise ConfigError(f"cannot make {self.folder}: {error.strerror}; choose another --directory") from error
        for path, text in made.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-8")
        return list(made)

    def _files(self) -> dict[Path, str]:
        """The text of every file, by its path below the folder."""
        words, templates = self._words(), files(__package__) / "templates"
        made = {}
        for name, template in _FILES.items():
            path, source = (Template(one).substitute(words) for one in (name, template))
            made[Path(path)] = Template((templates / source).read_text("utf-8")).substitute(words)
        return made

    def _words(self) -> dict[str, str]:
        """What the templates call by name."""
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
    help="Where to put the plugin's folder; here by default.",
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
    """The commands that install and test the plugin; an environment without pip is one that uv made."""
    place = folder if folder.is_absolute() else f"./{folder}"  # without ./ installers would look for a distribution
    pip, run = ("pip", "") if find_spec("pip") else ("uv pip", "uv run ")
    return (
        f"  {pip} install -e {quote(f'{place}[test]')}\n"
        f"  {run}pytest {quote(str(folder))}\n"
        f"  {run}dicast plugins --load"
    )


def _check_name(name: str) -> None:
    """Refuse what cannot be a plugin's name, or is one already.

    :raises ConfigError: saying why, and what to write.
    """
    if not _NAME.fullmatch(name):
        proper = re.sub(r"_+", "_", re.sub(r"\W+", "_", snake_case(name), flags=re.ASCII)).strip("_0123456789")
        advice = f"; write {proper}" if _NAME.fullmatch(proper) else ""
        raise ConfigError(
            f"{name!r} is no plugin's name: lower-case words joined by '_', beginning with a letter{advice}"
        )
    if keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a word of Python's own; write {name}_check, or what it judges")
    installed = Registry().scan().get(name)
    if installed is not None:
        raise ConfigError(f"{installed} is installed already; choose another name")


def _kernel_range() -> str:
    """The versions of the kernel that a plugin made today works with: up to the next breaking one."""
    from importlib.metadata import version

    major, minor = (int(part) for part in version("dicast-kernel").split(".")[:2])
    return f">={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"
