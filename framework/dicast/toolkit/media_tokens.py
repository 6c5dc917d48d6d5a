"""The most tokens that models count for an image, a sound or a PDF file, by the rules that their providers publish.

A chat model whose address or options name its model estimates with :func:`most_input_tokens` in place of ``ChatRequest.input_tokens``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from dicast import ChatRequest, Media

from .media_size import image_size, page_count, sound_seconds

_PATCH, _TILE = 32, 512
_LONG_SIDE, _SHORT_SIDE = 2048, 768
_MOST_TILES = 8
_PAGE_TEXT_TOKENS = 4_000
_SOUND_TOKENS_A_SECOND = 50
_CLAUDE_MOST, _PIXELS_A_TOKEN = 4_784, 750
_GEMINI_TILE, _GEMINI_UNIT, _GEMINI_MOST = 258, (256, 768), 1_120

Size = tuple[int, int]
Rule = Callable[[Size | None], int]
"""A function that returns the most tokens for an image, from its size in pixels; None is an unknown size."""


def _tiles(base: int, each_tile: int) -> Rule:
    """Return the rule of models that cut a scaled image into squares of 512 pixels; small images may be scaled up by some endpoints."""

    def count(size: Size | None) -> int:
        if size is None:
            return base + each_tile * _MOST_TILES
        width, height = size
        scale = min(1.0, _LONG_SIDE / max(size))
        scale *= min(1.0, _SHORT_SIDE / (min(size) * scale))
        across, down = (max(1, math.ceil(side * scale / _TILE)) for side in (width, height))
        return base + each_tile * min(across * down, _MOST_TILES)

    return count


def _patches(factor: float, most: int) -> Rule:
    """Return the rule of models that count squares of 32 pixels, times *factor*, after scaling down to *most*."""

    def count(size: Size | None) -> int:
        number = most if size is None else math.ceil(size[0] / _PATCH) * math.ceil(size[1] / _PATCH)
        return math.ceil(min(number, most) * factor)

    return count


def _claude(size: Size | None) -> int:
    if size is None:
        return _CLAUDE_MOST
    return min(_CLAUDE_MOST, math.ceil(size[0] * size[1] / _PIXELS_A_TOKEN) + math.ceil(sum(size) / 28) + 8)


def _gemini(size: Size | None) -> int:
    """Return the tokens of tiles whose side is two thirds of the shorter side, 256 to 768 pixels; newer models count up to 1,120 for an image."""
    if size is None:
        return _GEMINI_TILE * 64
    low, high = _GEMINI_UNIT
    unit = min(max(math.floor(min(size) / 1.5), low), high)
    return max(_GEMINI_MOST, _GEMINI_TILE * math.ceil(size[0] / unit) * math.ceil(size[1] / unit))


_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    (re.compile(r"gpt-4o-mini"), _tiles(2833, 5667)),
    (re.compile(r"gpt-4\.1-nano|gpt-5.*nano"), _patches(2.46, 2500)),
    (re.compile(r"gpt-4\.1-mini|gpt-5.*mini|o4-mini|codex-mini"), _patches(1.72, 2500)),
    (re.compile(r"gpt-5\.\d"), lambda size: max(_patches(1.72, 2500)(size), _tiles(85, 170)(size))),
    (re.compile(r"(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-4-turbo|chatgpt-4o|gpt-5|o[13])(?![0-9a-z])"), _tiles(85, 170)),
    (re.compile(r"claude"), _claude),
    (re.compile(r"gemini|gemma"), _gemini),
)


def most_input_tokens(model: str, request: ChatRequest) -> int:
    """Return an upper estimate of the tokens of *request*: texts by their bytes, media by the rule of the family of *model*."""
    media = [item for message in request.messages for item in message.media]
    return request.input_tokens + sum(most_media_tokens(model, item) - item.most_tokens for item in media)


def most_media_tokens(model: str, media: Media) -> int:
    """Return the most tokens that *model* counts for *media*: by its family's rule, else by the bound for any model."""
    name = model.lower().rpartition("/")[2]
    rule = next((rule for start, rule in _RULES if start.match(name)), None)
    match media.kind:
        case "image" if rule is not None:
            return rule(image_size(media))
        case "audio" if (seconds := sound_seconds(media)) is not None:
            return math.ceil(seconds * _SOUND_TOKENS_A_SECOND)
        case "file" if rule is not None and (pages := page_count(media)) is not None:
            return pages * (_PAGE_TEXT_TOKENS + rule(None))
    return media.most_tokens
