"""Merging of kept experiments into the user's branch, only on request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import attrs

from dicast import ConfigError

from .git import Git, run_git
from .guard import Guard, pathspec


@attrs.frozen
class Merge:
    """The result of a merge: whether the branch has the *commit* now, a *message*, and the git *command* if it has not."""

    merged: bool
    ref: str
    commit: str | None
    message: str
    command: str | None = None


def merge(git: Git, ref: str, guard: Guard) -> Merge:
    """Fast-forward the current branch to *ref* if tree and index are clean and the branch has no other commits.

    If the scope has the kept change already, as after ``log --status keep``, the command stages it first.
    """
    tip, head = git.resolve(ref), git.head()
    if tip is None or git.is_ancestor(tip, head):
        return Merge(True, ref, tip, f"nothing to merge: the branch has all commits of {ref}")
    command = f"git merge --ff-only {shlex.quote(ref)}"
    branch = run_git(("symbolic-ref", "-q", "--short", "HEAD"), git.root).stdout.decode(errors="replace").strip()
    if not branch:
        why = "HEAD is detached"
    elif not git.is_ancestor(head, tip):
        why, command = f"{branch} has commits that the experiments were not made on", f"git merge {shlex.quote(ref)}"
    elif guard.unmeasured():
        why = "the working tree or the index has changes; commit or stash them, then run"
        if git.working_tree(head, guard.specs()) == git.tree_of(tip):
            why = "the working tree has the kept change already, not committed; stage it, and move the branch"
            command = f"git add -A -- {shlex.join(map(pathspec, guard.session.scope))} && {command}"
    else:
        try:
            git.run("merge", "--ff-only", "-q", ref)
        except ConfigError as error:
            why = str(error)
        else:
            return Merge(True, ref, tip, f"{branch} is at {tip[:7]}")
    return Merge(False, ref, tip, f"not merged: {why}\n{command}", command)


def restore_command(scope: Sequence[str], commit: str) -> str:
    """Return the git command that brings the *scope* back to *commit*, in working tree and index."""
    return f"git restore --source={commit[:12]} --staged --worktree -- {shlex.join(map(pathspec, scope))}"
