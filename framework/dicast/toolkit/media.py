"""Media in subjects: files, data URLs and addresses as JSON values, and these values as parts of messages.

A source puts :func:`read_media` into a subject. A judge or a task finds it there with :func:`media_part`, next to the parts that
providers write into messages, and sends the result of :func:`sendable`.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard
from urllib.parse import unquote_to_bytes, urlsplit

from dicast import DataError, Media

from .files import open_file
from .parts import MediaKind, MediaPart

MAX_MEDIA_BYTES = 20_000_000
"""Size of the largest file that is sent to a model."""

KINDS: tuple[MediaKind, ...] = ("image", "audio", "file")

Urls: TypeAlias = Literal["mark", "allow"] | Sequence[str]
"""The addresses that a model may fetch: none, all, or the addresses of these hosts."""

_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"ID3|\xff[\xfb\xf3\xf2]"), "audio/mpeg"),
    (re.compile(rb"OggS"), "audio/ogg"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"....ftyp(?:M4A|M4B)", re.DOTALL), "audio/mp4"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "image/avif"),
    (re.compile(rb"....ftyp(?:hei[cxms]|mif1)", re.DOTALL), "image/heic"),
    (re.compile(rb"II\*\x00|MM\x00\*"), "image/tiff"),
    (re.compile(rb"BM....\x00\x00\x00\x00", re.DOTALL), "image/bmp"),
    (re.compile(rb"\xff[\xf1\xf9]"), "audio/aac"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
_SVG = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]",
    re.DOTALL,
)
_HEAD = 1024
_ESCAPED = 3  # characters of %41
_ALIASES = {"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/mp3": "audio/mpeg"}
_KEYS = frozenset(("type", "media_type", "url", "data", "file_id", "name", "bytes", "transcript"))


class BadMedia(ValueError):
    """A file, a data URL or an address that cannot be sent. The message has the reason and the fix."""


def sniffed(data: bytes) -> str | None:
    """Return the media type that the first bytes of *data* show; None for an unknown one."""
    head = data[:_HEAD]
    if (media_type := next((name for magic, name in _MAGIC if magic.match(head)), None)) is not None:
        return media_type
    return "image/svg+xml" if _SVG.match(head) else None


def read_media(value: object, kind: MediaKind, folder: Path | None) -> dict[str, object]:
    """Return the media that *value* names as a JSON value: a path to a file in *folder*, an address, a data URL, or the bytes themselves.

    A mapping with ``bytes`` and ``path``, as columns of images in Parquet files are, is read by its bytes, else by its path.

    :param kind: the kind that the content must have; ``file`` takes any type.
    :param folder: the folder that the file is in; None if there is none, as for standard input.
    :raises BadMedia: if there is no such file in the folder, or its type or size is wrong.
    """
    if isinstance(value, Mapping) and value.keys() <= {"bytes", "path"}:
        path, content = value.get("path"), value.get("bytes")
        if isinstance(content, bytes):
            return _checked(content, kind, None, Path(path).name if isinstance(path, str) and path else None)
        value = path
    if isinstance(value, bytes):
        return _checked(value, kind, None, None)
    if not isinstance(value, str) or not value.strip():
        raise BadMedia(f"the {kind} is {_brief(value)}; write a path, an address or a data URL")
    scheme = value[:8].lower()
    if scheme.startswith("data:"):
        data, stated = _data_url(value)
        return _checked(data, kind, stated, None)
    if scheme.startswith(("http://", "https://")):
        return _address(value, kind)
    data, name = _file(value, kind, folder)
    return _checked(data, kind, mimetypes.guess_type(name)[0], name, is_stated=False)


def media_part(value: object) -> MediaPart | None:
    """Return the media that a JSON value is; None for any other value.

    It is the value of :func:`read_media`, or a part that OpenAI or Anthropic write into a message.
    """
    if not isinstance(value, Mapping):
        return None
    kind = value.get("type")
    if "media_type" in value and value.keys() <= _KEYS and ("data" in value or "url" in value or "file_id" in value):
        return recorded_part(value)
    if isinstance(kind, str) and kind in _BLOCKS and any(key in value for key in _BLOCKS[kind]):
        from .message_formats.blocks import ANY  # imported late: the readers of dialects take 10 ms to import
        from .message_formats.shapes import Shapes

        try:
            part = ANY[kind](dict(value), "", Shapes())
        except (DataError, ValueError):
            return None
        return part if isinstance(part, MediaPart) and (part.data or part.url or part.file_id) else None
    return None


def recorded_part(value: Mapping[str, Any]) -> MediaPart | None:
    """Return the image, sound or file with the recorded fields *value*, or None if *value* is no such part."""
    return MediaPart.of(value) if _is_kind(value.get("type")) else None


def without_content(value: object) -> object:
    """Return *value* with markers in place of its media, for a table or a text that people read."""
    if (part := media_part(value)) is not None:
        return part.marker
    if isinstance(value, Mapping):
        return {key: without_content(inner) for key, inner in value.items()}
    return [without_content(inner) for inner in value] if isinstance(value, list | tuple) else value


_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "image_url": ("image_url",),
    "input_audio": ("input_audio",),
    "file": ("file",),
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_data", "file_url", "file_id"),
    "image": ("source",),
    "document": ("source",),
}
"""Media parts of messages by their type, with the fields of which at least one is required."""


def sendable(part: MediaPart, urls: Urls = "mark") -> Media | None:
    """Return *part* as a model gets it; None if only its marker can be shown: it has no content, or its address is not allowed.

    :raises BadMedia: if its content is no base64, or too large.
    """
    if part.url is not None and part.url[:5].lower() == "data:":
        data, stated = _data_url(part.url)
        return _media(part, part.media_type or stated, data)
    if part.data is not None:
        return _media(part, part.media_type, _decoded(part.data))
    if part.url is None or not is_allowed(part.url, urls):
        return None
    return Media(part.kind, part.media_type or _guessed(part.url, part.kind), part.marker, None, part.url, part.name)


def is_allowed(url: str, urls: Urls) -> bool:
    """Return whether *url* is an address that *urls* let a model fetch."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return False
    if isinstance(urls, str):
        return urls == "allow"
    if _ODD.search(
        _AUTHORITY.split(url.partition("://")[2], maxsplit=1)[0]
    ):  # other readers may find another host in it
        return False
    return any(_is_host(parts.hostname.lower(), host.lower()) for host in urls)


_AUTHORITY = re.compile(r"[/?#]")
_ODD = re.compile(r"[\\@\s\x00-\x20\x7f]")


def _is_host(host: str, allowed: str) -> bool:
    return host == allowed or (allowed.startswith("*.") and host.endswith(allowed[1:]))


def _media(part: MediaPart, media_type: str | None, data: bytes) -> Media:
    if len(data) > MAX_MEDIA_BYTES:
        raise BadMedia(_too_large(len(data)))
    type_ = sniffed(data) or media_type or _fallback(part.kind)
    text = part.data if part.data is not None and part.data.isascii() and not re.search(r"\s", part.data) else None
    return Media(part.kind, type_, part.marker, text or base64.b64encode(data).decode(), None, part.name)


def _checked(
    data: bytes, kind: MediaKind, claimed: str | None, name: str | None, *, is_stated: bool = True
) -> dict[str, object]:
    """Return *data* as a JSON value, if it is of *kind*: its bytes decide, else the type that is *claimed*."""
    if not data:
        raise BadMedia("the content is empty")
    if len(data) > MAX_MEDIA_BYTES:
        raise BadMedia(_too_large(len(data)))
    actual, claimed = sniffed(data), _ALIASES.get(claimed or "", claimed)
    if is_stated and actual is not None and claimed is not None and _differ(actual, claimed):
        raise BadMedia(f"the data URL states {claimed}, and its bytes are {actual}; correct its type")
    type_ = (
        actual or (claimed if is_stated or kind == "file" else None) or (_fallback(kind) if kind == "file" else None)
    )
    if type_ is None or (kind != "file" and not type_.startswith(f"{kind}/")):
        type_text = type_ or "of an unknown type"
        raise BadMedia(f"this is no {kind}: its content is {type_text}; name another file, or another kind as media")
    part = MediaPart(kind, type_, data=base64.b64encode(data).decode(), name=name, size=len(data))
    return part.fields()


def _differ(actual: str, claimed: str) -> bool:
    """Return whether two media types are of different formats; an audio or video container may go by several names."""
    return actual != claimed and not (
        actual.startswith(("audio/", "application/")) and not claimed.startswith("image/")
    )


def _address(url: str, kind: MediaKind) -> dict[str, object]:
    try:
        parts = urlsplit(url)
        host, password = parts.hostname, parts.password
    except ValueError:
        host = password = None
    if not host:
        raise BadMedia(f"{_brief(url)} is no address: it has no host")
    if password is not None:
        raise BadMedia(f"the address at {host} holds a password, which would be recorded and sent; leave it out")
    return MediaPart(kind, _guessed(url, kind), url=url).fields()


def _file(value: str, kind: MediaKind, folder: Path | None) -> tuple[bytes, str]:
    """Return the content of a file and its name.

    :raises BadMedia: if it cannot be read, is no file in *folder*, or is too large.
    """
    if folder is None:
        raise BadMedia(f"the path {_brief(value)} needs a folder, and the data comes from no file; name one as folder")
    path = folder / value
    try:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            wrong = f"the file {_brief(value)} is outside of the folder {str(folder)!r}; name its folder as folder"
            raise BadMedia(wrong)
        if not path.is_file():
            why = "it is no file" if path.exists() else "there is no such file"
            raise BadMedia(f"cannot read the {kind} {_brief(value)}: {why} in the folder {str(folder)!r}")
        if (size := path.stat().st_size) > MAX_MEDIA_BYTES:
            raise BadMedia(_too_large(size))
        with open_file(path) as file:
            return file.read(MAX_MEDIA_BYTES + 1), path.name
    except BadMedia:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise BadMedia(f"cannot read the {kind} {_brief(value)}: {reason or error}") from error


def _data_url(url: str) -> tuple[bytes, str | None]:
    """Return the content of a data URL and the media type that it states."""
    head, comma, data = url.partition(",")
    if not comma:
        raise BadMedia("the data URL has no comma between its type and its data")
    type_ = head[5:].partition(";")[0].strip().lower() or None
    if head.lower().rstrip().endswith(";base64"):
        return _decoded(data), type_
    if len(data) > _ESCAPED * MAX_MEDIA_BYTES:
        raise BadMedia(_too_large(len(data) // _ESCAPED))
    return unquote_to_bytes(data), type_


def _decoded(text: str) -> bytes:
    """Return the bytes of base64 *text*; blanks count for nothing, and the padding may be left out.

    :raises BadMedia: with the place of the first character that is no base64.
    """
    if len(text) > 2 * MAX_MEDIA_BYTES:
        raise BadMedia(_too_large(len(text) // 4 * 3))
    plain = "".join((unquote_to_bytes(text).decode("ascii", "replace") if "%" in text else text).split())
    plain = plain.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        place = re.search(r"[^A-Za-z0-9+/]", plain)
        where = f" at character {place.start() + 1}" if place else f": {len(plain):,} characters are no whole bytes"
        raise BadMedia(f"the data is no base64{where}") from error


def _guessed(url: str, kind: MediaKind) -> str:
    guessed = mimetypes.guess_type(urlsplit(url).path)[0]
    return guessed if guessed is not None and (kind == "file" or guessed.startswith(f"{kind}/")) else _fallback(kind)


def _fallback(kind: MediaKind) -> str:
    return "application/octet-stream" if kind == "file" else f"{kind}/*"


def _is_kind(value: object) -> TypeGuard[MediaKind]:
    return isinstance(value, str) and value in KINDS


def _too_large(size: int) -> str:
    return f"the content has {size / 1e6:.1f} MB; at most {MAX_MEDIA_BYTES // 10**6} MB are sent, so make it smaller"


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
