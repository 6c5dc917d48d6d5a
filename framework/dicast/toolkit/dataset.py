"""Datasets of the evaluator protocol: files with a JSON object on each line, at most 10,000 objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from .._kernel.values.errors import Problem
from .._kernel.values.names import json_type
from .input_file import MAX_LINE_BYTES, InputCheck, InputFile, Numbered
from .json_values import MAX_DEPTH, too_deep

MAX_RECORDS = 10_000


def dataset_records(
    file: InputFile, max_line_bytes: int = MAX_LINE_BYTES, check: InputCheck | None = None
) -> Numbered[dict[str, Any]]:
    """Yield the records of the dataset *file* with their physical line numbers, without blank lines.

    Every bad line is reported to *check*, also after the 10,000th record; without *check* the first bad line is raised.

    :raises DataError: if the file cannot be opened; without *check*, also for a bad line.
    """
    count = 0
    for number, line in file.lines(max_line_bytes, check):
        if not line.strip():
            continue
        record = _record(line, file.label, number)
        if isinstance(record, Problem):
            file.fault(record, number, check)
            continue
        count += 1
        if count == MAX_RECORDS + 1:
            file.fault(f"Dataset {file.label!r} has too many records: maximum {MAX_RECORDS}", number, check)
        if count <= MAX_RECORDS:
            yield number, record


def read_dataset(path: Path) -> list[dict[str, Any]]:
    """Return the records of the dataset at *path*; an empty file has none.

    :raises DataError: with every bad line.
    """
    with InputFile.opened(path) as file, InputCheck(file, most=MAX_RECORDS) as check:
        records = [record for _, record in dataset_records(file, check=check)]
        check.finish(max(1, len(records)))
    return records


def _record(line: bytes, label: str, number: int) -> dict[str, Any] | Problem:
    """Return the record in *line*, or its problem, with the message that the protocol prescribes."""
    at = f"in dataset {label!r} at line {number}"
    try:
        line.decode()
        value = orjson.loads(line)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x} at line {number}"
        return Problem(f"Dataset {label!r} is not valid UTF-8: {byte}", column=error.start + 1)
    except orjson.JSONDecodeError as error:
        return Problem(f"Invalid JSON {at}: {error.msg}", column=min(error.pos, len(line.rstrip())) + 1)
    if type(value) is not dict:
        return Problem(f"Invalid record {at}: expected JSON object, got {json_type(value)}")
    if too_deep(line, value):
        return Problem(f"Invalid record {at}: more than {MAX_DEPTH} levels of nesting")
    return value
