"""Untracked paths that commands need: dependencies, paths named in a command or the environment, and paths of ``--link``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import attrs

from dicast import ConfigError
from dicast.toolkit.scripts import scripts

from .git import Git
from .log import LOG
from .session import FOLDER, SESSION_FILES, Session

DEPENDENCIES = (".venv", "venv", "node_modules")
"""Folders that are linked if they are untracked."""

_VARIABLES = ("PATH", "PYTHONPATH", "NODE_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
_BETWEEN = re.compile(r"[\s;|&=<>'\"()]+")


@attrs.frozen
class Links:
    """Finder of the untracked paths that the commands of *session* need."""

    git: Git
    session: Session

    def paths(self, *commands: str) -> dict[str, Path]:
        """Return the absolute path of each linked path, for the session's commands and the further *commands*.

        :raises ConfigError: naming each path of the session's ``link`` that is missing or tracked.
        """
        untracked, named = self.git.untracked(), self._named(*commands)
        above = {str(parent) for name in named for parent in (PurePosixPath(name), *PurePosixPath(name).parents)}
        paths = {path for path in untracked if PurePosixPath(path).name in DEPENDENCIES or path in above}
        paths |= set(self._session_links())
        paths |= {path for path in self.git.submodules("HEAD") if any(_entries(self.git.root / path))}
        paths = {path for path in paths if not any(str(above) in paths for above in PurePosixPath(path).parents)}
        return {path: self.git.root / path for path in sorted(paths)}

    def of_session(self) -> dict[str, Path]:
        """Return the session's files, which a proposer may read."""
        return {path: self.git.root / path for path in SESSION_FILES if (self.git.root / path).exists()}

    def left_out(self, *commands: str) -> list[str]:
        """Return the untracked paths that are not linked."""
        linked = self.paths(*commands)
        return [path for path in self.git.untracked() if path not in linked and path not in (FOLDER, LOG)]

    def _session_links(self) -> Iterator[str]:
        problems = []
        for linked in self.session.link:
            path = os.path.normpath(linked)
            if not os.path.lexists(self.git.root / path):
                problems.append(f"--link {linked}: there is no such path in {self.git.root}")
            elif self.git.is_tracked(path, "HEAD"):
                problems.append(f"--link {linked}: git tracks it, every checkout has it. Leave it out")
            else:
                yield path
        if problems:
            raise ConfigError("; ".join(problems))

    def _named(self, *commands: str) -> set[str]:
        """Return the existing paths below the root that commands and variables name."""
        names: set[str] = set()
        for command in filter(None, (self.session.command, self.session.checks, *commands)):
            words = self.session.words(command)
            names |= {piece for word in words for piece in (word, *_BETWEEN.split(word))}
            names |= set(map(str, scripts(tuple(words[1:]), self.git.root).values()))
        for variable in _VARIABLES:
            names |= {name for name in os.environ.get(variable, "").split(os.pathsep) if name.startswith("/")}
        root = str(self.git.root)
        paths = {os.path.relpath(os.path.join(root, name), root) for name in names if name and "\0" not in name}  # noqa: PTH118  # words may be anything
        return {path for path in paths if path != "." and not path.startswith("..") and _exists(f"{root}/{path}")}


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _entries(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())
