"""Lines of text in any encoding, and advice on the encoding of bytes that are not in the expected encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain

from dicast import Problem
from dicast.toolkit.encodings import UTF_8, fitting_encodings, known_encoding, marked_encoding
from dicast.toolkit.input_file import InputCheck, InputFile

from .rows import chunks

__all__ = ["UTF_8", "encoding_advice", "known_encoding", "texts"]


def texts(file: InputFile, encoding: str, most: int, check: InputCheck | None) -> Iterator[str]:
    """Yield every line of *file* with its line end, an empty text for a skipped line; faults go to *check*.

    :raises DataError: when the file cannot be opened; without *check*, at the first fault.
    """
    if "\n\r,".encode(encoding) == b"\n\r,":
        return _split_before(file, encoding, most, check)
    return _split_after(file, encoding, most, check)


def _split_before(file: InputFile, encoding: str, most: int, check: InputCheck | None) -> Iterator[str]:
    """Yield the lines in an encoding whose line end is one byte that is a part of no other character."""
    expected = 1
    for number, line in file.lines(most, check):
        yield from ("\n" for _ in range(expected, number))
        expected = number + 1
        if number == 1 and encoding == UTF_8 and (mark := marked_encoding(line)):
            file.fault(f"the file begins with the byte order mark of {mark.upper()}; {_advice(mark)}", 1, check)
            return
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{line[error.start]:02x} is not {encoding.upper()}"
            problem = Problem(f"{wrong}; {encoding_advice(line, encoding)}", column=error.start + 1)
            file.undecodable(problem, number, check)
            text = line.decode(encoding, errors="replace")
        yield text


def _split_after(file: InputFile, encoding: str, most: int, check: InputCheck | None) -> Iterator[str]:
    """Yield the lines in an encoding such as UTF-16, whose bytes are decoded first. Nothing is read after bytes that cannot be decoded."""
    decoder = codecs.getincrementaldecoder(encoding)()
    number, offset, rest = 1, 0, ""

    def fault(what: str) -> None:
        file.fault(what, number, check)

    for chunk in chain(chunks(file, fault, check), (b"",)):
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            before = len(chunk) - len(error.object) + error.start
            number += (rest + decoder.decode(chunk[: max(0, before)])).count("\n")
            wrong = f"byte {offset + before + 1:,} of the file, 0x{error.object[error.start]:02x}, is not {encoding}"
            fault(f"{wrong}: {error.reason}")
            return
        offset += len(chunk)
        *lines, rest = (rest + text).split("\n")
        if max(map(len, (*lines, rest))) > most:
            fault(f"a line from here on is longer than max_line_bytes ({most:,})")
            return
        for line in lines:
            number += 1
            yield line + "\n"
    if rest:
        yield rest


def encoding_advice(line: bytes, encoding: str = UTF_8) -> str:
    """Return the advice for a *line* whose bytes are not in *encoding*."""
    return _advice(*fitting_encodings(line, encoding))


def _advice(*encodings: str) -> str:
    fits = f"{' or '.join(encodings)} might fit (encoding: {encodings[0]}; dicast init --encoding {encodings[0]})"
    return f"save the file as UTF-8, or set its encoding: {fits}"
