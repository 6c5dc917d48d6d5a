"""The files of an input: one file, standard input, or the files of a folder that have a format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import attrs

from dicast import DataError, Problem, nearest

from .beginning import Beginning, read_beginning
from .encodings import UTF_8
from .input_file import InputFile
from .session_folders import SessionFolder

_NAMED = 5


@attrs.frozen
class InputFiles:
    """The files below *root*, by their relative *names* in order; the only name of a single file is empty. *label* names the input in messages.

    A name in *folders* is a folder whose files are one session.

    *others* are the names of files that the format does not detect, with the reason for each. *read_elsewhere* has the paths of files that
    another source of the same run reads: they are not left out.
    """

    root: Path
    label: str
    names: tuple[str, ...] = ("",)
    others: tuple[tuple[str, str], ...] = ()
    folders: Mapping[str, SessionFolder] = attrs.field(factory=dict)
    read_elsewhere: frozenset[Path] = frozenset()

    @property
    def paths(self) -> frozenset[Path]:
        """The absolute paths of the files."""
        files = (self.root / name if name else self.root for name in self.names if name not in self.folders)
        parts = (path for folder in self.folders.values() for path in folder.files)
        return frozenset(path.resolve() for path in chain(files, parts))

    @property
    def left_out(self) -> frozenset[Path]:
        """The absolute paths of the files that the format does not detect."""
        return frozenset((self.root / name).resolve() for name, _ in self.others)

    @contextmanager
    def opened(self, name: str) -> Iterator[InputFile]:
        """Open the file *name* for any number of passes, or the files of the folder *name* as one file."""
        if name in self.folders:
            with self.folders[name].opened() as file:
                yield file
            return
        with InputFile.opened(self.root / name if name else self.root) as file:
            yield file if name else attrs.evolve(file, label=self.label)

    def notes(self, title: str) -> Iterator[str]:
        """Yield a note about the files that are not *title* (``a Codex session``)."""
        others = [name for name, _ in self.others if (self.root / name).resolve() not in self.read_elsewhere]
        if others:
            count = len(others)
            names = ", ".join(others[:_NAMED]) + ", …" * (count > _NAMED)
            yield f"{count:,} file{'s' * (count != 1)} of the folder left out, not {title}: {names}"


def find_files(
    path: Path,
    detects: Callable[[Beginning], object],
    title: str,
    session_folders: Callable[[Path, Sequence[str]], Sequence[SessionFolder]] | None = None,
) -> InputFiles:
    """Return the file at *path*, or all files below the folder *path* that *detects* accepts, in the order of their names.

    Links to folders are not followed. *session_folders* returns the folders whose files are one session, from *path* and the names of all files.
    *title* names the format in messages: ``a Codex session``.

    :raises DataError: if there is no such file, or no file of the folder has the format.
    """
    if not path.is_dir():
        return InputFiles(path, str(path))
    names: list[str] = []
    others: list[tuple[str, str]] = []
    names_below = [*_walk(path, others)]
    listed = () if session_folders is None else session_folders(path, names_below)
    folders = {folder.name: folder for folder in listed if _is_detected(folder, detects)}
    first = {folder.files[0]: folder for folder in folders.values()}
    parts = {part for folder in folders.values() for part in folder.files}
    copies = {copy for folder in folders.values() for copy in folder.copies}
    for name in names_below:
        if path / name in first:
            names.append(first[path / name].name)
        if path / name in parts:
            continue
        if path / name in copies:
            others.append((name, "it repeats files of its conversation"))
            continue
        try:
            beginning = read_beginning(path / name, UTF_8)
        except (DataError, OSError) as error:
            others.append((name, str(error)))
            continue
        if detects(beginning):
            names.append(name)
        else:
            others.append((name, "not the format"))
    if not names:
        examples = ", ".join(name for name, _ in others[:_NAMED]) or "no files"
        raise DataError(Problem(f"no file of the folder is {title} (it has {examples})", str(path)))
    return InputFiles(path, str(path), tuple(names), tuple(others), folders)


def _is_detected(folder: SessionFolder, detects: Callable[[Beginning], object]) -> bool:
    try:
        return bool(detects(read_beginning(folder.first, UTF_8)))
    except (DataError, OSError):
        return False


def refuse_missing(path: Path) -> None:
    """Refuse a *path* that does not exist.

    :raises DataError: naming the nearest name in its folder.
    """
    if str(path) == "-" or path.exists():
        return
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise DataError(Problem("no such file or folder", str(path), hint=nearest(path.name, names)))


def _walk(folder: Path, unreadable: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of the files below *folder*, and add each folder that cannot be read to *unreadable*, with the reason."""

    def note(error: OSError) -> None:
        place, reason = Path(str(error.filename)), f"the folder cannot be read: {error.strerror}"
        if place == folder:
            raise DataError(Problem(reason, str(folder))) from error
        unreadable.append((place.relative_to(folder).as_posix(), reason))

    for base, folders, files in os.walk(folder, onerror=note):
        folders.sort()
        for file in sorted(files):
            yield Path(base, file).relative_to(folder).as_posix()
