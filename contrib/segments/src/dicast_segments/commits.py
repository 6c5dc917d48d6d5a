"""Commits: the events of one append as one file, ``log/NUMBER.jsonl.gz``.

Its first line is a header. Then each event is a line of the chain, and each content a line. A commit may have no events: it takes or renews a lease.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast import LedgerError
from dicast.toolkit.ledger_lines.chain import MARK_BYTES, chain_of

from .lines import Row

LOG = "log"
_DIGITS, _SUFFIX = 12, ".jsonl.gz"
_LEVEL = 1
"""Level of gzip: a commit is compressed again when it is sealed."""

LeaseChange = tuple[str, int, str, str]
"""The run, the token, the owner, and the end of the lease; empty for a released lease."""


def name_of(number: int) -> str:
    """Return the name of the commit with this number."""
    return f"{LOG}/{number:0{_DIGITS}}{_SUFFIX}"


def number_of(name: str) -> int | None:
    """Return the number of the commit in the file *name* of the log; None if it is no commit."""
    digits = name.removesuffix(_SUFFIX)
    return int(digits) if name.endswith(_SUFFIX) and digits.isdecimal() else None


@attrs.frozen
class Commit:
    """A commit: its number, the number of its first event, the digests before it and after it, its rows, and changes of leases.

    *writer* is a random name that distinguishes two attempts at one number. *size* is the number of bytes without compression. *marks* has the first bytes of the digest of each line.
    """

    number: int
    first: int
    prev: bytes
    digest: bytes
    rows: Sequence[Row]
    leases: Sequence[LeaseChange]
    writer: str
    size: int
    marks: bytes

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + len(self.rows) - 1


def encoded(
    number: int,
    first: int,
    prev: bytes,
    rows: Sequence[Row],
    lines: Sequence[bytes],
    leases: Sequence[LeaseChange],
    writer: str,
) -> tuple[Commit, bytes]:
    """Return a commit and its file."""
    digests = chain_of(prev, lines)
    digest = digests[-1] if digests else prev
    contents = {row.content_digest: row.content for row in rows if row.content is not None}
    marks = b"".join([link[:MARK_BYTES] for link in digests])
    header = {
        "format": 1,
        "commit": number,
        "first": first,
        "lines": len(lines),
        "prev": prev.hex(),
        "digest": digest.hex(),
        "marks": marks.hex(),
        "contents": [*contents],
        "leases": leases,
        "writer": writer,
    }
    raw = b"\n".join((orjson.dumps(header), *lines, *(text.encode() for text in contents.values()), b""))
    commit = Commit(number, first, prev, digest, rows, leases, writer, len(raw), marks)
    return commit, gzip.compress(raw, _LEVEL, mtime=0)


def decoded(name: str, data: bytes) -> Commit:
    """Return the commit in a file.

    :raises LedgerError: naming the file and the line, if it was cut or changed.
    """
    header, parts, size = _parts(name, data)
    try:
        number, first, count, keys = header["commit"], header["first"], header["lines"], header["contents"]
        prev, digest, marks = (bytes.fromhex(header[key]) for key in ("prev", "digest", "marks"))
        leases = [(run_id, token, owner, until) for run_id, token, owner, until in header["leases"]]
        lines, texts = parts[:count], parts[count:]
        contents = dict(zip(keys, texts, strict=True))
        writer = header["writer"]
    except (LookupError, TypeError, ValueError) as error:
        raise LedgerError(f"{name}: the header does not fit the lines: {error!r}") from error
    rows = list(_rows(name, first, lines, contents))
    links = chain_of(prev, lines)
    for place, link in enumerate(links):
        if marks[MARK_BYTES * place : MARK_BYTES * (place + 1)] != link[:MARK_BYTES]:
            raise LedgerError(f"{name}: event {first + place} was changed")
    if (links[-1] if links else prev) != digest or len(marks) != MARK_BYTES * count:
        raise LedgerError(f"{name}: the digest does not follow from the lines")
    return Commit(number, first, prev, digest, rows, leases, writer, size, marks)


def _parts(name: str, data: bytes) -> tuple[dict[str, Any], list[bytes], int]:
    try:
        raw = gzip.decompress(data)
        first, *parts = raw.split(b"\n")
        header = orjson.loads(first)
        if not isinstance(header, dict) or header.get("format") != 1 or parts[-1:] != [b""]:
            raise ValueError("it has no header of format 1")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise LedgerError(f"{name}: the file was cut or changed: {error}") from error
    return header, parts[:-1], len(raw)


def _rows(name: str, first: int, lines: Sequence[bytes], contents: dict[str, bytes]) -> Iterator[Row]:
    for digest, text in contents.items():
        if sha256(text).hexdigest() != digest:
            raise LedgerError(f"{name}: the content {digest} was changed")
    for place, line in enumerate(lines):
        try:
            row = Row.read(line, None)
            if row.content_digest in contents:
                row.content = contents[row.content_digest].decode()
            yield row
        except (ValueError, TypeError, AttributeError) as error:
            raise LedgerError(f"{name}: event {first + place} cannot be read: {error}") from error
