"""What a change may touch: the scope, and neither what measures nor the session's own files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import attrs

from dicast import ConfigError
from dicast.toolkit.scripts import scripts

from .git import Change, Git
from .session import OWN, Session


@attrs.frozen
class Guard:
    """Looks after what a change of *session* may not touch."""

    git: Git
    session: Session

    def refuse_dirty(self) -> None:
        """Refuse changes in the scope that are not committed: they are nobody's experiment.

        :raises ConfigError: naming them.
        """
        names = self.git.uncommitted("--untracked-files=all", "--", *self.specs())
        if names:
            raise ConfigError(
                f"the scope has changes that are not committed: {', '.join(names[:10])}; commit or stash them first"
            )

    def specs(self) -> list[str]:
        """Return the scope as pathspecs of git, without the session's files."""
        return [*map(pathspec, self.session.scope), *(f":(exclude,top,literal){path}" for path in OWN)]

    def unmeasured(self) -> list[str]:
        """Return the tracked files with uncommitted changes, which no checkout has."""
        return [path for path in self.git.uncommitted("--untracked-files=no") if not _is_own(path)]

    def refusal(self, changes: Sequence[Change], folder: Path, *, measuring: bool = False) -> str:
        """Return why *changes* in the checkout *folder* are refused; an empty text if they are not.

        A change may touch neither what measures nor a file outside the scope. While *measuring*, new files are no change.
        """
        guarded = self.guarded(folder)
        cheats = [one.path for one in changes if one.path in guarded or _is_own(one.path)]
        if cheats:
            return f"cheating: {', '.join(cheats)}"
        outside = [one.path for one in changes if not self.in_scope(one.path) and not (measuring and one.status == "A")]
        if outside:
            return f"out_of_scope: {', '.join(outside[:20])}"
        nested = [one.path for one in changes if one.mode == "160000" and not measuring]
        if nested:
            return f"out_of_scope: repositories inside this one cannot be kept: {', '.join(nested)}"
        if not measuring and not changes:
            return "no_change: the proposer changed no file in the scope"
        return ""

    def guarded(self, folder: Path) -> set[str]:
        """Return the files that measure: those that command and checks name, and the targets of links among them.

        Files that the scope names are not among them. *folder* is a checkout, or the working tree.
        """
        root, named = str(self.git.root), set[str]()
        for command in filter(None, (self.session.command, self.session.checks)):
            words = [
                os.path.relpath(word, root) if word.startswith("/") else word for word in self.session.words(command)
            ]
            modules = scripts(tuple(words[1:]), folder).values()  # also those of -m
            named |= {os.path.join(folder, word) for word in (*words, *map(str, modules))}  # noqa: PTH118  # words may be anything
        found = {os.path.relpath(path, folder) for path in named}
        found |= {os.path.relpath(os.path.realpath(path), os.path.realpath(folder)) for path in named}
        return found - {os.path.normpath(scope) for scope in self.session.scope}

    def refuse_changed_measure(self) -> None:
        """Refuse to measure where what measures is not as it was committed.

        :raises ConfigError: naming the files.
        """
        specs = [pathspec(path) for path in self.guarded(self.git.root) if os.path.lexists(self.git.root / path)]
        if specs and (names := self.git.uncommitted("--untracked-files=no", "--", *specs)):
            raise ConfigError(f"what measures was changed: {', '.join(names)}; commit it, or bring it back, first")

    def in_scope(self, path: str) -> bool:
        """Whether a change may touch *path*."""
        mine = PurePosixPath(path)
        return any(mine.is_relative_to(os.path.normpath(scope)) for scope in self.session.scope)


def pathspec(path: str) -> str:
    """Return *path*, relative to the root, as a pathspec of git."""
    return f":(top,literal){path}"


def _is_own(path: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(own) for own in OWN)
