"""Temporary checkouts: one for the proposer, and a fresh one for each measurement."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import click

from dicast import ConfigError
from dicast.toolkit.command import CommandEnd

from .git import Git, run_git
from .namespace import OBJECTS, Namespace, refuse_in_place
from .running import run_within

READY = "ready"
"""File next to a complete checkout."""

_LOCAL = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_CONFIG", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE",
)  # fmt: skip
"""Variables that would point git from a checkout to another repository."""


@attrs.frozen
class Checkout:
    """A checkout of *commit* in *folder*, with its own repository; its index stays outside of it.

    :ivar links: the absolute paths of the linked paths.
    :ivar marks: variables by which its processes are found.
    """

    git: Git
    namespace: Namespace | None
    folder: Path
    index: Path
    links: Mapping[str, Path]
    marks: Mapping[str, str]

    @property
    def seen(self) -> Path:
        """The path of the checkout as its commands see it."""
        return self.folder if self.namespace is None else self.git.root

    def run(
        self,
        words: Sequence[str],
        seconds: float,
        receive: Callable[[bytes], object],
        data: bytes = b"",
        receive_errors: Callable[[bytes], object] | None = None,
    ) -> CommandEnd | None:
        """Run *words* in the checkout; see :func:`run_within`. Every process that it started has ended afterwards."""
        self._refuse_missing(words[0])
        unset = [name for name in _LOCAL if name in os.environ]
        if self.namespace is not None:
            words = self.namespace.words(self.folder, self.links, unset, words)
            return run_within(words, self.git.root, seconds, receive, data, self._variables(), receive_errors)
        if unset:
            words = ["env", *(word for name in unset for word in ("-u", name)), *words]
        env = {**self._variables(), "PWD": str(self.folder)}
        return run_within(words, self.folder, seconds, receive, data, env, receive_errors)

    def _variables(self) -> dict[str, str]:
        """Return variables for its commands. uv cannot synchronize an environment that is read-only, and would fail."""
        is_linked = any(Path(path).name in (".venv", "venv") for path in self.links)
        return {**self.marks, **({"UV_NO_SYNC": "1"} if is_linked and "UV_NO_SYNC" not in os.environ else {})}

    def _refuse_missing(self, program: str) -> None:
        if "/" not in program:
            exists = shutil.which(program) is not None
        else:
            inner = os.path.relpath(self.git.root / program, self.git.root)
            exists = os.path.lexists(self.folder / inner) or any(
                os.path.lexists(self.git.root / inner) for path in self.links if Path(inner).is_relative_to(path)
            )
            exists = exists or (inner.startswith("..") and os.path.lexists(self.git.root / inner))
        if not exists:
            raise FileNotFoundError(2, "there is no such program", program)

    def tree(self) -> str:
        """Return the tree of its files as they are now, without ignored files and links."""
        env = self.git.private(self.index, self.folder)
        ignored = self._ignored(env)
        without = [f":(exclude,top,literal){path}" for path in self.links if path not in ignored]
        self.git.run("add", "-A", "--sparse", "--", ":(top)", *without, env=env, folder=self.folder)
        return self.git.text("write-tree", env=env)

    def _ignored(self, env: Mapping[str, str]) -> set[str]:
        """Return the links that git ignores anyway; it refuses them as exclusions."""
        data = b"".join(os.fsencode(path) + b"\0" for path in self.links)
        done = run_git(("check-ignore", "--no-index", "-z", "--stdin"), self.folder, data, env)
        return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}

    def reset(self) -> None:
        """Bring every tracked file back to the commit."""
        env = self.git.private(self.index, self.folder)
        self.git.run("checkout-index", "-a", "-f", "-u", "-q", env=env, folder=self.folder)


@attrs.frozen
class Workspace:
    """A temporary *folder* with the checkouts of one round."""

    git: Git
    namespace: Namespace | None
    folder: Path
    marks: Mapping[str, str]

    def checkout(self, name: str, commit: str, links: Mapping[str, Path]) -> Checkout:
        """Return a fresh checkout of *commit*.

        :raises ConfigError: if it cannot be made.
        """
        try:
            return self._checkout(self.folder / name, commit, links)
        except OSError as error:
            place = error.filename or self.folder
            raise ConfigError(f"cannot create a checkout: {place}: {error.strerror or error}") from error

    def _checkout(self, place: Path, commit: str, links: Mapping[str, Path]) -> Checkout:
        work = place / (self.git.root.name or "root")
        work.mkdir(parents=True)
        self._make_repository(work, commit)
        index = place / "index"
        env = self.git.private(index, work)
        self.git.run("read-tree", commit, env=env)
        checkout = Checkout(self.git, self.namespace, work, index, {}, self.marks)
        checkout.reset()
        checkout = attrs.evolve(checkout, links=_free(work, links))
        shutil.copyfile(index, work / ".git/index")
        self._put_links(checkout)
        (place / READY).touch()
        return checkout

    def _make_repository(self, work: Path, commit: str) -> None:
        """Make a repository in *work* that reads the user's objects, and has a branch of its own."""
        kind = self.git.text("rev-parse", "--show-object-format")
        self.git.run("init", "-q", "--template=", f"--object-format={kind}", "-b", "dicast", ".", folder=work)
        objects = work / ".git/objects/info"
        objects.mkdir(exist_ok=True)
        (work / ".git" / OBJECTS).mkdir()
        (objects / "alternates").write_text(f"../{OBJECTS}\n{self.git.path('objects').resolve()}\n", encoding="utf-8")
        shallow = self.git.path("shallow")
        if shallow.exists():
            shutil.copyfile(shallow, work / ".git/shallow")
        self.git.run("update-ref", "refs/heads/dicast", commit, folder=work)

    def _put_links(self, checkout: Checkout) -> None:
        for path, source in checkout.links.items():
            place = checkout.folder / path
            if not place.parent.resolve().is_relative_to(checkout.folder.resolve()):
                raise ConfigError(f"{path} cannot be linked: it is behind a symbolic link. Link its target")
            place.parent.mkdir(parents=True, exist_ok=True)
            if self.namespace is None:
                _copy(source, place)
            elif source.is_dir():
                place.mkdir(exist_ok=True)
            else:
                place.touch()
        if self.namespace is None:
            active = [Path(os.environ["VIRTUAL_ENV"])] if "VIRTUAL_ENV" in os.environ else []
            refuse_in_place(self.git.root, [*checkout.links.values(), *active])

    def remove(self) -> None:
        """Delete the folder."""
        remove(self.folder)


def new_folder() -> Path:
    """Return a new folder for a workspace, in the system's folder for temporary files."""
    return Path(tempfile.mkdtemp(prefix="dicast-autoresearch-")).resolve()


def remove(folder: Path) -> None:
    """Delete *folder*, read-only folders in it too; a warning names it if that fails."""
    for path, _, _ in os.walk(folder):
        if not os.access(path, os.W_OK):
            Path(path).chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        click.echo(f"the temporary folder {folder} cannot be deleted: delete it by hand", err=True)


def _free(work: Path, links: Mapping[str, Path]) -> dict[str, Path]:
    """Return the *links* whose place in *work* is free, or an empty folder."""

    def is_free(place: Path) -> bool:
        return not os.path.lexists(place) or (place.is_dir() and not place.is_symlink() and not any(place.iterdir()))

    return {path: source for path, source in links.items() if source.exists() and is_free(work / path)}


def _copy(source: Path, place: Path) -> None:
    """Copy *source* to *place*, read-only."""
    if not source.is_dir():
        shutil.copy2(source, place)
        place.chmod(stat.S_IMODE(place.stat().st_mode) & ~0o222)
        return
    shutil.copytree(source.resolve(), place, symlinks=True, dirs_exist_ok=True, ignore=_special)
    for folder, _, names in os.walk(place, topdown=False):
        for path in (*(Path(folder, name) for name in names), Path(folder)):
            if not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


def _special(folder: str, names: list[str]) -> list[str]:
    """Return the names that are neither files, folders nor links, such as sockets."""
    kinds = {name: Path(folder, name).lstat().st_mode for name in names}
    return [
        name for name, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
    ]
