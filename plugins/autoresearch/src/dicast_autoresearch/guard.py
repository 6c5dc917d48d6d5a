"""What a change may touch: the scope, and neither what measures nor the session's own files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import attrs

from dicast import ConfigError, scripts

from .git import Git
from .log import LOG
from .session import FOLDER, Session
from .snapshot import Snapshot


@attrs.frozen
class Guard:
    """Looks after what a change of *session* may not touch."""

    git: Git
    session: Session

    def refuse_dirty(self) -> None:
        """Refuse changes in the scope that are not committed: they are nobody's experiment.

        :raises ConfigError: naming them.
        """
        found = self.git.run("status", "--porcelain", "-z", "--untracked-files=all", "--", *self.specs()).split(b"\0")
        names = [os.fsdecode(line[3:]) for line in found if len(line) > 3]
        if names:
            raise ConfigError(
                f"the scope has changes that are not committed: {', '.join(names[:10])}; commit or stash them first"
            )

    def specs(self) -> list[str]:
        """The scope, as git takes it."""
        return [f":(top,literal){path}" for path in self.session.scope]

    def own(self) -> dict[Path, bytes | None]:
        """The session's own files, and those by which git is told what to do: nobody else may change them. None: it is not there."""
        mine = [*self._session_files(), self.git.root / LOG]
        return {path: path.read_bytes() if path.is_file() else None for path in (*mine, *self._git_files())}

    def _session_files(self) -> list[Path]:
        return [path for path in (self.git.root / FOLDER).rglob("*") if path.is_file() and path.name != "state.json"]

    def _git_files(self) -> list[Path]:
        return [self.git.path(name) for name in ("config", "info/exclude", "info/attributes")]

    def put_back(self, own: Mapping[Path, bytes | None]) -> list[str]:
        """Restore what was *own*; the names of the session's files that were changed, made or removed."""
        changed, gits = [], self._git_files()
        for path in {**own, **dict.fromkeys(self._session_files())}:
            before, now = own.get(path), path.read_bytes() if path.is_file() else None
            if now == before:
                continue
            if path not in gits:
                changed.append(os.path.relpath(path, self.git.root))
            if before is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(before)
        return changed

    def refusal(
        self, before: Snapshot, after: Snapshot, changed: list[str], cheats: list[str], *, measuring: bool = False
    ) -> str:
        """Why a change is not even measured, nothing where it may be: what measures, or what is outside the scope, was changed."""
        nested = [path for path in changed if path in before.nested or path in after.nested]
        if nested:
            raise ConfigError(f"repositories inside this one were changed, look at them yourself: {', '.join(nested)}")
        guarded = self.guarded()
        cheats = [*cheats, *(path for path in changed if path in guarded)]
        if cheats:
            return f"cheating: {', '.join(cheats)}"
        outside = [path for path in changed if not self.in_scope(path)]
        if measuring:  # it may write what is new; all of it is undone
            outside = [path for path in outside if path in before.files]
        ignored = self._ignored(outside)
        outside = [path for path in outside if path not in ignored]
        if outside:
            return f"out_of_scope: {', '.join(outside[:20])}"
        if not measuring and not any(self.in_scope(path) for path in changed):
            return "no_change: the proposer changed no file in the scope"
        return ""

    def guarded(self) -> set[str]:
        """The files that measure: what command and checks name, and where links among them lead; none that the scope names itself."""
        root, named = str(self.git.root), set[str]()
        for command in filter(None, (self.session.command, self.session.checks)):
            words = self.session.words(command)
            modules = scripts(tuple(words[1:]), self.git.root).values()  # also those of -m
            named |= {os.path.join(root, word) for word in (*words, *map(str, modules))}  # noqa: PTH118  # words may be anything
        found = {os.path.relpath(path, root) for path in named}
        found |= {os.path.relpath(os.path.realpath(path), os.path.realpath(root)) for path in named}
        return found - {os.path.normpath(scope) for scope in self.session.scope}

    def refuse_changed_measure(self) -> None:
        """Refuse to measure where what measures is not as it was committed.

        :raises ConfigError: naming the files.
        """
        specs = [f":(top,literal){path}" for path in self.guarded() if os.path.lexists(self.git.root / path)]
        found = self.git.run("diff", "--name-only", "-z", "HEAD", "--", *specs).split(b"\0") if specs else []
        if names := [os.fsdecode(name) for name in found if name]:
            raise ConfigError(f"what measures was changed: {', '.join(names)}; commit it, or bring it back, first")

    def in_scope(self, path: str) -> bool:
        """Whether a change may touch *path*."""
        mine = PurePosixPath(path)
        return any(mine.is_relative_to(os.path.normpath(scope)) for scope in self.session.scope)

    def _ignored(self, paths: list[str]) -> set[str]:
        if not paths:
            return set()
        data = b"".join(os.fsencode(path) + b"\0" for path in paths)
        try:
            found = self.git.run("check-ignore", "-z", "--stdin", data=data)
        except ConfigError:  # its way to say that there are none
            return set()
        return {os.fsdecode(name) for name in found.split(b"\0") if name}
