"""Logs in ``.eval`` archives: each sample is a member, or its parts are several members."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import attrs

from dicast.toolkit.files import error_reason
from dicast.toolkit.session_reading import SessionReading

from .sample import Broken, Evaluation, Sample, expand_refs, sample_id

HEADER, START = "header.json", "_journal/start.json"
SUMMARIES = "summaries.json"

_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d+)(?:\.json|/(?P<part>.+)\.json)")
_JOURNAL = re.compile(r"_journal/summaries/(\d+)\.json")
_CHUNK = 2**20

Key = tuple[str, int]
"""Id and epoch of a sample, from the names of its members."""


def archived_samples(reading: SessionReading) -> Iterator[tuple[int, Sample | Broken]]:
    """Yield the place and the content of each sample in an archive, in the order of epochs and ids.

    A sample that cannot be read, or is only in the summaries, is a :class:`Broken`.
    """
    zipfile = _zipfile()
    with reading.file.binary() as stream:
        if reading.check is not None:
            _digest(reading, stream)
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            reading.refuse(f"the archive cannot be read: {error_reason(error)}; recover it with inspect log recover", 1)
            return
        members = Members(reading, archive)
        header = members.json(HEADER if HEADER in members.names else START)
        evaluation = Evaluation.of(header.get("eval") if isinstance(header, dict) else None)
        samples = members.samples()
        for place, key in enumerate(sorted(samples, key=_order), 1):
            yield place, members.sample(key, samples[key], evaluation)
        place = len(samples)
        for summary in members.summaries():
            key = str(summary.get("id")), _epoch(summary.get("epoch"))
            if key not in samples:
                place += 1
                yield place, Broken(sample_id(*key), _why_missing(summary), summary, evaluation)
        if not place:
            reading.refuse("the log has no samples: its run was cut before the first was written; read another log", 1)


@attrs.define
class Members:
    """The members of an open *archive* by name; of members with the same name, the last counts."""

    reading: SessionReading
    archive: Any
    names: Mapping[str, None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = dict.fromkeys(self.archive.namelist())

    def samples(self) -> dict[Key, list[str]]:
        """Return the names of the members of each sample."""
        samples: dict[Key, list[str]] = defaultdict(list)
        for name in self.names:
            if (match := _SAMPLE.fullmatch(name)) is not None:
                samples[match["id"], int(match["epoch"])].append(name)
        return dict(samples)

    def sample(self, key: Key, names: Sequence[str], evaluation: Evaluation) -> Sample | Broken:
        """Return the sample in the members *names*."""
        try:
            complete_name = next((name for name in names if name.endswith(f"_epoch_{key[1]}.json")), None)
            value = self._parsed(complete_name) if complete_name is not None else self._assembled(key)
        except _Unreadable as error:
            return Broken(sample_id(*key), str(error), {}, evaluation)
        if not isinstance(value, dict):
            return Broken(sample_id(*key), "the sample is not a JSON object", {}, evaluation)
        return Sample(value, evaluation)

    def summaries(self) -> Iterator[dict[str, Any]]:
        """Yield the summaries of the samples: from the end of a finished log, else from the log's journal."""
        journal = sorted((int(match[1]), name) for name in self.names if (match := _JOURNAL.fullmatch(name)))
        for name in [SUMMARIES] if SUMMARIES in self.names else [name for _, name in journal]:
            summaries = self.json(name)
            yield from (summary for summary in summaries or () if isinstance(summary, dict))

    def json(self, name: str) -> Any:
        """Return the value of the member *name*, or None if it is missing or unreadable."""
        if name not in self.names:
            return None
        try:
            return self._parsed(name)
        except _Unreadable as error:
            self.reading.mark(f"unreadable member {name}")
            del error
            return None

    def _parsed(self, name: str) -> Any:
        zipfile = _zipfile()
        try:
            size = self.archive.getinfo(name).file_size
            if size > self.reading.max_bytes:
                raise _Unreadable(f"{name} has {size:,} bytes, more than max_line_bytes ({self.reading.max_bytes:,})")
            data: bytes = self.archive.read(name)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, *_zlib_errors()) as error:
            raise _Unreadable(f"{name} cannot be read: {error_reason(error)}") from error
        return self.reading.value(data)

    def _assembled(self, key: Key) -> dict[str, Any]:
        """Return a sample from the members with its messages, events and attachments."""
        prefix = f"samples/{key[0]}_epoch_{key[1]}/"
        shell = self._parsed(f"{prefix}sample.json") if f"{prefix}sample.json" in self.names else None
        if not isinstance(shell, dict):
            raise _Unreadable(f"{prefix}sample.json is missing")
        messages = self._sequence(f"{prefix}messages/")
        metadata = self._parsed(f"{prefix}metadata.json") if f"{prefix}metadata.json" in self.names else {}
        attachments = self._sequence(f"{prefix}attachments/")
        return {
            **shell,
            "messages": expand_refs(shell.get("message_refs"), messages),
            "events": self._sequence(f"{prefix}events/"),
            "events_data": {"messages": messages},
            "attachments": {str(place): text for place, text in enumerate(attachments)},
            "metadata": metadata,
        }

    def _sequence(self, prefix: str) -> list[Any]:
        """Return all items of the members below *prefix*; a member's name is the index of its first item."""
        starts = [name.removeprefix(prefix).removesuffix(".json") for name in self.names if name.startswith(prefix)]
        items: list[Any] = []
        for start in sorted(int(start) for start in starts if start.isdecimal()):
            items += self._parsed(f"{prefix}{start}.json") or []
        return items


class _Unreadable(Exception):
    """A member of the archive cannot be read."""


def _zipfile() -> Any:
    """Return a module like ``zipfile`` that can read Zstandard, which Inspect writes."""
    if sys.version_info >= (3, 14):
        import zipfile

        return zipfile
    from backports.zstd import zipfile as backport

    return backport


def _zlib_errors() -> tuple[type[Exception], ...]:
    import zlib

    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError

        return zlib.error, ZstdError
    from backports.zstd import ZstdError as BackportError

    return zlib.error, BackportError


def _digest(reading: SessionReading, stream: BinaryIO) -> None:
    assert reading.check is not None
    while chunk := stream.read(_CHUNK):
        reading.check.digest.update(chunk)
    stream.seek(0)


def _order(key: Key) -> tuple[int, bool, int, str]:
    """Return the sort key of a sample: its epoch, then its id, numbers first."""
    id_, epoch = key
    return epoch, not id_.isdecimal(), int(id_) if id_.isdecimal() else 0, id_


def _epoch(value: object) -> int:
    return value if isinstance(value, int) else 1


def _why_missing(summary: Mapping[str, Any]) -> str:
    if error := summary.get("error"):
        return f"the sample failed: {error}"
    return "the log has only a summary of the sample: it was written without samples, or its run was cut"
