"""The working tree at a moment, byte for byte: what changed since, and bringing it back.

Contents go into the repository's object database as they are, without git's filters, so that line endings, ignored files and what
git would leave out come back too. Files that did not change since the last look are not read again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from dicast import ConfigError

from .git import Git
from .session import OWN

LARGEST = 200_000_000
"""A file of more bytes is known by its size and times alone; a change of it cannot be undone."""

_NEVER = (".git", *OWN)


@attrs.frozen
class Entry:
    """A file or a link: its *mode*, the *blob* with its bytes, and the *signature* that says whether it was written since."""

    mode: int
    blob: str | None
    signature: tuple[int, ...] = attrs.field(eq=False)


@attrs.frozen
class Snapshot:
    """Every file below the root by its path, and every folder; *nested* are repositories inside, by their own state."""

    files: Mapping[str, Entry]
    folders: frozenset[str]
    nested: Mapping[str, str]

    def changed(self, later: Snapshot) -> list[str]:
        """The paths that are not the same *later*, nested repositories included, in order."""
        paths = {*self.files, *later.files}
        inner = {*self.nested, *later.nested}
        return sorted(
            [path for path in paths if self.files.get(path) != later.files.get(path)]
            + [path for path in inner if self.nested.get(path) != later.nested.get(path)]
        )


def take(git: Git, before: Snapshot | None = None) -> Snapshot:
    """The working tree of *git* now; what is as *before* is not read again."""
    known = {} if before is None else before.files
    files: dict[str, Entry] = {}
    folders: set[str] = set()
    nested: dict[str, str] = {}
    fresh: dict[str, os.stat_result] = {}
    for path, found in _walk(git.root):
        if found is None:
            nested[path] = git.state_of(path)
        elif stat.S_ISDIR(found.st_mode):
            folders.add(path)
        else:
            old = known.get(path)
            if old is not None and old.signature == _signature(found):
                files[path] = old
            else:
                fresh[path] = found
    blobs = git.store(git.root, [path for path, found in fresh.items() if _is_stored(found)])
    for path, found in fresh.items():
        files[path] = Entry(_mode(found), blobs.get(path), _signature(found))
    return Snapshot(files, frozenset(folders), nested)


def restore(git: Git, wanted: Snapshot, now: Snapshot, only: Iterable[str] | None = None) -> None:
    """Bring the working tree from *now* back to *wanted*, byte for byte; *only* these paths where they are given.

    :raises ConfigError: naming what cannot be brought back; the rest is.
    """
    paths = wanted.changed(now) if only is None else only
    lost = []
    for path in paths:
        if path in wanted.nested or path in now.nested:
            lost.append(path)
            continue
        entry = wanted.files.get(path)
        place = git.root / path
        if entry is None:
            _remove(place)
        elif entry.blob is None:
            lost.append(path)
        else:
            _put(git, place, entry)
    for folder in sorted(now.folders - wanted.folders, key=len, reverse=True):
        with suppress(OSError):  # something is in it that is none of ours
            (git.root / folder).rmdir()
    for folder in wanted.folders - now.folders:
        (git.root / folder).mkdir(parents=True, exist_ok=True)
    if lost:
        raise ConfigError(f"these changed and cannot be brought back, look at them yourself: {', '.join(lost)}")


def _walk(root: Path) -> Iterable[tuple[str, os.stat_result | None]]:
    """Every path below *root* with what it is; None for a repository inside."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                path = f"{folder}{entry.name}"
                if path in _NEVER:
                    continue
                found = entry.stat(follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode):
                    if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                        yield path, found
                elif os.path.lexists(f"{entry.path}/.git"):
                    yield path, None
                else:
                    yield path, found
                    waiting.append(f"{path}/")


def _is_stored(found: os.stat_result) -> bool:
    return found.st_size <= LARGEST


def _mode(found: os.stat_result) -> int:
    return stat.S_IFLNK if stat.S_ISLNK(found.st_mode) else stat.S_IFREG | stat.S_IMODE(found.st_mode)


def _signature(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        place.unlink()


def _put(git: Git, place: Path, entry: Entry) -> None:
    """Write what *entry* is to *place*, in one step."""
    assert entry.blob is not None  # told by the caller
    for above in reversed(place.relative_to(git.root).parents):
        folder = git.root / above
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            folder.unlink()  # it stands where a folder was
        folder.mkdir(exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        _remove_tree(place)
    data = git.blob(entry.blob)
    hidden = place.with_name(f".{place.name}.dicast")
    _remove(hidden)
    if stat.S_ISLNK(entry.mode):
        hidden.symlink_to(os.fsdecode(data))
    else:
        hidden.write_bytes(data)
        hidden.chmod(stat.S_IMODE(entry.mode))
    hidden.replace(place)


def _remove_tree(place: Path) -> None:
    """Remove folders that are left of what was new there, and nothing else."""
    for folder, _, names in os.walk(place, topdown=False):
        for name in names:
            _remove(Path(folder) / name)
        with suppress(OSError):
            Path(folder).rmdir()
