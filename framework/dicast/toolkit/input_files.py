"""The files of an input: one file, standard input, or the files of a folder that have a format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from dicast import DataError, Problem, nearest

from .beginning import Beginning, read_beginning
from .encodings import UTF_8
from .input_file import InputFile

_NAMED = 5


@attrs.frozen
class InputFiles:
    """The files below *root*, by their relative *names* in order; the only name of a single file is empty. *label* names the input in messages.

    *others* are the names of files that the format does not detect, with the reason for each. *read_elsewhere* has the paths of files that
    another source of the same run reads: they are not left out.
    """

    root: Path
    label: str
    names: tuple[str, ...] = ("",)
    others: tuple[tuple[str, str], ...] = ()
    read_elsewhere: frozenset[Path] = frozenset()

    @property
    def paths(self) -> frozenset[Path]:
        """The absolute paths of the files."""
        return frozenset((self.root / name if name else self.root).resolve() for name in self.names)

    @property
    def left_out(self) -> frozenset[Path]:
        """The absolute paths of the files that the format does not detect."""
        return frozenset((self.root / name).resolve() for name, _ in self.others)

    @contextmanager
    def opened(self, name: str) -> Iterator[InputFile]:
        """Open the file *name* for any number of passes."""
        with InputFile.opened(self.root / name if name else self.root) as file:
            yield file if name else attrs.evolve(file, label=self.label)

    def notes(self, title: str) -> Iterator[str]:
        """Yield a note about the files that are not *title* (``a Codex session``)."""
        others = [name for name, _ in self.others if (self.root / name).resolve() not in self.read_elsewhere]
        if others:
            count = len(others)
            names = ", ".join(others[:_NAMED]) + ", …" * (count > _NAMED)
            yield f"{count:,} file{'s' * (count != 1)} of the folder left out, not {title}: {names}"


def find_files(path: Path, detects: Callable[[Beginning], object], title: str) -> InputFiles:
    """Return the file at *path*, or all files below the folder *path* that *detects* accepts, in the order of their names.

    Links to folders are not followed. *title* names the format in messages: ``a Codex session``.

    :raises DataError: if there is no such file, or no file of the folder has the format.
    """
    if not path.is_dir():
        return InputFiles(path, str(path))
    names: list[str] = []
    others: list[tuple[str, str]] = []
    for name in _walk(path):
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
    return InputFiles(path, str(path), tuple(names), tuple(others))


def refuse_missing(path: Path) -> None:
    """Refuse a *path* that does not exist.

    :raises DataError: naming the nearest name in its folder.
    """
    if str(path) == "-" or path.exists():
        return
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise DataError(Problem("no such file or folder", str(path), hint=nearest(path.name, names)))


def _walk(folder: Path) -> Iterator[str]:
    for base, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders.sort()
        for file in sorted(files):
            yield Path(base, file).relative_to(folder).as_posix()


def _refuse_folder(error: OSError) -> None:
    raise DataError(Problem(f"the folder cannot be read: {error.strerror}", str(error.filename))) from error
