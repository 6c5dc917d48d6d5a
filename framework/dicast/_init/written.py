"""A pipeline file as text: sections with comments, in the YAML style of a human author."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import attrs
import yaml

from .._kernel.values.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*", re.ASCII)
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_WIDE = 100


@attrs.frozen
class FileSection:
    """A part of the file: *comments* above *data*. A section that is not *active* is written as a comment, as an example.

    With *continues* the first key of *data* is the last key of the section above: it is not written again.
    """

    data: Mapping[str, Any]
    comments: Sequence[str] = ()
    active: bool = True
    continues: bool = False

    def text(self) -> str:
        """Return the section's lines."""
        body = yaml.dump(_Block(escaped(self.data)), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)
        body_lines = body.splitlines()[1 if self.continues else 0 :]
        lines = body_lines if self.active else [f"# {line}".rstrip() for line in body_lines]
        return "\n".join([*(f"# {line}".rstrip() for line in self.comments), *lines]) + "\n"


def file_text(head: Sequence[str], sections: Sequence[FileSection]) -> str:
    """Return the whole file."""
    return "\n".join(["".join(f"# {line}".rstrip() + "\n" for line in head), *(section.text() for section in sections)])


def write_new(files: Mapping[Path, str]) -> None:
    """Write *files*, or nothing if any file exists.

    :raises ConfigError: naming the existing files, or the file that cannot be written.
    """
    refuse_existing(files)
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                _fill(path, file, text)
        except FileExistsError:  # it was made after the check above
            refuse_existing([path])
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}; choose another --out") from error


def _fill(path: Path, file: TextIO, text: str) -> None:
    """Write *text* into the new *file* at *path*; after a failure there is no file."""
    try:
        file.write(text)
        file.flush()
    except OSError:
        path.unlink(missing_ok=True)
        raise


def refuse_existing(paths: Sequence[Path] | Mapping[Path, str]) -> None:
    """Refuse *paths* that exist, because no file is ever overwritten.

    :raises ConfigError: with each of *paths* that exists.
    """
    existing = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if existing:
        verb = "exists" if len(existing) == 1 else "exist"
        raise ConfigError(f"{' and '.join(existing)} {verb} already; choose another name: --out FILE.yaml")


def escaped(value: Any) -> Any:
    """Return *value* with ``$${`` in place of each ``${``, which would begin a variable in a pipeline file."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {escaped(name): escaped(item) for name, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list | tuple) else value


def one_comment(text: object, most: int = 80) -> str:
    """Return *text* as a comment or a line of a terminal: one line, printable, cut if it is long."""
    line = "".join(char if char.isprintable() else " " for char in str(text))
    return line if len(line) <= most else f"{line[:most]}…"


class _Dumper(yaml.SafeDumper):
    """Writer of short mappings and lists on one line, long texts as blocks, and quotes for texts that look like other YAML values."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of a list below its key."""
        super().increase_indent(flow, False)


class _Block(dict[str, Any]):
    """A mapping with a line for each member."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    if "\n" in text and all(line == line.rstrip() and (line.isprintable()) for line in text.split("\n")):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


def _size(value: object) -> int:
    """Return the length of *value* on one line; at least :data:`_WIDE` if it contains a text with line breaks."""
    if isinstance(value, str):
        return _WIDE if "\n" in value else len(value) + 2
    if isinstance(value, Mapping):
        return sum(_size(item) + _size(name) for name, item in value.items()) + 2
    return sum(map(_size, value)) + 2 if isinstance(value, list) else 6


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping | list) and bool(value)


def _mapping(dumper: _Dumper, data: Mapping[str, Any]) -> yaml.MappingNode:
    short = _size(data) < _WIDE and not any(map(_is_nested, data.values()))
    flow = not data or (short and not isinstance(data, _Block))
    return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=flow)


def _list(dumper: _Dumper, data: list[Any]) -> yaml.SequenceNode:
    flow = _size(data) < _WIDE and not any(map(_is_nested, data))
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(_Block, _mapping)
_Dumper.add_representer(list, _list)
