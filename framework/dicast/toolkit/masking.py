"""Masking of secrets in a server's text, in any usual spelling."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

MASK = "***"
_IN_MESSAGES, _IN_REPLIES = 4, 8
"""The fewest characters of a secret that is masked. Shorter values are placeholders of a key (``no``, ``test``); masking them would garble words."""

_BLANKS = b" \t\r\n\v\f\0\\"
_GAP = r"(?:[\s\0]++|\\++[nrt]?){0,4}"
"""Pattern of text allowed between two characters of a secret. Its length is bounded, which bounds the time for a hostile text."""

_LONGEST_SEARCHED = 1 << 20
"""The longest reply with a secret in which the secret is masked; a longer one is masked as a whole, because the pattern would take seconds."""


def _escapes(unit: bytes) -> re.Pattern[bytes]:
    lower_case = rb"%([2-7][0-9a-f])|&#0*+([0-9]{2,3});|&#x0*+([0-9a-f]{2});"
    return re.compile(rb"\\++u(" + unit + rb")|" + lower_case, re.IGNORECASE)


_ESCAPED, _ESCAPED_ANY = _escapes(rb"00[2-7][0-9a-f]"), _escapes(rb"[0-9a-f]{4}")
"""Escapes of ASCII characters, and of any characters, in JSON, addresses and HTML. ASCII alone is faster: a reply may have 100,000 other escapes."""
_SIGNS = (b"\\u", b"\\U", b"%", b"&#")
"""Each escape has one of these signs."""


class Mask:
    """Mask of *secrets* in texts: unchanged, in another case, with blanks between, escaped, as hexadecimal and as base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        words = {part for secret in secrets for part in (secret.strip(), *_words(secret))}
        self._in_messages, self._in_replies = _Search(words, _IN_MESSAGES), _Search(words, _IN_REPLIES)

    def reply(self, data: bytes) -> bytes:
        """Return *data*, which a model may have written, with secrets masked that are not common words."""
        return self._in_replies.masked(data)

    def message(self, text: str) -> str:
        """Return the error message *text* with the secrets masked."""
        data = text.encode(errors="surrogatepass")
        masked = self._in_messages.masked(data)
        return text if masked is data else masked.decode(errors="replace")


class _Search:
    """Search for secrets of at least *least* characters.

    Most texts contain no secret. A search in the squeezed text shows this in a hundredth of the pattern's time.
    """

    def __init__(self, secrets: Collection[str], least: int) -> None:
        forms = {form for secret in secrets if len(secret) >= least for form in _forms(secret)}
        self._escaped = _ESCAPED if all(map(str.isascii, secrets)) else _ESCAPED_ANY
        self._forms = sorted(forms, key=len, reverse=True)  # a form may contain a shorter form
        self._squeezed = {_squeezed(form.encode(errors="surrogatepass")) for form in forms}
        self._squeezed = {form for form in self._squeezed if len(form) >= least}

    def masked(self, data: bytes) -> bytes:
        """Return *data* with the secrets masked; the mask alone if they cannot be masked."""
        if not self._is_in(data):
            return data
        if len(data) <= _LONGEST_SEARCHED:
            for replace in (self._replaced, self._replaced_in_json):
                if not self._is_in(masked := replace(data)) and (_is_json(masked) or not _is_json(data)):
                    return masked
        return MASK.encode()

    def _is_in(self, data: bytes) -> bool:
        if not self._squeezed:
            return False
        squeezed = _squeezed(data)
        if any(sign in data for sign in _SIGNS):
            squeezed += b" " + _squeezed(self._escaped.sub(_unescaped, data))
        return any(form in squeezed for form in self._squeezed)

    def _replaced(self, data: bytes) -> bytes:
        text = data.decode(errors="surrogateescape")
        return self._pattern.sub(MASK, text).encode(errors="surrogateescape")

    def _replaced_in_json(self, data: bytes) -> bytes:
        try:
            return orjson.dumps(self._replaced_in(orjson.loads(data)))
        except (orjson.JSONDecodeError, TypeError):  # not JSON, or JSON that orjson cannot write
            return data

    def _replaced_in(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._pattern.sub(MASK, value)
        if isinstance(value, list):
            return [self._replaced_in(item) for item in value]
        if isinstance(value, dict):
            return {self._replaced_in(key): self._replaced_in(item) for key, item in value.items()}
        return value

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        forms = ["".join(unit for unit in form if unit not in _BLANKS.decode()) for form in self._forms]
        return re.compile("|".join(_GAP.join(map(re.escape, form)) for form in forms if form), re.IGNORECASE)


def _squeezed(data: bytes) -> bytes:
    """Return *data* in lower case, without blanks and their escapes."""
    if b"\\" in data:
        data = data.replace(b"\\n", b"").replace(b"\\r", b"").replace(b"\\t", b"")
    return data.translate(None, _BLANKS).lower()


def _unescaped(match: re.Match[bytes]) -> bytes:
    in_json, in_address, decimal, hexadecimal = match.groups()
    code = int(decimal) if decimal else int(in_json or in_address or hexadecimal, 16)
    return chr(code).encode(errors="surrogatepass")


def _words(secret: str) -> list[str]:
    """Return the key in ``Bearer KEY``, which a server may repeat alone."""
    return [word for word in secret.split() if len(word) >= _IN_REPLIES]


def _forms(secret: str) -> Iterator[str]:
    """Return *secret* unchanged, in an address, as a hex dump, and as a part of base64 text."""
    data = secret.encode(errors="surrogatepass")
    yield from (secret, quote(data), quote(data, safe=""), quote_plus(data), data.hex())
    for before, lost in ((0, 0), (1, 2), (2, 3)):  # where it begins within a group of three bytes
        text = base64.b64encode(bytes(before) + data)
        part = text[lost : (before + len(data)) * 8 // 6].decode()
        yield from (part, part.translate(str.maketrans("+/", "-_")))


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True
