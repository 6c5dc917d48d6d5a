"""The user's repository: its objects are read and written; refs are changed only below ``refs/dicast/``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from dicast import ConfigError

DISCARDED = "refs/dicast/discarded"

_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_NOBODY = {"name": "dicast autoresearch", "email": "autoresearch@localhost"}
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.addEmbeddedRepo": "false",
}
"""Settings of every call: no hook or helper of the repository runs, and no background rewriting."""

_PRIVATE = {"core.untrackedCache": "false", "core.splitIndex": "false", "core.sparseCheckout": "false"}
"""Further settings of calls with a temporary index."""


@attrs.frozen
class Change:
    """A path that differs between two trees; *status* is git's letter, *mode* the new mode."""

    path: str
    status: str
    mode: str


@attrs.frozen
class Git:
    """Repository with the working tree *root*."""

    root: Path

    def run(
        self, *words: str, data: bytes | None = None, env: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> bytes:
        """Return the output of git.

        :raises ConfigError: with git's message if git fails.
        """
        done = run_git(words, folder or self.root, data, env)
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip()
            raise ConfigError(f"git {words[0]} failed in {folder or self.root}: {message}")
        return done.stdout

    def text(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Return the output of git as one line."""
        return os.fsdecode(self.run(*words, env=env)).rstrip("\n")

    def names(self, *words: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> list[str]:
        """Return the output of git as names, each ended by NUL."""
        return [os.fsdecode(name) for name in self.run(*words, data=data, env=env).split(b"\0") if name]

    def path(self, name: str) -> Path:
        """Return the absolute path of a file in git's folder."""
        return self.root / self.text("rev-parse", "--git-path", name)

    def folder(self) -> Path:
        """Return git's folder of this working tree."""
        return Path(self.text("rev-parse", "--absolute-git-dir"))

    def head(self) -> str:
        """Return the commit of HEAD."""
        return self.text("rev-parse", "HEAD^{commit}")

    def tree_of(self, commit: str) -> str:
        """Return the tree of *commit*."""
        return self.text("rev-parse", f"{commit}^{{tree}}")

    def resolve(self, ref: str) -> str | None:
        """Return the commit of *ref*; None if there is none."""
        done = run_git(("rev-parse", "--verify", "-q", f"{ref}^{{commit}}"), self.root)
        return os.fsdecode(done.stdout).strip() or None

    def is_ancestor(self, commit: str, later: str) -> bool:
        """Return whether *commit* is *later*, or an ancestor of it."""
        return run_git(("merge-base", "--is-ancestor", commit, later), self.root).returncode == 0

    def changes(self, before: str, after: str) -> list[Change]:
        """Return the paths that differ between two trees or commits."""
        fields = self.names("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", before, after)
        pairs = zip(fields[::2], fields[1::2], strict=True)
        return [Change(path, meta.split(" ")[4], meta.split(" ")[1]) for meta, path in pairs]

    def is_tracked(self, path: str, tree: str) -> bool:
        """Return whether *tree* has *path*, as a file or a folder."""
        return bool(self.run("ls-tree", "-z", "--full-tree", tree, "--", f"{path}".rstrip("/")))

    def is_ignored(self, path: str) -> bool:
        """Return whether git ignores *path*."""
        return run_git(("check-ignore", "-q", "--", path), self.root).returncode == 0

    def submodules(self, tree: str) -> list[str]:
        """Return the paths of the repositories inside *tree*."""
        entries = (line.partition("\t") for line in self.names("ls-tree", "-r", "-z", "--full-tree", tree))
        return [path for meta, _, path in entries if meta.startswith("160000")]

    def untracked(self) -> list[str]:
        """Return the untracked and the ignored paths of the working tree, whole folders as one path."""
        words = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
        paths = {*self.names(*words), *self.names(*words, "--ignored")}
        return sorted(path.rstrip("/") for path in paths)

    @contextmanager
    def index(self, tree: str | None = None, folder: Path | None = None) -> Iterator[Mapping[str, str]]:
        """Yield variables under which git uses a temporary index with *tree*, and *folder* as the working tree."""
        with tempfile.TemporaryDirectory(prefix="dicast-index-") as temporary:
            env = self.private(Path(temporary) / "index", folder or self.root)
            if tree is not None:
                self.run("read-tree", tree, env=env)
            yield env

    def private(self, index: Path, folder: Path) -> Mapping[str, str]:
        """Return variables under which git uses this repository, the file *index*, and *folder* as the working tree."""
        return {"GIT_DIR": str(self.folder()), "GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}

    def commit(self, tree: str, message: str, parent: str) -> str:
        """Return a new commit of *tree* on top of *parent*. No ref names it yet."""
        env: dict[str, str] = {}
        for field, value in _NOBODY.items():
            if not run_git(("config", f"user.{field}"), self.root).stdout.strip():
                env |= {f"GIT_{who}_{field.upper()}": value for who in ("AUTHOR", "COMMITTER")}
        sha = self.run("commit-tree", tree, "-p", parent, "-F", "-", data=message.encode(), env=env)
        return os.fsdecode(sha).strip()

    def move(self, ref: str, commit: str, before: str | None) -> None:
        """Set *ref*, below ``refs/dicast/``, to *commit* if it still is at *before*; with None, create it if it does not exist.

        :raises ConfigError: if another process has moved it.
        """
        assert ref.startswith("refs/dicast/")  # other refs belong to the user
        self.run("update-ref", "--no-deref", "-m", "dicast autoresearch", ref, commit, before or "")

    def keep_discarded(self, number: int, tree: str, message: str, parent: str) -> str:
        """Keep the discarded *tree* of experiment *number* as the commit ``refs/dicast/discarded/N``, and return the commit."""
        commit = self.commit(tree, f"{message}\n", parent)
        refs = self.text("for-each-ref", "--format=%(refname)", f"{DISCARDED}/").splitlines()
        names = (
            f"{DISCARDED}/{number}-{suffix}" if suffix else f"{DISCARDED}/{number}" for suffix in range(len(refs) + 1)
        )
        self.move(next(name for name in names if name not in refs), commit, None)
        return commit

    def uncommitted(self, *words: str) -> list[str]:
        """Return the paths with uncommitted changes, found with the further *words* of ``git status``, which writes no index."""
        fixed = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all")
        return [line[3:] for line in self.names(*fixed, *words)]

    def working_tree(self, base: str, specs: Sequence[str]) -> str:
        """Return the tree *base* with the files below *specs* as the user's working tree has them. Its index is only read."""
        paths = set(self.uncommitted("--untracked-files=all", "--", *specs))
        paths |= set(self.names("diff", "--name-only", "--no-renames", "-z", "HEAD", base, "--", *specs))
        existing = [path for path in paths if os.path.lexists(self.root / path)]
        gone = [path for path in paths if path not in set(existing)]
        with self.index(base) as env:
            data = b"".join(os.fsencode(path) + b"\0" for path in gone)
            self.run("update-index", "--force-remove", "-z", "--stdin", data=data, env=env)
            data = b"".join(os.fsencode(path) + b"\0" for path in existing)
            if existing:
                words = ("add", "-f", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
                self.run("--literal-pathspecs", *words, data=data, env=env)
            return self.text("write-tree", env=env)


def run_git(
    words: Sequence[str], folder: Path, data: bytes | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git without a prompt, without hooks, and without variables that name another repository."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(env or {})}
    settings = _SETTINGS | (_PRIVATE if env and "GIT_INDEX_FILE" in env else {})
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return subprocess.run(
        ["git", *options, *words], cwd=folder, env=variables, input=data or b"", capture_output=True, check=False
    )


def open_repository(folder: Path) -> Git:
    """Return the repository that *folder* belongs to.

    :raises ConfigError: if there is none, it has no commit or no working tree, or an operation is under way in it.
    """
    if shutil.which("git") is None:
        raise ConfigError("git is not on the PATH: install it; autoresearch keeps changes as commits")
    toplevel = run_git(("rev-parse", "--show-toplevel"), folder)
    if toplevel.returncode:
        last = toplevel.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigError(f"{folder} is not in a working tree of git: {' '.join(last)}")
    git = Git(Path(os.fsdecode(toplevel.stdout).rstrip("\n")))
    if git.resolve("HEAD") is None:
        raise ConfigError(f"{git.root} has no commit yet: create a first commit, on which changes can be based")
    for name in _BUSY:
        if git.path(name).exists():
            raise ConfigError(f"{git.root} has an unfinished operation ({name}): finish or abort it first")
    return git
