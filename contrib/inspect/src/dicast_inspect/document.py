"""Logs in JSON: one document, whose samples are read one at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from dicast.toolkit.files import error_reason
from dicast.toolkit.scanning import Scanner, TooLong
from dicast.toolkit.session_reading import SessionReading

from .sample import Broken, Evaluation, Sample

_CHUNK = 2**18


def document_samples(reading: SessionReading) -> Iterator[tuple[int, Sample | Broken]]:
    """Yield the line and the content of each sample in a JSON log. *reading* gets the faults."""
    scanner = Scanner(_chunks(reading), reading.max_bytes)
    evaluation, count = Evaluation(), 0
    try:
        if not scanner.skip(b"{"):
            reading.refuse("the log is no JSON object", scanner.line)
            return
        while scanner.peek() not in (b"}", b""):
            line, key = scanner.line, scanner.value()
            if not scanner.skip(b":"):
                reading.refuse("the log is not JSON: a colon is missing", line)
                return
            if key == b'"samples"' and scanner.skip(b"["):
                for line, data in _items(reading, scanner):
                    value = reading.value(data, line)
                    if isinstance(value, dict):
                        count += 1
                        yield line, Sample(value, evaluation)
                    elif value is not None:
                        reading.refuse("a sample is no JSON object", line)
            else:
                data = scanner.value()
                if key == b'"eval"':
                    evaluation = Evaluation.of(reading.value(data, line))
            scanner.skip(b",")
        if not scanner.skip(b"}"):
            reading.refuse("the log ends before its end: it was cut while it was written", scanner.line)
        elif not count:
            reading.refuse("the log has no samples (it was written without them); read another log", 1)
    except TooLong as error:
        reading.refuse(f"a sample is longer than max_line_bytes ({reading.max_bytes:,})", error.line)


def _items(reading: SessionReading, scanner: Scanner) -> Iterator[tuple[int, bytes]]:
    while scanner.peek() not in (b"]", b""):
        line, data = scanner.line, scanner.value()
        if not data:
            reading.refuse("the samples have no value here", line)
            return
        yield line, data
        scanner.skip(b",")
    scanner.skip(b"]")


def _chunks(reading: SessionReading) -> Iterator[bytes]:
    with reading.file.binary() as stream:
        try:
            while chunk := stream.read(_CHUNK):
                if reading.check is not None:
                    reading.check.digest.update(chunk)
                yield chunk
        except (EOFError, OSError, zlib.error) as error:
            reading.refuse(f"the data cannot be read to its end: {error_reason(error)}", 1)
