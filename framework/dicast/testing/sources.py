"""Checks for sources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest

from .._kernel.contract.define import maybe_await
from .._kernel.source.source import SOURCE_ERROR, iterate
from .._kernel.values import Due, ReadCounts, Subject
from .._kernel.values.errors import RequestError
from .conformance import Conformance, path_option, refuses_path
from .pipeline import Bench

_PLACES = 8
"""The number of places at which a letter of a file is changed."""


class SourceConformance(Conformance):
    """Checks for a source. Name it with ``source = "plugin/name"``; pass it data in ``files`` and ``options``."""

    kind = "source"
    source: str

    def test_yields_subjects_one_by_one(self, component: Any, bench: Bench) -> None:
        """Subjects come from an iterator, so that memory does not grow with the data; each is a Subject with a unique id."""
        subjects = self.opened(component, bench.folder, self._all)
        assert subjects, "the source yields nothing; give it data in 'files' and 'options'"
        assert all(isinstance(subject, Subject) for subject in subjects)
        assert all(isinstance(subject.id, str) and subject.id for subject in subjects), (
            "an id is a text that is not empty"
        )
        keys = [(subject.kind, subject.id) for subject in subjects]
        assert len(set(keys)) == len(keys), f"ids occur twice: {sorted({key for key in keys if keys.count(key) > 1})}"

    def use(self, component: Any, bench: Bench) -> object:
        """Read all subjects; return their failures, and the repr of the live object."""

        async def read(live: Any) -> list[object]:
            items = [item async for item in iterate(live)]
            return [*(item.failure for item in items if isinstance(item, Due)), repr(live)]

        return self.opened(component, bench.folder, read)

    async def _all(self, live: Any) -> list[Any]:
        subjects = live.subjects()
        assert isinstance(subjects, Iterator | AsyncIterator), (
            f"subjects() returns a {type(subjects).__name__}, no iterator"
        )
        return [item.subject if isinstance(item, Due) else item async for item in iterate(live)]

    def test_order_is_stable(self, component: Any, bench: Bench) -> None:
        """Two passes yield the same subjects, so that a run can be resumed."""
        first = self.opened(component, bench.folder, self._twice)
        assert first[0] == first[1], "a second pass over the open source yields other subjects"
        assert self.opened(component, bench.folder, self._all) == first[0], "opened again, it yields other subjects"

    async def _twice(self, live: Any) -> tuple[list[Any], list[Any]]:
        return await self._all(live), await self._all(live)

    def test_shards_are_slices_of_all_subjects(self, component: Any, bench: Bench) -> None:
        """The slices of ``shards``, if the source has it, have each subject once at its place, and a session in one of them."""

        async def read(live: Any) -> Any:
            if not hasattr(live, "shards"):
                return None
            if hasattr(live, "check"):
                await maybe_await(live.check())
            slices = {of: [[*part] for part in live.shards(of)] for of in (1, 2, 3, 50)}
            return await self._all(live), live.total, slices

        result = self.opened(component, bench.folder, read)
        if result is None:
            pytest.skip(f"{self.named} offers no slices")
        subjects, total, slices = result
        assert total == len(subjects), f"{self.named} has the total {total}, but {len(subjects)} subjects"
        for of, parts in slices.items():
            assert len(parts) == of, f"{self.named}: shards({of}) returns {len(parts)} slices"
            placed = [
                (place, item.subject if isinstance(item, Due) else item) for part in parts for place, item in part
            ]
            assert sorted(place for place, _ in placed) == [*range(total)], "places are 0, 1, 2 … once each"
            assert all(subjects[place] == subject for place, subject in placed), "a place has another subject"
            for part in parts:
                places = [place for place, _ in part]
                assert places == sorted(places), "the places of a slice ascend"
            sessions = [{subjects[place].session_id for place, _ in part} - {None} for part in parts]
            assert sum(map(len, sessions)) == len(set().union(*sessions)), "a session is in two slices"

    def test_subjects_are_json(self, component: Any, bench: Bench) -> None:
        """Subjects are stored in the ledger, so they have to be JSON."""
        for subject in self.opened(component, bench.folder, self._all):
            orjson.dumps([subject.input, subject.output, subject.reference, dict(subject.context)])

    def test_kinds_are_those_it_declares(self, component: Any, bench: Bench) -> None:
        """Metrics judge the finest of the ``kinds``."""
        declared = tuple(getattr(component, "kinds", ()))
        kinds = {subject.kind for subject in self.opened(component, bench.folder, self._all)}
        assert not declared or kinds <= set(declared), f"yields {sorted(kinds)} and declares {declared}"

    def test_digest_is_stable(self, component: Any, bench: Bench) -> None:
        """``check`` returns the same digest for the same data."""

        async def digests(live: Any) -> set[object]:
            check = getattr(live, "check", lambda: "no check")
            return {await maybe_await(check()), await maybe_await(check())}

        digests_of_passes = self.opened(component, bench.folder, digests) | self.opened(
            component, bench.folder, digests
        )
        assert len(digests_of_passes) == 1, f"check() gives other digests of the same data: {digests_of_passes}"
        assert all(isinstance(digest, str) and digest for digest in digests_of_passes), "check() returns a text"

    def test_digest_changes_with_the_data(self, component: Any, bench: Bench) -> None:
        """``check`` returns another digest for other data: by the digest, a resumed run and a comparison know the data."""
        for name, text in self.files.items():
            before = self._checked(bench)
            for other in _changed(text):
                (bench.folder / name).write_text(other, encoding="utf-8")
                try:
                    digest, subjects = self._checked(bench)
                except RequestError:  # the changed text is not in the format
                    continue
                finally:
                    (bench.folder / name).write_text(text, encoding="utf-8")
                if subjects != before[1]:
                    assert digest != before[0] or digest is None, (
                        f"check() gives the digest {digest!r} for other data of {name} too; digest all data that the subjects have"
                    )
                    break

    def _checked(self, bench: Bench) -> tuple[object, list[Any]]:
        """Return the digest and the subjects; the digest is None if the source has no check."""

        async def read(live: Any) -> tuple[object, list[Any]]:
            digest = await maybe_await(live.check()) if hasattr(live, "check") else None
            return digest, await self._all(live)

        return self.opened(self.built(bench), bench.folder, read)

    def test_read_counts_add_up(self, component: Any, bench: Bench) -> None:
        """``read_counts``, if the source has it, counts the pass before it: its failed records are the records yielded as failed."""

        async def passes(live: Any) -> list[tuple[int, Any]]:
            count = getattr(live, "read_counts", None)
            return [] if count is None else [(await self._failed(live), count()) for _ in range(2)]

        for failed, counts in self.opened(component, bench.folder, passes):
            assert isinstance(counts, ReadCounts), f"read_counts() gives {counts!r}, not ReadCounts"
            assert counts.failed == failed, f"{failed} records were yielded as failed, and read_counts() says {counts}"
        both = [counts for _, counts in self.opened(component, bench.folder, passes)]
        assert all(counts == both[0] for counts in both), f"a second pass gives other counts: {both}"

    async def _failed(self, live: Any) -> int:
        items = [item async for item in iterate(live)]
        failures = [item.failure for item in items if isinstance(item, Due) and item.failure is not None]
        assert all(failure.kind == SOURCE_ERROR for failure in failures), f"a failed record is a {SOURCE_ERROR}"
        return len(failures)

    def test_missing_file_is_a_wrong_request(self, component: Any, bench: Bench) -> None:
        """A path that leads nowhere raises a ConfigError or DataError, never an OSError."""
        if path_option(component):
            options = {**self.options, "path": "there/is/no/such.file"}

            def read() -> None:
                self.opened(bench.build(self.kind, self.named, options), bench.folder, self._all)

            refuses_path(read)


def _changed(text: str) -> Iterator[str]:
    """Yield texts like *text*: without its last lines, and with other letters and digits."""
    lines = text.splitlines(keepends=True)
    yield from ("".join(lines[:-count]) for count in (1, 2) if count < len(lines))
    places = [place for place, letter in enumerate(text) if letter.isalnum()]
    for place in (places[len(places) * share // _PLACES] for share in range(_PLACES) if places):
        letter = text[place]
        other = str(9 - int(letter)) if letter.isdecimal() else letter.swapcase()
        yield f"{text[:place]}{other}{text[place + 1 :]}"
