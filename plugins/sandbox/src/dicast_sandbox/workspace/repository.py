"""Checkouts of git repositories: the files of one commit, without the history."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import attrs

from dicast import ConfigError, nearest

from .archive import FORMAT, Archive

_SUBMODULE, _LINK, _EXECUTABLE = "160000", "120000", "100755"
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")
_INSTALL = "git is not installed, and 'repository' needs it; apt install git, or give a folder as 'template'"


@attrs.frozen
class Entry:
    """File of a commit."""

    mode: str
    sha: str
    size: int
    name: str


def resolve_commit(path: Path, ref: str) -> str:
    """Return the id of the commit *ref* in the repository at *path*.

    :raises ConfigError: if there is no repository, or no such commit in it.
    """
    if "://" in str(path) or ":/" in str(path):
        raise ConfigError(f"the repository {path} is not a folder; clone it first: dicast fetches nothing")
    if not path.is_dir():
        raise ConfigError(f"the repository {path} is not a folder")
    _git(path, "rev-parse", "--git-dir")
    try:
        return _git(path, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").decode().strip()
    except ConfigError as error:
        names = _git(path, "for-each-ref", "--format=%(refname:short)").decode(errors="replace").split()
        similar = nearest(ref, names)
        suggestion = f"; did you mean {similar!r}?" if similar else ""
        raise ConfigError(f"the repository {path} has no commit {ref!r}{suggestion}") from error


def checkout(path: Path, commit: str, limit: int) -> Archive:
    """Return the files of *commit*, at most *limit* bytes.

    ``git archive`` would not do: it omits files that the repository marks as ``export-ignore``, often its tests.

    :raises ConfigError: if there are more bytes, or git cannot read them.
    """
    entries = list(_parse_entries(_git(path, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)))
    size = sum(entry.size for entry in entries)
    if size > limit:
        raise ConfigError(f"{path} has {size} bytes at {commit[:12]}, more than the {limit} that its profile allows")
    time = int(_git(path, "log", "-1", "--format=%ct", commit))
    ids = "".join(f"{entry.sha}\n" for entry in entries if entry.mode != _SUBMODULE)
    contents = BytesIO(_git(path, "cat-file", "--batch", "--buffer", stdin=ids.encode()))
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=FORMAT) as tar:
        for entry in entries:
            _add_entry(tar, entry, time, contents)
    return Archive(commit, packed.getvalue())


def _parse_entries(listed: bytes) -> Iterator[Entry]:
    for line in filter(None, listed.split(b"\0")):
        about, _, name = line.partition(b"\t")
        mode, _, sha, size = about.decode().split()
        yield Entry(mode, sha, int(size) if size.isdecimal() else 0, os.fsdecode(name))


def _add_entry(tar: tarfile.TarFile, entry: Entry, time: int, contents: BytesIO) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mtime, info.mode = time, 0o755 if entry.mode in (_EXECUTABLE, _SUBMODULE) else 0o644
    if entry.mode == _SUBMODULE:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
        return
    contents.readline()  # header: the id, the type, the size
    content = contents.read(entry.size)
    contents.read(1)  # a line end
    if entry.mode == _LINK:
        info.type, info.linkname = tarfile.SYMTYPE, os.fsdecode(content)
        tar.addfile(info)
    else:
        info.size = len(content)
        tar.addfile(info, BytesIO(content))


def _git(path: Path, *words: str, stdin: bytes = b"") -> bytes:
    """Run git and return its output; *path* itself has to be the repository, not a folder above it, and git fetches nothing."""
    git = shutil.which("git")
    if git is None:
        raise ConfigError(_INSTALL)
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    environment |= {"GIT_CEILING_DIRECTORIES": str(path.resolve().parent), "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    done = subprocess.run(  # noqa: S603  # git, with the commit after --end-of-options
        [git, "-C", str(path), *words], input=stdin, capture_output=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise ConfigError(f"the repository {path} cannot be read: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
