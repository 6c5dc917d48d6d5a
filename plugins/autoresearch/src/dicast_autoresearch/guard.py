"""Limits of a change: it may touch the scope, but neither the measuring files nor the session's own files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import attrs

from dicast import ConfigError
from dicast.toolkit.scripts import scripts

from .git import Change, Git
from .session import SESSION_FILES, Session


@attrs.frozen
class Guard:
    """Checker of the files that a change of *session* touches."""

    git: Git
    session: Session

    def refuse_dirty(self) -> None:
        """Refuse uncommitted changes in the scope: they belong to no experiment.

        :raises ConfigError: naming them.
        """
        names = self.git.uncommitted("--untracked-files=all", "--", *self.specs())
        if names:
            raise ConfigError(f"the scope has uncommitted changes: {', '.join(names[:10])}; commit or stash them first")

    def specs(self) -> list[str]:
        """Return the scope as pathspecs of git, without the session's files."""
        return [*map(pathspec, self.session.scope), *(f":(exclude,top,literal){path}" for path in SESSION_FILES)]

    def unmeasured(self) -> list[str]:
        """Return the tracked files with uncommitted changes, which no checkout has."""
        return [path for path in self.git.uncommitted("--untracked-files=no") if not _is_session_file(path)]

    def refusal(self, changes: Sequence[Change], folder: Path, *, measuring: bool = False) -> str:
        """Return why *changes* in the checkout *folder* are refused; an empty text if they are not.

        A change may touch neither a measuring file nor a file outside the scope. While *measuring*, new files are no change.
        """
        guarded = self.guarded(folder)
        cheats = [change.path for change in changes if change.path in guarded or _is_session_file(change.path)]
        if cheats:
            return f"cheating: {', '.join(cheats)}"
        outside = [
            change.path
            for change in changes
            if not self.in_scope(change.path) and not (measuring and change.status == "A")
        ]
        if outside:
            return f"out_of_scope: {', '.join(outside[:20])}"
        nested = [change.path for change in changes if change.mode == "160000" and not measuring]
        if nested:
            return f"out_of_scope: repositories inside this one cannot be kept: {', '.join(nested)}"
        if not measuring and not changes:
            return "no_change: the proposer changed no file in the scope"
        return ""

    def guarded(self, folder: Path) -> set[str]:
        """Return the measuring files: files named in command and checks, and the targets of links among them.

        Files named in the scope are not included. *folder* is a checkout, or the working tree.
        """
        root, named = str(self.git.root), set[str]()
        for command in filter(None, (self.session.command, self.session.checks)):
            words = [
                os.path.relpath(word, root) if word.startswith("/") else word for word in self.session.words(command)
            ]
            modules = scripts(tuple(words[1:]), folder).values()  # also modules of -m
            named |= {os.path.join(folder, word) for word in (*words, *map(str, modules))}  # noqa: PTH118  # words may be anything
        paths = {os.path.relpath(path, folder) for path in named}
        paths |= {os.path.relpath(os.path.realpath(path), os.path.realpath(folder)) for path in named}
        return paths - {os.path.normpath(scope) for scope in self.session.scope}

    def refuse_changed_measure(self) -> None:
        """Refuse to measure if measuring files have uncommitted changes.

        :raises ConfigError: naming the files.
        """
        specs = [pathspec(path) for path in self.guarded(self.git.root) if os.path.lexists(self.git.root / path)]
        if specs and (names := self.git.uncommitted("--untracked-files=no", "--", *specs)):
            raise ConfigError(f"measuring files were changed: {', '.join(names)}; commit or restore them first")

    def in_scope(self, path: str) -> bool:
        """Return whether a change may touch *path*."""
        mine = PurePosixPath(path)
        return any(mine.is_relative_to(os.path.normpath(scope)) for scope in self.session.scope)


def pathspec(path: str) -> str:
    """Return *path*, relative to the root, as a pathspec of git."""
    return f":(top,literal){path}"


def _is_session_file(path: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(own_path) for own_path in SESSION_FILES)
