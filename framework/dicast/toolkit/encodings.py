"""Encodings of text: byte order marks, and likely encodings of bytes that are not UTF-8."""

from __future__ import annotations

import codecs
from itertools import pairwise

import attrs

from .._kernel.values.errors import ConfigError, Problem
from .._kernel.values.names import nearest

__all__ = ["UTF_8", "check_encoding", "fitting_encodings", "known_encoding", "marked_encoding"]

UTF_8 = "utf-8"

_COMMON = ("utf-8", "utf-16", "cp1252", "iso8859-15", "latin-1", "cp1251", "gb18030", "shift_jis", "euc_kr", "big5")

_EASTERN = ("shift_jis", "gb18030", "euc_kr", "cp1251")
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks with their encodings, the longer ones first: one begins with another."""


def known_encoding(name: str) -> str:
    """Return the proper name of the encoding *name*.

    :raises ConfigError: if it is not an encoding of text.
    """
    try:
        "a".encode(name)  # codecs.lookup also accepts codecs from bytes to bytes
    except (LookupError, ValueError) as error:
        problem = f"unknown encoding {name!r}; Python's names are taken, such as {', '.join(_COMMON[:4])}"
        raise ConfigError(Problem(problem, path="encoding", value=name, hint=nearest(name, _COMMON))) from error
    proper = codecs.lookup(name).name
    return UTF_8 if proper == "utf-8-sig" else proper


def check_encoding(_instance: object, _attribute: attrs.Attribute[str], name: str) -> None:
    """Check an option that names an encoding, as a validator of attrs does.

    :raises ConfigError: if it is not an encoding of text.
    """
    known_encoding(name)


def marked_encoding(start: bytes) -> str | None:
    """Return the encoding whose byte order mark the bytes *start* begin with, UTF-8 aside."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)


def fitting_encodings(line: bytes, encoding: str = UTF_8) -> list[str]:
    """Return up to three encodings, not *encoding*, in which *line* is text, the likeliest first.

    Western letters beyond ASCII occur alone between ASCII letters; Cyrillic and East Asian letters occur in sequences.
    """
    together = sum(first > 127 and second > 127 for first, second in pairwise(line))
    is_western = sum(byte > 127 for byte in line) > 2 * together
    likely = (("cp1252", "iso8859-15") if is_western else _EASTERN) if encoding == UTF_8 else (UTF_8, "cp1252")
    return [name for name in likely if name != encoding and _is_text(line, name)][:3] or ["latin-1"]


def _is_text(line: bytes, name: str) -> bool:
    try:
        text = line.decode(name)
    except UnicodeDecodeError:
        return False
    return all(char.isprintable() or char.isspace() for char in text)
