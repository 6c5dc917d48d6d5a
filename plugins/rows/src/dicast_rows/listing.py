"""The source ``rows/yaml``: the mappings of a list, or of several documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from dicast import DataError, InputCheck, InputFile, InputPath, Problem

from .fields import check_fields, taker
from .rows import Items, Numbered, Rows, check_rows, chunks, each_row, open_rows
from .yaml_values import nodes, value_of

if TYPE_CHECKING:
    import yaml


@attrs.frozen
class Yaml:
    """Rows from a YAML file: each mapping of a list becomes a subject, or each document that is one.

    Values are those of YAML 1.2's core schema: ``no`` and ``2026-01-31`` are texts. The file is read item by item, twice: what is in
    memory is one item, and what has an anchor.

    :param path: the file, UTF-8; gzip is recognised, ``-`` is standard input.
    :param fields: which column holds which part of a row, as for ``rows/jsonl``: dotted paths, and a path given here (``error``
        aside) must be in every row. Without an ``id`` a row is named by its place in the file, counted from 1.
    :param kind: the subject kind of the rows.
    """

    path: InputPath
    fields: Mapping[str, str] = attrs.field(factory=dict)
    kind: str = "row"

    open, check, subjects = open_rows, check_rows, each_row

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        with InputFile.opened(self.path) as file:
            items = Items(file, "item")
            listing = _Listing(file, items)
            yield Rows(
                file, taker(self.kind, self.fields), listing.rows, self.kinds, self.fields, items.fault, items.unit
            )


@attrs.frozen
class _Listing:
    """How a YAML file is read; what is wrong with an item goes to *items*."""

    file: InputFile
    items: Items

    def rows(self, check: InputCheck | None) -> Numbered:
        """Yield each mapping with its number; faults go to *check*, or are raised. Behind what is not YAML nothing is read."""
        import yaml  # 40 ms, which only this source needs

        self.items.line = 1
        number = 0
        try:
            for node in nodes(chunks(self.file, lambda what: self.items.fault(what, 0, check), check)):
                number += 1
                self.items.line = node.start_mark.line + 1
                try:
                    row = value_of(node)
                except DataError as error:
                    self.items.fault(error, number, check)
                    continue
                if isinstance(row, dict):
                    yield number, row
                else:
                    wrong = f"it is a {'list' if node.id == 'sequence' else 'single value'}, it must be a mapping"
                    self.items.fault(wrong, number, check)
        except yaml.YAMLError as error:
            self._not_yaml(error, check)

    def _not_yaml(self, error: yaml.YAMLError, check: InputCheck | None) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        place = {} if mark is None else {"line": mark.line + 1, "column": mark.column + 1}
        self.items.fault(Problem(f"the file is not YAML from here on: {why}", **place), 0, check)
