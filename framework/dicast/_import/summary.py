"""The report of an import for a reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import commonprefix
from pathlib import Path

from .._init.written import one_comment
from ..toolkit.installing import with_one_command
from ..toolkit.printable import one_line, short_name
from ..toolkit.terminal import Drawing, Line
from ..toolkit.text_table import WIDTH, TextTable
from .inspection import ImportedFile

MOST_FILES = 8
"""The number of files up to which each file has a row of its own without ``--full``."""

MOST_LINES = 4
"""The number of lines of notes, and of files left out, without ``--full``."""

_MOST_NAMES = 6
"""The number of names of a line without ``--full``."""

_LONGEST, _LONGEST_NEXT_TO_ROWS = 29, 24
"""The most characters of the name of a file in the table, without and with a column of rows: the table then fits 80 columns."""

_COLUMNS = ("sessions", "turns", "calls", "results")


def summary_parts(files: Sequence[ImportedFile], *, is_full: bool = False) -> Iterator[str | Line | Drawing]:
    """Yield the lines of the report: a table of the formats, notes, and the files that were left out.

    With *is_full* each file has a row of its own, and no list is cut.
    """
    readable = [file for file in files if file.is_known]
    left_out = [file for file in files if not file.is_known]
    yield Line(f"{_count(len(files), 'file')}: {len(readable):,} of known formats, {len(left_out):,} left out")
    if readable:
        table = _table(readable, with_files=is_full or len(readable) <= MOST_FILES)
        yield Drawing(table, [*table.lines(WIDTH)])
    yield from map(Line, _content_lines(readable, is_full=is_full))
    yield from _left_out(left_out, is_full=is_full)


def _content_lines(files: Sequence[ImportedFile], *, is_full: bool) -> Iterator[str]:
    if failed := sum(file.counts.numbers["failed_results"] for file in files):
        yield f"tool results with a failure: {failed:,}"
    if failed := sum(file.counts.failed_model_calls for file in files):
        yield f"model calls that failed: {failed:,}"
    unmatched = {"unmatched_calls": "tool calls without a result", "unmatched": "tool results without a call"}
    for name, title in unmatched.items():
        if count := sum(file.counts.numbers[name] for file in files):
            yield f"{title}: {count:,}"
    named = {
        "files by version": ({f"{file.component} {file.version}": 1} for file in files if file.version),
        "models": (file.counts.models for file in files),
        "recorded scores": (file.counts.recorded_scores for file in files),
        "secrets and personal data": (file.counts.secrets for file in files),
    }
    for title, counts in named.items():
        yield from _named(title, counts, is_full=is_full)
    yield from _limited([*_marks(files), *_notes(files)], "note", is_full=is_full)


def _table(files: Sequence[ImportedFile], *, with_files: bool) -> TextTable:
    """Return a table with a row for each format, with *with_files* for each file too, and for all."""
    rows: list[list[str | int]] = []
    columns = _COLUMNS if not any(file.counts.numbers["rows"] for file in files) else ("rows", *_COLUMNS)
    formats = list(dict.fromkeys(file.component for file in files))
    longest = _LONGEST if columns == _COLUMNS else _LONGEST_NEXT_TO_ROWS
    names = _displayed_names(files, longest) if with_files else {}
    for component in formats:
        members = [file for file in files if file.component == component]
        rows.append([component, *_sums(members, columns)])
        if with_files:
            rows += [[f"  {names[file.path]}", *_sums([file], columns)] for file in members]
    if len(formats) > 1:
        rows.append(["all", *_sums(files, columns)])
    return TextTable(["format", "files", *columns, "failed"], rows, uncut=("format",))


def _displayed_names(files: Sequence[ImportedFile], longest: int) -> Mapping[Path, str]:
    """Return a name of at most *longest* characters for each file, different for different files.

    It is the name of the file; for a folder that is one session, also the name of the folder above. Files with equal names also have the
    names of folders above, as many as make them different.
    """
    parts = {file.path: 1 + file.path.is_dir() for file in files}
    while True:
        names = {path: "/".join(path.parts[-count:]) for path, count in parts.items()}
        counts = Counter(names.values())
        equal = [path for path, name in names.items() if counts[name] > 1 and parts[path] < len(path.parts)]
        if not equal:
            break
        for path in equal:
            parts[path] += 1
    cut_names = {path: short_name(name, longest) for path, name in names.items()}
    counts = Counter(cut_names.values())
    alike = {
        cut: [names[path] for path in names if cut_names[path] == cut] for cut, count in counts.items() if count > 1
    }
    for path, name in names.items():
        if others := [other for other in alike.get(cut_names[path], ()) if other != name]:
            shared = max(len(commonprefix([name, other])) for other in others)  # noqa: RUF071  # by character
            cut_names[path] = _cut_around(name, shared, longest)
    return cut_names


def _cut_around(name: str, place: int, longest: int) -> str:
    """Return *name* in one line, cut at its start and its end so that the character at *place* stays."""
    text = one_line(name)
    start = place - longest // 2
    if start <= 0:
        return f"{text[: longest - 1]}…"
    if start + longest >= len(text):
        return f"…{text[1 - longest :]}"
    return f"…{text[start + 1 : start + longest - 1]}…"


def _sums(files: Sequence[ImportedFile], columns: Sequence[str]) -> list[int]:
    totals = (sum(file.counts.numbers[name] for file in files) for name in columns)
    return [len(files), *totals, sum(file.counts.failed for file in files)]


def _named(title: str, counts: Iterable[Mapping[str, int]], *, is_full: bool) -> Iterator[str]:
    """Yield a line with the most frequent names and their counts."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    if total:
        texts = [f"{count:,} {one_comment(name, 60)}" for name, count in total.most_common()]
        most = len(texts) if is_full else _MOST_NAMES
        rest = [f"+ {len(texts) - most:,} more (--full)"] if len(texts) > most else []
        yield f"{title}: {', '.join([*texts[:most], *rest])}"


def _marks(files: Sequence[ImportedFile]) -> Iterator[str]:
    """Yield a line for each kind of marked content, with its count and its first place. Unknown shapes come first."""
    marked, unknown, places = Counter[str](), Counter[str](), dict[str, str]()
    for file in files:
        marked.update(file.counts.marked)
        unknown.update(file.counts.unknown)
        for kind in file.counts.marked:
            places.setdefault(kind, _place(file, kind))
    for kind, count in sorted(marked.items(), key=lambda item: (item[0] not in unknown, -item[1])):
        title = "unknown shape" if kind in unknown else "marked"
        yield f"{title}: {count:,} {one_comment(kind, 60)}, first at {places[kind]}"


def _place(file: ImportedFile, kind: str) -> str:
    place = file.counts.first_places.get(kind, str(file.path))
    return one_comment(place.replace(str(file.path.absolute()), str(file.path)), 100)


def _notes(files: Sequence[ImportedFile]) -> Iterator[str]:
    """Yield the notes of the sources. Notes that differ only in a number or the name of the file share a line."""
    totals: dict[str, tuple[str, int]] = {}
    for file in files:
        for note in file.counts.notes:
            if any(note.startswith(f"{kind} marked ") for kind in file.counts.marked):
                continue
            kind = re.sub(r"\d[\d,]*", "0", note.replace(str(file.path), ""))
            kind = re.sub(r"(?<=\w)s\b", "", kind)
            first, count = totals.get(kind, (f"{one_comment(file.path.name)}: {note}", 0))
            totals[kind] = (first, count + 1)
    for first, count in totals.values():
        yield first if count == 1 else f"{first} (and {_count(count - 1, 'more file')} alike)"


def _left_out(files: Sequence[ImportedFile], *, is_full: bool) -> Iterator[str | Line]:
    """Yield the files that no source reads: broken files of known formats first, then files whose source can be installed."""
    if files:
        yield Line(f"left out: {_count(len(files), 'file')}")
        ordered = sorted(files, key=lambda file: (not file.is_broken, not file.extra))
        reasons, _ = with_one_command([file.reason for file in ordered])  # the command follows the pipelines
        lines = [
            f"  {one_comment(file.path, 100)}: {one_comment(reason, 300)}"
            for file, reason in zip(ordered, reasons, strict=True)
        ]
        yield from map(Line, _limited(lines, "file", is_full=is_full))


def _limited(lines: Sequence[str], noun: str, *, is_full: bool) -> Iterator[str]:
    most = len(lines) if is_full else MOST_LINES
    yield from lines[:most]
    if len(lines) > most:
        yield f"+ {_count(len(lines) - most, f'more {noun}')} (--full)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
