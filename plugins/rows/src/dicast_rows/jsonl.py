"""The source ``rows/jsonl``: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Literal

import attrs

from dicast import InputPath, Within
from dicast.toolkit.dataset import dataset_records
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.scan import Scan

from .encodings import UTF_8, known_encoding
from .fields import Fields, check_fields
from .rows import MAX_FAULTS, Failures, Numbered, Rows
from .unknown import Marker, Unknown

MAX_RECORDS = 10_000
"""The number of bad lines that are reported for a dataset."""


@attrs.frozen
class Jsonl:
    """Rows from a file of JSON lines: one object a line, each becomes a subject.

    :param path: the file. gzip is recognized; ``-`` is standard input.
    :param fields: the column of each part of a row: keys ``id``, ``input``, ``output``, ``reference``, ``session_id``,
        ``context``, values dotted paths into the row (``meta.question``); by default the column of that name. Every row must have a path that is
        named here. An ``id`` may be a template over several columns, ``"{{ question }}-{{ model }}"``;
        ``{{ line }}`` in it is the row's number. Without an ``id`` a row is named by its line number, blank lines counted. All other columns are
        in the context, after the keys of an object in ``context``. A further key, ``error``, names a column of errors: a row with an
        error there is a failed record. ``{column: gold, json: true}`` in place of a path reads the texts there as JSON.
    :param kind: the subject kind of the rows.
    :param strip_reasoning: leave each ``<think>…</think>`` out of an output that is a text. The column keeps it under its name.
    :param max_line_bytes: the longest line that is read, in bytes; 64 MiB by default.
    :param encoding: the file's encoding, by a name that Python knows (``cp1252``, ``utf-16``); UTF-8 by default.
    :param protocol: ``evaluator`` reads the file as a dataset of the evaluator protocol: at most 10,000 records, and every
        bad line is reported. A record may have any fields: rows are named by line numbers unless ``fields`` has an ``id``, and the
        context has the whole record as ``example``, which is sent to an evaluator.
    :param unknown: ``error`` refuses a number that needs more than 64 bits, which cannot be recorded. ``mark`` puts a marker in its place
        (``[number 1…]``), which the run counts.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    fields: Fields = attrs.field(factory=dict)
    kind: str = "row"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    encoding: str = attrs.field(default=UTF_8, metadata={"later": True})
    protocol: Literal["evaluator"] | None = attrs.field(default=None, metadata={"later": True})
    unknown: Unknown = attrs.field(default="error", metadata={"later": True})
    strip_reasoning: bool = attrs.field(default=False, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)
        known_encoding(self.encoding)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path, known_encoding(self.encoding)) as file:
            dataset = self.protocol is not None
            marker = Marker.of(self.unknown)
            objects = partial(InputFile.objects, numbers=marker.number if marker.is_on else None)
            read = _records if dataset else objects
            yield Rows(
                file,
                partial(read, file, self.max_line_bytes),
                self.kind,
                self.fields,
                file.fault,
                max_faults=MAX_RECORDS if dataset else MAX_FAULTS,
                dataset=dataset,
                marked=marker.counts,
                strip_reasoning=self.strip_reasoning,
            )


def _records(file: InputFile, max_line_bytes: int, check: InputCheck | None, _failures: Failures) -> Numbered:
    """Yield the records of a dataset; its protocol has no failed records."""
    return dataset_records(file, max_line_bytes, check)
