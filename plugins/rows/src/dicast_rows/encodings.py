"""Lines of text in any encoding, and which encoding bytes that are not in the given one might be in."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain, pairwise

from dicast import ConfigError, InputCheck, InputFile, Problem, nearest

from .rows import chunks

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


def known(encoding: str) -> str:
    """The proper name of *encoding*.

    :raises ConfigError: when it is not one of text.
    """
    try:
        "a".encode(encoding)  # codecs.lookup also knows those that make bytes of bytes
    except (LookupError, ValueError) as error:
        what = f"unknown encoding {encoding!r}; Python's names are taken, such as {', '.join(_COMMON[:4])}"
        raise ConfigError(Problem(what, path="encoding", value=encoding, hint=nearest(encoding, _COMMON))) from error
    name = codecs.lookup(encoding).name
    return UTF_8 if name == "utf-8-sig" else name


def texts(file: InputFile, encoding: str, most: int, check: InputCheck | None) -> Iterator[str]:
    """Yield every line of *file* with its line end, an empty one for a line that was left out; faults go to *check*.

    :raises DataError: when the file cannot be opened; without *check*, at the first fault.
    """
    if "\n\r,".encode(encoding) == b"\n\r,":
        return _split_before(file, encoding, most, check)
    return _split_after(file, encoding, most, check)


def _split_before(file: InputFile, encoding: str, most: int, check: InputCheck | None) -> Iterator[str]:
    """Lines of an encoding in which a line end is one byte, that no other character has among its own."""
    expected = 1
    for number, line in file.lines(most, check):
        yield from ("\n" for _ in range(expected, number))
        expected = number + 1
        if number == 1 and encoding == UTF_8 and (mark := _marked(line)):
            file.fault(_says(f"the file begins with the byte order mark of {mark.upper()}", mark), 1, check)
            return
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{line[error.start]:02x} is not {encoding.upper()}"
            fault = _says(wrong, *_fitting(line, encoding))
            file.fault(Problem(fault.message, column=error.start + 1), number, check)
            text = line.decode(encoding, errors="replace")
        yield text


def _split_after(file: InputFile, encoding: str, most: int, check: InputCheck | None) -> Iterator[str]:
    """Lines of an encoding such as UTF-16: its bytes are decoded first. Behind bytes that cannot be, nothing is read."""
    decoder = codecs.getincrementaldecoder(encoding)()
    number, offset, rest = 1, 0, ""

    def fault(what: str) -> None:
        file.fault(what, number, check)

    for chunk in chain(chunks(file, fault, check), (b"",)):
        try:
            found = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            before = len(chunk) - len(error.object) + error.start
            number += (rest + decoder.decode(chunk[: max(0, before)])).count("\n")
            wrong = f"byte {offset + before + 1:,} of the file, 0x{error.object[error.start]:02x}, is not {encoding}"
            fault(f"{wrong}: {error.reason}")
            return
        offset += len(chunk)
        *lines, rest = (rest + found).split("\n")
        if max(map(len, (*lines, rest))) > most:
            fault(f"a line from here on is longer than max_line_bytes ({most:,})")
            return
        for line in lines:
            number += 1
            yield line + "\n"
    if rest:
        yield rest


def _fitting(line: bytes, encoding: str) -> list[str]:
    """Encodings in which *line* is text, the likeliest first.

    Western letters beyond ASCII stand alone among others; those of the East and of Cyrillic stand together.
    """
    together = sum(first > 127 and second > 127 for first, second in pairwise(line))
    alone = sum(byte > 127 for byte in line) > 2 * together
    likely = (("cp1252", "iso8859-15") if alone else _EASTERN) if encoding == UTF_8 else (UTF_8, "cp1252")
    return [name for name in likely if name != encoding and _is_text(line, name)][:3] or ["latin-1"]


def _marked(line: bytes) -> str | None:
    """The encoding whose byte order mark *line* begins with."""
    return next((name for mark, name in _MARKS.items() if line.startswith(mark)), None)


def _is_text(line: bytes, encoding: str) -> bool:
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return all(char.isprintable() or char.isspace() for char in text)


def _says(wrong: str, *encodings: str) -> Problem:
    fits = f"{' or '.join(encodings)} might fit (encoding: {encodings[0]}; dicast init --encoding {encodings[0]})"
    return Problem(f"{wrong}; save the file as UTF-8, or say its encoding: {fits}")
