"""Checks for sinks."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest

from .._kernel.contract.define import maybe_await
from .._kernel.contract.plugin_errors import author_place, in_brackets
from .._kernel.stream.opening import open_component
from .._kernel.values import Entry, Event, Query
from .._kernel.values.read_only import REFUSED, seal_payload
from .conformance import Conformance, context, path_option, refuses_path
from .pipeline import Bench, typical_events_once


class SinkConformance(Conformance):
    """Checks for a sink. Name it with ``sink = "plugin/name"``.

    If the sink writes a file, its option should be ``path``: the checks then test the file too.
    """

    kind = "sink"
    sink: str
    _events: Sequence[Event] | None = None

    @pytest.fixture(autouse=True)
    def _events_to_write(self, events: Sequence[Event]) -> None:
        self._events = events

    @pytest.fixture
    def events(self) -> Sequence[Event]:
        """Return the events of a run with everything that a sink can receive."""
        return typical_events_once()

    def expected_events(self, live: Any, component: Any, events: Sequence[Event]) -> list[Event]:
        """Return the events that the kernel would send to the sink, read-only as in a run."""
        wants = getattr(live, "wants", getattr(component, "wants", ()))
        return [seal_payload(event) for event in events if not wants or event.type in wants]

    def use(self, component: Any, bench: Bench) -> object:
        """Write the events of a run in batches, and close the sink."""
        events = typical_events_once() if self._events is None else self._events

        async def write(live: Any) -> str:
            expected = self.expected_events(live, component, events)
            for start in range(0, len(expected), 7):
                await asyncio.sleep(0)  # a turn of the event loop between calls
                await maybe_await(live.write(expected[start : start + 7]))
            await maybe_await(live.close())
            return repr(live)

        return self.opened(component, bench.folder, write)

    def test_takes_the_events_of_a_run(self, component: Any, bench: Bench, events: Sequence[Event]) -> None:
        """A sink takes events in batches, as in a run, and returns a count or None."""

        async def write(live: Any) -> list[object]:
            expected = self.expected_events(live, component, events)
            batches = [expected[start : start + 7] for start in range(0, len(expected), 7)]
            written = [await maybe_await(live.write(batch)) for batch in batches]
            return [*written, await maybe_await(live.close())]

        counts = self.opened(component, bench.folder, write)
        wrong = [count for count in counts if not (count is None or (type(count) is int and count >= 0))]
        assert not wrong, f"write and close return how many records were written, or None, not {wrong[0]!r}"

    def test_leaves_the_events_as_they_are(self, component: Any, bench: Bench) -> None:
        """All sinks of a run share an event."""
        try:
            self.use(component, bench)
        except TypeError as error:
            if REFUSED not in str(error):
                raise
            pytest.fail(
                f"{self.named} changes an event{in_brackets(author_place(error))}; change a copy (copy.deepcopy)"
            )

    def test_close_twice_does_nothing_more(self, component: Any, bench: Bench, events: Sequence[Event]) -> None:
        """The kernel may close a sink again, and leaving ``open`` closes it too."""

        async def close(live: Any) -> object:
            await maybe_await(live.write(self.expected_events(live, component, events)))
            await maybe_await(live.close())
            return await maybe_await(live.close())

        assert self.opened(component, bench.folder, close) in (None, 0), "the second close says that it wrote something"

    def test_closes_when_nothing_was_told(self, component: Any, bench: Bench) -> None:
        """A run may end before its first event: the sink closes without an error."""

        async def close(live: Any) -> object:
            return await maybe_await(live.close())

        assert self.opened(component, bench.folder, close) in (None, 0)

    def test_lets_an_error_of_the_run_pass(self, component: Any, bench: Bench, events: Sequence[Event]) -> None:
        """If an error leaves ``open``, the sink neither hides it nor raises another error."""

        async def fail(live: Any) -> None:
            await maybe_await(live.write(self.expected_events(live, component, events)[:5]))
            raise ConnectionAbortedError("the run's own")

        with pytest.raises(ConnectionAbortedError, match="the run's own"):
            self.opened(component, bench.folder, fail)

    def test_wants_event_types(self, component: Any) -> None:
        """``wants`` is a tuple of texts; a single text would be split into its letters."""
        wants = getattr(component, "wants", ())
        assert not isinstance(wants, str), f"wants is a tuple of event types, not {wants!r}"
        assert all(isinstance(type_, str) for type_ in wants)

    def test_unwritable_path_is_a_wrong_request(self, component: Any, bench: Bench) -> None:
        """A path that cannot be written is refused before the run judges a subject: ``open`` raises a ConfigError."""
        if path_option(component):
            (bench.folder / "a-file").write_text("in the way")
            options = {**self.options, "path": "a-file/below"}

            async def nothing(live: Any) -> None:
                return None

            refuses_path(lambda: self.opened(bench.build(self.kind, self.named, options), bench.folder, nothing))

    def test_file_appears_when_it_is_whole(self, component: Any, bench: Bench, events: Sequence[Event]) -> None:
        """A file that each run writes anew (``rewrites``) gets its name only after ``close``."""
        if not path_option(component) or not getattr(component, "rewrites", False):
            return
        path = bench.folder / component.path

        async def write(live: Any) -> tuple[bool, bool]:
            await maybe_await(live.write(self.expected_events(live, component, events)))
            before = _is_there(path)
            await maybe_await(live.close())
            return before, _is_there(path)

        before, after = self.opened(component, bench.folder, write)
        assert not before, f"{path.name} is there before close: a run that dies leaves half a file"
        assert after, f"{path.name} is not there after close"

    def test_older_file_stays_when_the_run_breaks_off(
        self, component: Any, bench: Bench, events: Sequence[Event]
    ) -> None:
        """If an error leaves ``open`` before ``close``, the file of the previous run is not replaced by an incomplete file."""
        if not path_option(component) or not getattr(component, "rewrites", False):
            return
        path = bench.folder / component.path

        async def write(live: Any) -> None:
            await maybe_await(live.write(self.expected_events(live, component, events)))
            await maybe_await(live.close())

        async def fail(live: Any) -> None:
            await maybe_await(live.write(self.expected_events(live, component, events)[:1]))
            raise KeyboardInterrupt

        self.opened(component, bench.folder, write)
        older = path.read_bytes()
        with pytest.raises(KeyboardInterrupt):
            self.opened(component, bench.folder, fail)
        assert path.read_bytes() == older, f"{path.name} was replaced by a part of what the run writes"

    def test_a_resumed_run_loses_no_event(self, component: Any, bench: Bench, events: Sequence[Event]) -> None:
        """After a kill and a resume, the file has as much as the file of an undisturbed run."""
        if not path_option(component):
            return
        first, rest = events[: len(events) // 2], events[len(events) // 2 :]
        folders = [bench.folder / name for name in ("whole", "again", "killed", "resumed")]
        files = [path for path in bench.folder.iterdir() if path not in folders]
        for folder in folders[:-1]:
            folder.mkdir()
            for file in files:
                (shutil.copytree if file.is_dir() else shutil.copy2)(file, folder / file.name)
        whole, again = (len(self._written_in(folder, bench, events)) for folder in folders[:2])
        half = len(self._written_in(folders[2], bench, first, copy=folders[3]))
        resumed = len(self._written_in(folders[3], bench, rest, earlier=first))
        least = whole if whole == again else whole - max(half // 2, whole // 10)  # times in it may differ in length
        assert resumed >= least, (
            f"{component.path.name} has {resumed} of {whole} bytes after a kill and a resume: the events before the kill "
            "are lost. Set rewrites = True on the sink, so that a resumed run sends all events again; or append if "
            "run.continued, and flush in write"
        )

    def _written_in(
        self,
        folder: Path,
        bench: Bench,
        events: Sequence[Event],
        *,
        earlier: Sequence[Event] = (),
        copy: Path | None = None,
    ) -> bytes:
        """Return the files that the sink writes about *events* in *folder*.

        :param earlier: the events of a killed process of the same run, which the sink receives again if it has ``rewrites``.
        :param copy: a new folder for the files as a kill leaves them, before the sink is closed.
        """
        component = attrs.evolve(bench, folder=folder).build(self.kind, self.named, self.options)
        ledger = [*earlier, *events]

        def read(query: Query) -> Iterator[Entry]:
            rows = (Entry(number, event, "", "") for number, event in enumerate(ledger, 1))
            return (row for row in rows if not query.types or row.event.type in query.types)

        async def work() -> None:
            run = attrs.evolve(context(folder), resumed=bool(earlier), continued=bool(earlier), read=read)
            async with AsyncExitStack() as stack:
                live = await open_component(component, run, stack)
                rewrites = getattr(live, "rewrites", getattr(component, "rewrites", False))
                await maybe_await(live.write(self.expected_events(live, component, ledger if rewrites else events)))
                if copy is not None:
                    shutil.copytree(folder, copy)
                await maybe_await(live.close())

        asyncio.run(work())
        path = folder / component.path
        return b"".join(file.read_bytes() for file in sorted([path, *path.rglob("*")]) if file.is_file())


def _is_there(path: Path) -> bool:
    return path.exists()
