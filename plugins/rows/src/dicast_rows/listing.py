"""The source ``rows/yaml``: the mappings of a list, or of several documents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from dicast import ConfigError, DataError, InputPath
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.scan import Scan
from dicast.toolkit.surrogates import escaped

from .encodings import UTF_8, known_encoding
from .fields import Fields, check_fields
from .rows import Failures, Items, Numbered, Rows, chunks
from .unknown import Marker, Unknown


@attrs.frozen
class Yaml:
    """Rows from a YAML file: each mapping of a list becomes a subject, or each document that is a mapping.

    Values follow YAML 1.2's core schema: ``no`` and ``2026-01-31`` are texts. The file is read item by item, twice. Memory holds
    one item, and the items with an anchor.

    :param path: the file, UTF-8. gzip is recognized; ``-`` is standard input.
    :param fields: the column of each part of a row, as for ``rows/jsonl``: dotted paths. Every row must have a path that is named here, except
        ``error``. An ``id`` may be a template over several columns, ``"{{ question }}-{{ model }}"``;
        ``{{ line }}`` in it is the row's number. Without an ``id`` a row is named by its place in the file, counted from 1.
    :param kind: the subject kind of the rows.
    :param strip_reasoning: leave each ``<think>…</think>`` out of an output that is a text. The column keeps it under its name.
    :param encoding: the file's encoding, by a name that Python knows (``cp1252``, ``utf-16``); UTF-8 by default.
    :param unknown: ``error`` refuses numbers of more than 64 bits, NaN, infinity and tags of an item, which cannot be recorded. ``mark`` puts markers
        in their place (``[tag !set a]``), which the run counts.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    fields: Fields = attrs.field(factory=dict)
    kind: str = "row"
    encoding: str = attrs.field(default=UTF_8, metadata={"later": True})
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
            items = Items(file, "item", Marker.of(self.unknown))
            listing = _Listing(file, items)
            yield items.rows(self, listing.rows)


@attrs.frozen
class _Listing:
    """The reader of a YAML file; problems of an item go to *items*."""

    file: InputFile
    items: Items

    def rows(self, check: InputCheck | None, failures: Failures) -> Numbered:
        """Yield each mapping with its number; faults go to *check*, or are raised. Nothing is read after invalid YAML."""
        from dicast.toolkit import yaml  # 40 ms, which only this source needs

        self.items.line = 1
        pieces = chunks(self.file, lambda what: self.items.fault(what, 0, check), check)
        number = 0
        try:
            for number, item in enumerate(yaml.read_items(pieces, self.file.label), 1):
                self.items.line = item.node.place.line
                row = item.node.plain()
                if item.problems and not self.items.marker.yaml(row, item.problems):
                    self.items.fault(DataError(item.problems), number, check)
                elif isinstance(row, dict):
                    if (broken := escaped(row)) is not None:
                        row, failures[number] = broken.value, broken.why
                    yield number, row
                else:
                    wrong = f"it is {'a list' if isinstance(row, list) else 'a single value'}, it must be a mapping"
                    self.items.fault(wrong, number, check)
        except ConfigError as error:
            self.items.fault(DataError(error.problems), 0, check)
