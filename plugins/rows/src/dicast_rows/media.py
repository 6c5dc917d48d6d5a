"""Columns of images, sounds and files: each cell names a file, an address, or is a data URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import orjson

from dicast import DataError, Problem
from dicast.toolkit.json_values import MISSING, lookup, read_json
from dicast.toolkit.media import BadMedia, media_part, read_media

from .row_paths import absent


@attrs.frozen
class MediaColumn:
    """A column of media of a *kind*; paths lead into *folder*. With *json* a text that is a list in JSON is a list."""

    path: str
    kind: Literal["image", "audio", "file"]
    json: bool
    folder: Path | None

    def read(self, cell: object) -> object:
        """Return the media of a *cell* as a JSON value: a single part, a list of parts, or None for a cell without a value.

        :raises BadMedia: if any part cannot be read.
        """
        if self.json and isinstance(cell, str) and cell.lstrip().startswith("["):
            try:
                cell = read_json(cell)
            except orjson.JSONDecodeError as error:
                raise BadMedia(f"the list is not JSON: {error}") from error
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            return None
        if isinstance(cell, list):
            return [read_media(item, self.kind, self.folder) for item in cell]
        try:
            return read_media(cell, self.kind, self.folder)
        except BadMedia as error:
            if self.json or not _is_list(cell):
                raise
            column = f"{{column: {self.path}, media: {self.kind}, json: true}}"
            raise BadMedia(f"{error}; to read the cell as a list, write {column} in fields") from error


def _is_list(cell: object) -> bool:
    """Return whether *cell* is the text of a list in JSON."""
    if not isinstance(cell, str) or not cell.lstrip().startswith("["):
        return False
    try:
        return isinstance(read_json(cell), list)
    except orjson.JSONDecodeError:
        return False


def read_columns(columns: Mapping[str, MediaColumn], row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the media of *row* by field, and the cells that they come from by column.

    :raises DataError: (without a file) naming all columns whose cells cannot be read.
    """
    values: dict[str, Any] = {}
    cells: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, column in columns.items():
        cell = lookup(row, column.path)
        if cell is MISSING:
            raise absent(column.path, row)
        try:
            values[name] = column.read(cell)
        except BadMedia as error:
            problems.append(Problem(f"the column {column.path!r}: {error}", path=column.path))
        cells[column.path] = _brief(cell, values.get(name))
    if problems:
        raise DataError(problems)
    return values, cells


def _brief(cell: object, value: object) -> object:
    """Return *cell* as it stays in the context: with a marker in place of a data URL or bytes, whose content is in *value*."""
    if isinstance(cell, list) and isinstance(value, list):
        return [_brief(*pair) for pair in zip(cell, value, strict=True)]
    is_content = not isinstance(cell, str) or "data:" in cell[:64].lower()
    part = media_part(value) if is_content else None
    return cell if part is None else part.marker
