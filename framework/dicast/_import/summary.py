"""The report of an import for a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._init.written import one_comment
from ..toolkit.terminal import Drawing
from ..toolkit.text_table import WIDTH, TextTable
from .inspection import NUMBERS, ImportedFile

MOST_FILES = 20
"""The number of files that the report lists; ``--json`` has all."""

_COLUMNS = ("sessions", "turns", "messages", "calls", "results", "failed_results")


def summary_lines(files: Sequence[ImportedFile]) -> Iterator[str | Drawing]:
    """Yield the lines of the report: a table of the files, totals, and the files that were left out."""
    readable = [file for file in files if file.is_known]
    yield f"{_count(len(files), 'file')}: {len(readable):,} of known formats, {len(files) - len(readable):,} left out"
    heads = ["file", "format", *(column.replace("_", " ") for column in _COLUMNS), "failed"]
    rows = [_row(file) for file in readable[:MOST_FILES]]
    if len(readable) > 1:
        rows.append(["all", f"{len({file.component for file in readable})} formats", *_sums(readable)])
    table = TextTable(heads, rows)
    yield Drawing(table, [*table.lines(WIDTH)])
    if len(readable) > MOST_FILES:
        yield f"… and {len(readable) - MOST_FILES:,} more files (--json lists all)"
    versions = dict.fromkeys(f"{file.title} {file.version}" for file in readable if file.version)
    if versions:
        yield f"versions: {', '.join(versions)}"
    yield from _named("models", (file.counts.models for file in readable))
    yield from _named("recorded scores", (file.counts.recorded_scores for file in readable))
    yield from _named("marked", (file.counts.marked for file in readable))
    yield from _named("unknown shapes", (file.counts.unknown for file in readable))
    yield from _named("secrets and personal data", (file.counts.secrets for file in readable))
    unmatched = sum(file.counts.numbers["unmatched"] for file in readable)
    if unmatched:
        yield f"results without a call: {unmatched:,}"
    for file in readable[:MOST_FILES]:
        yield from (f"{one_comment(file.path.name)}: {note}" for note in file.counts.notes)
    yield from _left_out([file for file in files if not file.is_known])


def _row(file: ImportedFile) -> list[str | int]:
    counts = file.counts
    return [
        one_comment(file.path.name, 40),
        file.component,
        *(counts.numbers[name] for name in _COLUMNS),
        counts.failed,
    ]


def _sums(files: Sequence[ImportedFile]) -> list[int]:
    totals = {name: sum(file.counts.numbers[name] for file in files) for name in NUMBERS}
    return [*(totals[name] for name in _COLUMNS), sum(file.counts.failed for file in files)]


def _named(title: str, counts: Iterable[Mapping[str, int]]) -> Iterator[str]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    if total:
        yield f"{title}: {', '.join(f'{count:,} {one_comment(name, 60)}' for name, count in total.most_common())}"


def _left_out(files: Sequence[ImportedFile]) -> Iterator[str]:
    if files:
        yield f"left out: {_count(len(files), 'file')}"
        yield from (f"  {one_comment(file.path, 100)}: {one_comment(file.reason, 300)}" for file in files[:MOST_FILES])
        if len(files) > MOST_FILES:
            yield f"  … and {len(files) - MOST_FILES:,} more (--json lists all)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
