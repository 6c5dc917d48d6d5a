"""Code compared by how it parses."""

from __future__ import annotations

from itertools import zip_longest

from dicast import Failure, Score

from . import grammar, python_code
from .excerpts import excerpt
from .sides import Sides
from .texts import EQUAL, unequal
from .tokens import PYTHON, Token, Unparsable, column

LONGEST = 1_000_000
"""The largest number of characters of code that are parsed: it takes a second that cannot be interrupted."""


def compare_code(sides: Sides, language: str) -> Score | Failure:
    """1 for code that parses to the same tree, else 0."""
    output, reference = sides.output, sides.reference
    if not isinstance(reference, str):
        return sides.unusable(f"is not code but {excerpt(reference)}")
    if not isinstance(output, str):
        return unequal(f"not code but {excerpt(output)}", signals={"parsed": False})
    longest = max(len(output), len(reference))
    if longest > LONGEST:
        sizes = f"{len(output):,} and {len(reference):,} characters"
        why = f"output and reference of {sides.whose} have {sizes}; code is parsed up to {LONGEST:,}"
        return Failure("timeout", f"diff/match: {why}")
    try:
        reference_tokens = _tokens(reference := _lines(reference), language)
    except Unparsable as fault:
        return sides.unusable(f"is not {language}: {_parse_message(fault, reference)}")
    try:
        output_tokens = _tokens(output := _lines(output), language)
    except Unparsable as fault:
        place = {} if fault.line is None else dict(zip(("line", "column"), _place(output, fault), strict=True))
        return unequal(f"not {language}: {_parse_message(fault, output)}", signals={"parsed": False, **place})
    return _compare(output_tokens, reference_tokens, output, reference)


def _lines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _tokens(text: str, language: str) -> list[Token]:
    return python_code.tokens(text) if language == PYTHON else grammar.tokens(text, language)


def _compare(output_tokens: list[Token], reference_tokens: list[Token], output: str, reference: str) -> Score:
    last: Token = ("the end", 1, 0)
    for output_token, other in zip_longest(output_tokens, reference_tokens):
        if output_token is None or other is None or output_token[0] != other[0]:
            places = (_at(text, token or last) for text, token in ((output, output_token), (reference, other)))
            return unequal("differs at {} from the reference at {}".format(*places), signals={"parsed": True})
        last = output_token
    return EQUAL


def _at(text: str, token: Token) -> str:
    _, line, offset = token
    at = column(text, line, offset)
    code = text.split("\n", line)[line - 1][at - 1 :]
    return f"{line}:{at} {excerpt(code)}"


def _place(text: str, fault: Unparsable) -> tuple[int, int]:
    assert fault.line is not None  # as the caller has seen
    return fault.line, column(text, fault.line, fault.offset)


def _parse_message(fault: Unparsable, text: str) -> str:
    place = "" if fault.line is None else " at {}:{}".format(*_place(text, fault))
    return f"{fault.why}{place}".encode(errors="backslashreplace").decode()
