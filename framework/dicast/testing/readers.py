"""Conformance of readers: sources of sessions that another tool recorded."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .._kernel.source.source import iterate
from .._kernel.values import Due
from .._kernel.values.errors import ConfigError, DataError
from .pipeline import Bench
from .sources import SourceConformance

_COPIES = (10, 60)
_GROWTH = 1.5


class ReaderConformance(SourceConformance):
    """Checks for a source of recorded sessions, based on :class:`~dicast.toolkit.session_source.SessionSource` or not.

    The option ``path`` names one of the ``files``: a file with whole sessions. Next to the attributes of
    :class:`SourceConformance`:

    - ``unknown``: a text like that file, with one role, part or record type that the format does not document.
    - ``failed``: a text like that file, with one record that failed where it was recorded; leave it out if the format has no failed records.
    """

    unknown: str
    failed: str | None = None

    @property
    def file(self) -> str:
        """The name of the file with whole sessions."""
        return str(self.options["path"])

    def read(self, bench: Bench, text: str | None = None, **options: object) -> tuple[list[Any], Any]:
        """Return the items and the counts of the source, with *text* as the content of its file."""
        if text is not None:
            (bench.folder / self.file).write_text(text, encoding="utf-8")

        async def work(live: Any) -> tuple[list[Any], Any]:
            live.check()
            return [item async for item in iterate(live)], live.read_counts()

        component = bench.build(self.kind, self.named, {**self.options, **options})
        return self.opened(component, bench.folder, work)

    def test_counts_add_up_with_the_subjects(self, bench: Bench) -> None:
        """``read`` counts as many sessions, turns and calls as there are subjects, and each result once."""
        items, counts = self.read(bench, subjects=["tool_cycle", "turn", "session"])
        kinds = [kind for kind, _ in self._keys(items)]
        contents: Mapping[str, int] = counts.details["contents"]
        totals = {kind: kinds.count(kind) for kind in ("session", "turn", "tool_cycle")}
        assert totals == {
            "session": contents["sessions"],
            "turn": contents["turns"],
            "tool_cycle": contents["calls"],
        }, f"the subjects are {totals}, and read_counts() has {dict(contents)}"
        matched = contents["calls"] - contents["unmatched_calls"]
        assert contents["results"] - contents["unmatched_results"] == matched, f"results and calls differ: {contents}"
        assert contents["failed_results"] <= contents["results"]

    def test_unknown_shapes_are_marked_and_counted(self, bench: Bench) -> None:
        """``unknown: mark`` reads a shape that the format does not document as a marker; ``error`` names its line."""
        items, counts = self.read(bench, self.unknown)
        assert items, "the file with an unknown shape gives no subject"
        assert sum(counts.marked.values()) > 0, "the unknown shape is in no count of 'marked'"
        with pytest.raises(DataError) as caught:
            self.read(bench, unknown="error")
        assert all(problem.file and problem.line for problem in caught.value.problems), "a problem has no place"

    def test_a_failed_record_is_a_failed_subject(self, bench: Bench) -> None:
        """A record that failed where it was recorded becomes a failed subject; the other records are judged."""
        if self.failed is None:
            pytest.skip("the format has no failed records")
        items, counts = self.read(bench, self.failed)
        failures = [item for item in items if isinstance(item, Due) and item.failure is not None]
        assert (len(failures), counts.failed) == (1, 1), f"{len(failures)} failed subjects, counted {counts.failed}"

    def test_ids_are_unique_over_a_folder(self, bench: Bench) -> None:
        """The same session in two files of a folder is two sessions with ids of their own."""
        self._copies(bench, 2)
        items, counts = self.read(bench, path="copies", subjects=["tool_cycle", "turn", "session"])
        keys = self._keys(items)
        assert len(set(keys)) == len(keys), f"ids occur twice: {sorted({key for key in keys if keys.count(key) > 1})}"
        assert counts.details["contents"]["sessions"] % 2 == 0

    def test_other_files_of_a_folder_are_named(self, bench: Bench) -> None:
        """A file of another format and an empty file in a folder are left out, and named in the notes."""
        folder = self._copies(bench, 1)
        (folder / "notes.md").write_text("# Notes\n", encoding="utf-8")
        (folder / "empty.file").write_text("", encoding="utf-8")
        notes = " ".join(self.read(bench, path="copies")[1].notes)
        assert "notes.md" in notes, f"the notes do not name the file notes.md: {notes!r}"
        assert "empty.file" in notes, f"the notes do not name the empty file: {notes!r}"

    @pytest.mark.parametrize("text", ["", "# Notes\n", "{", "[1, 2]\n"])
    def test_a_file_of_another_format_is_refused(self, bench: Bench, text: str) -> None:
        """An empty file and a file of another format are refused before anything is judged."""
        with pytest.raises((ConfigError, DataError)):
            self.read(bench, text)

    def test_a_file_that_was_cut_loses_nothing_in_silence(self, bench: Bench) -> None:
        """If the end of a file is missing, the cut is marked, or the file is refused with the place."""
        text = self.files[self.file].rstrip()
        for length in sorted({len(text) - 1, len(text) - 3, len(text) * 9 // 10}):
            try:
                _, counts = self.read(bench, text[:length])
            except DataError as error:
                assert all(problem.file for problem in error.problems), "a problem has no place"  # noqa: PT017  # or it is read
            else:
                assert counts.marked, f"a file cut after {length} of {len(text)} characters is read without a mark"

    def test_memory_is_flat_in_the_number_of_sessions(self, bench: Bench) -> None:
        """Six times as many files of sessions take no more memory."""
        peaks: list[int] = []
        for copies in _COPIES:
            self._copies(bench, copies)
            if not peaks:
                self.read(bench, path="copies")  # imports and caches
            # the lowest of three: other threads and uncollected cycles can raise one of them
            peaks.append(min(self._peak(bench) for _ in range(3)))
        assert peaks[1] <= peaks[0] * _GROWTH + 2**20, f"{_COPIES} files took at most {peaks} bytes"

    def _peak(self, bench: Bench) -> int:
        async def work(live: Any) -> int:
            live.check()
            count = 0
            async for _ in iterate(live):
                count += 1
            return count

        component = bench.build(self.kind, self.named, {**self.options, "path": "copies"})
        tracemalloc.start()
        try:
            self.opened(component, bench.folder, work)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def _keys(self, items: list[Any]) -> list[tuple[str, str]]:
        subjects = [item.subject if isinstance(item, Due) else item for item in items]
        return [(subject.kind, subject.id) for subject in subjects]

    def _copies(self, bench: Bench, count: int) -> Path:
        folder = bench.folder / "copies"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        suffix = Path(self.file).suffix
        for number in range(count):
            shutil.copy(bench.folder / self.file, folder / f"{number:04}{suffix}")
        return folder
