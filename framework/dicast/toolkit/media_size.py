"""Sizes of media, read from the first bytes of their content: pixels of an image, seconds of a sound, pages of a PDF file."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache

from dicast import Media

_HEAD = 2**18  # characters of base64: the size of a JPEG may follow a large preview
_JPEG_FRAMES = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_STREAM_BYTES = 50_000_000
_DICTIONARY = 400  # bytes of a stream's dictionary


def image_size(media: Media) -> tuple[int, int] | None:
    """Return width and height of an image in pixels; None if they are unknown, as of an address, or 0."""
    data = b"" if media.data is None else base64.b64decode(media.data[:_HEAD])
    try:
        size = _size(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"\x89PNG"):
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if data.startswith(b"GIF8"):
        width, height = struct.unpack("<HH", data[6:10])
        return width, height
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp_size(data)
    return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(data):
        if data[place] != 0xFF:
            return None
        if data[place + 1] in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + struct.unpack(">H", data[place + 2 : place + 4])[0]
    return None


def sound_seconds(media: Media) -> float | None:
    """Return the length of a WAV file by its size and byte rate; None if it is unknown."""
    data = b"" if media.data is None else base64.b64decode(media.data[:_HEAD])
    place = data.find(b"fmt ")
    if not data.startswith(b"RIFF") or place < 0 or len(data) < place + 20:
        return None
    (rate,) = struct.unpack("<I", data[place + 16 : place + 20])
    return media.size / rate if rate else None


def _object_streams(data: bytes) -> Iterator[bytes]:
    """Yield the compressed object streams of a PDF file, each from its dictionary on; the time grows with the size of the file."""
    place = 0
    while (place := data.find(b"/ObjStm", place)) >= 0:
        start = data.find(b"stream", place + 7, place + _DICTIONARY)
        end = data.find(b"endstream", start)
        if start >= 0 and end < 0:
            return
        if start >= 0:
            yield data[start + 6 : end].lstrip(b"\r\n")
        place = max(place + 7, end)


@lru_cache(4)  # it keeps the files
def page_count(media: Media) -> int | None:
    """Return the number of pages of a PDF file; None if it is unknown."""
    if media.data is None or media.media_type != "application/pdf":
        return None
    data = base64.b64decode(media.data)
    pages, left = len(_PAGE.findall(data)), _STREAM_BYTES
    for stream in _object_streams(data):
        try:
            text = zlib.decompressobj().decompress(stream, left)
        except zlib.error:
            continue
        pages += len(_PAGE.findall(text))
        left -= len(text)
        if left <= 0:
            return None
    return pages or None
