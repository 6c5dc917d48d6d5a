"""Git, by its own command: what the session asks of a repository."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from dicast import ConfigError

DISCARDED = "refs/dicast/discarded"

_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_NOBODY = {"name": "dicast autoresearch", "email": "autoresearch@localhost"}


@attrs.frozen
class Place:
    """Where a repository stands: the branch that HEAD names (None when detached), its commit, all refs, and the index's bytes."""

    branch: str | None
    commit: str
    refs: Mapping[str, str]
    index: bytes | None


@attrs.frozen
class Git:
    """The repository whose working tree is *root*."""

    root: Path

    def run(
        self, *words: str, data: bytes | None = None, env: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> bytes:
        """What git prints.

        :raises ConfigError: with git's own words when it fails.
        """
        done = _git(words, folder or self.root, data, env)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise ConfigError(f"git {words[0]} failed in {folder or self.root}: {said}")
        return done.stdout

    def text(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """What git prints, as one line."""
        return os.fsdecode(self.run(*words, env=env)).rstrip("\n")

    def path(self, name: str) -> Path:
        """A file of git's own."""
        return self.root / self.text("rev-parse", "--git-path", name)

    def state_of(self, path: str) -> str:
        """What a repository inside is at: its commit, and what is changed in it."""
        folder = self.root / path
        head = _git(("rev-parse", "HEAD"), folder, None, None).stdout
        changed = _git(("status", "--porcelain=v2", "-z"), folder, None, None).stdout
        return f"{head!r} {changed!r}"

    def store(self, base: Path, paths: Sequence[str]) -> dict[str, str]:
        """Put files and links into the object database as they are; the blob of each."""
        found: dict[str, str] = {}
        links = [path for path in paths if (base / path).is_symlink()]
        for path in links:
            target = os.fsencode((base / path).readlink())
            found[path] = os.fsdecode(self.run("hash-object", "-w", "--no-filters", "--stdin", data=target)).strip()
        # a name with a line break goes by itself
        plain = [path for path in paths if path not in set(links)]
        odd = [path for path in plain if "\n" in path]
        for path in odd:
            data = (base / path).read_bytes()
            found[path] = os.fsdecode(self.run("hash-object", "-w", "--no-filters", "--stdin", data=data)).strip()
        rest = [path for path in plain if "\n" not in path]
        if rest:
            names = b"".join(os.fsencode(f"{path}\n") for path in rest)
            blobs = self.run("hash-object", "-w", "--no-filters", "--stdin-paths", data=names).split()
            found |= dict(zip(rest, map(os.fsdecode, blobs), strict=True))
        return found

    def blob(self, name: str) -> bytes:
        """The bytes of a blob."""
        return self.run("cat-file", "blob", name)

    def stand(self) -> Place:
        """Where the repository stands."""
        branch = _git(("symbolic-ref", "-q", "HEAD"), self.root, None, None)
        index = self.path("index")
        return Place(
            os.fsdecode(branch.stdout).strip() or None,
            self.text("rev-parse", "HEAD"),
            self._refs(),
            index.read_bytes() if index.exists() else None,
        )

    def _refs(self) -> dict[str, str]:
        """Every branch, tag and other name with its object, but for the discarded changes."""
        listed = self.text("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in listed if not line.startswith(f"{DISCARDED}/"))

    def go_back(self, place: Place) -> None:
        """Bring HEAD, all refs and the index back to *place*; the working tree stays."""
        now = self._refs()
        for name, commit in place.refs.items():
            if now.get(name) != commit:
                self.run("update-ref", "--no-deref", name, commit)
        if place.branch is None:
            self.run("update-ref", "--no-deref", "HEAD", place.commit)
        else:
            self.run("symbolic-ref", "HEAD", place.branch)
        for name in now.keys() - place.refs.keys():
            self.run("update-ref", "-d", name)
        index = self.path("index")
        if place.index is not None and (not index.exists() or index.read_bytes() != place.index):
            hidden = index.with_name("index.dicast")
            hidden.write_bytes(place.index)
            hidden.replace(index)

    def commit_scope(self, paths: Iterable[str], message: str, parent: str) -> str:
        """Commit what the working tree has at *paths*, as ``git add`` would, on top of *parent*; HEAD and the index follow.

        No hook runs, nothing else is staged or committed, and what was staged elsewhere stays so.
        """
        named = [os.fsencode(path) for path in paths]
        with tempfile.TemporaryDirectory() as folder:
            env = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.run("read-tree", parent, env=env)
            self._add(named, env)
            tree = self.text("write-tree", env=env)
        commit = self._commit(tree, message, parent)
        self.run("update-ref", "-m", "dicast autoresearch: keep", "HEAD", commit, parent)
        self.run("update-index", "-z", "--index-info", data=self._lines(commit, named))
        return commit

    def _add(self, named: Sequence[bytes], env: Mapping[str, str]) -> None:
        there = [path for path in named if os.path.lexists(os.fsencode(self.root) + b"/" + path)]
        gone = [path for path in named if path not in set(there)]
        if there:
            data = b"".join(path + b"\0" for path in there)
            self.run("add", "-f", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul", data=data, env=env)
        if gone:
            data = b"".join(b"0 " + b"0" * 40 + b"\t" + path + b"\0" for path in gone)
            self.run("update-index", "-z", "--index-info", data=data, env=env)

    def _lines(self, commit: str, named: Sequence[bytes]) -> bytes:
        """The index's lines for *named* as *commit* has them."""
        listed = self.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        have = {line.partition(b"\t")[2]: line.partition(b"\t")[0].split(b" ") for line in listed if line}
        lines = []
        for path in named:
            mode, _, blob = have.get(path, (b"0", b"", b"0" * 40))
            lines.append(b"%b %b\t%b\0" % (mode, blob, path))
        return b"".join(lines)

    def keep_discarded(
        self, number: int, files: Mapping[str, tuple[int, str] | None], message: str, parent: str
    ) -> str:
        """Keep a change that is discarded as the commit ``refs/dicast/discarded/N``, on top of *parent*; N is the experiment's number.

        *files* are mode and blob by path, None for one that is gone.
        """
        with tempfile.TemporaryDirectory() as folder:
            env = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.run("read-tree", parent, env=env)
            lines = []
            for path, found in files.items():
                mode, blob = (0, "0" * 40) if found is None else found
                kind = 0o120000 if stat.S_ISLNK(mode) else 0o100755 if mode & 0o100 else 0o100644
                lines.append(b"%o %b\t%b\0" % (kind if found else 0, blob.encode(), os.fsencode(path)))
            # a file where a folder was, and the other way round
            gone = [line for line in lines if line.startswith(b"0 ")]
            for some in (gone, [line for line in lines if not line.startswith(b"0 ")]):
                self.run("update-index", "-z", "--replace", "--index-info", data=b"".join(some), env=env)
            tree = self.text("write-tree", env=env)
        commit = self._commit(tree, message, parent)
        self.run("update-ref", f"{DISCARDED}/{self._free(number)}", commit)
        return commit

    def restore_paths(self, paths: Sequence[str], commit: str) -> None:
        """Bring *paths*, in the working tree and the index, back to what they are in *commit*; what is not in it is removed."""
        have = {
            line for line in self.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split(b"\0") if line
        }
        named = [os.fsencode(path) for path in paths]
        there = [path for path in named if path in have]
        for path in (path for path in named if path not in have):
            Path(os.fsdecode(os.fsencode(self.root) + b"/" + path)).unlink(missing_ok=True)
        if there:
            data = b"".join(path + b"\0" for path in there)
            self.run("checkout", "-q", commit, "--pathspec-from-file=-", "--pathspec-file-nul", data=data)
        self.run("update-index", "-z", "--index-info", data=self._lines(commit, named))

    def _free(self, number: int) -> str:
        """The name for the discarded change *number*: none that was kept is ever replaced."""
        taken = self.text("for-each-ref", "--format=%(refname)", f"{DISCARDED}/").splitlines()
        names = (f"{number}-{more}" if more else f"{number}" for more in range(len(taken) + 1))
        return next(name for name in names if f"{DISCARDED}/{name}" not in taken)

    def _commit(self, tree: str, message: str, parent: str) -> str:
        env: dict[str, str] = {}
        for field, value in _NOBODY.items():
            if not _git(("config", f"user.{field}"), self.root, None, None).stdout.strip():
                env |= {f"GIT_{who}_{field.upper()}": value for who in ("AUTHOR", "COMMITTER")}
        made = self.run("commit-tree", tree, "-p", parent, "-F", "-", data=message.encode(), env=env)
        return os.fsdecode(made).strip()


def _git(
    words: Sequence[str], folder: Path, data: bytes | None, env: Mapping[str, str] | None
) -> subprocess.CompletedProcess[bytes]:
    """Run git without a prompt, and without what the environment says of another repository."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(env or {})}
    options = (
        "-c",
        "core.quotePath=false",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "commit.gpgSign=false",
        "-c",
        "gc.auto=0",
    )
    return subprocess.run(
        ["git", *options, *words],
        cwd=folder,
        env=own,
        input=data if data is not None else b"",
        capture_output=True,
        check=False,
    )


def open_repository(folder: Path) -> Git:
    """The repository that *folder* belongs to.

    :raises ConfigError: where there is none, it has no commit or no working tree, or something is going on in it.
    """
    if shutil.which("git") is None:
        raise ConfigError("there is no git on the PATH: install it, autoresearch keeps and restores by it")
    found = _git(("rev-parse", "--show-toplevel"), folder, None, None)
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigError(f"{folder} is in no working tree of git: {' '.join(said)}")
    git = Git(Path(os.fsdecode(found.stdout).rstrip("\n")))
    if _git(("rev-parse", "--verify", "-q", "HEAD^{commit}"), git.root, None, None).returncode:
        raise ConfigError(
            f"{git.root} has no commit yet: make a first one, a change has to have something to go back to"
        )
    for name in _BUSY:
        if git.path(name).exists():
            raise ConfigError(f"{git.root} is in the middle of something ({name}): finish or abort it first")
    return git
