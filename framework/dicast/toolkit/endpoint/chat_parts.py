"""Images, sounds and files in the OpenAI chat format."""

from __future__ import annotations

from typing import Any

from ..._kernel.values import Media, Message

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/*")
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_PDF = "application/pdf"


def is_carried(media: Media) -> bool:
    """Return whether the format has a part for *media*: images by content or address, WAV and MP3, and PDF files."""
    match media.kind:
        case "image":
            return media.url is not None or media.media_type in _IMAGES
        case "audio":
            return media.data is not None and media.media_type in _SOUNDS
    return media.data is not None and media.media_type == _PDF


def content_of(message: Message) -> str | list[dict[str, Any]]:
    """Return the content of *message*: its text, or its parts if it has media."""
    if not message.media:
        return without_surrogates(message.content)
    return [_text(part) if isinstance(part, str) else _part(part) for part in message.parts if part]


def without_surrogates(text: str) -> str:
    """Return *text* without lone surrogates, which JSON does not have and judged text may have."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": without_surrogates(text)}


def _part(media: Media) -> dict[str, Any]:
    match media.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": media.url or _data_url(media)}}
        case "audio":
            return {"type": "input_audio", "input_audio": {"data": media.data, "format": _SOUNDS[media.media_type]}}
    return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": _data_url(media)}}


def _data_url(media: Media) -> str:
    return f"data:{media.media_type};base64,{media.data}"
