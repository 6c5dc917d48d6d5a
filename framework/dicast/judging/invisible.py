r"""Invisible characters of judged texts: a model reads text in them that no person sees.

Zero-width characters, tags, bidi controls and variation selectors become escapes (``\u200b``, ``\U000e0041``). Characters that a script or
an emoji needs stay: joiners after letters of scripts that join (Arabic, Persian, Hebrew, Indic and others) and inside emoji, one variation
selector after a symbol or an ideograph, direction marks next to letters of right-to-left scripts, and the tags of the three flags of Unicode.
"""

from __future__ import annotations

import re

_EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_JOINING = f"{_RIGHT_TO_LEFT}\u0900-\u109f\u1700-\u1cff\ua800-\uabff\U00011000-\U00011fff"
_IDEOGRAPHS = "\u2e80-\u2fff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_MONGOLIAN = "\u1800-\u18af"
_MARKS = "\u061c\u200e\u200f"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0000-\U000e007f"
_INVISIBLE = f"\u034f\u180e\u200b-\u200f\u061c\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb{_SELECTORS}{_TAGS}"


def _tags(word: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in word)


_FLAGS = "|".join(map(_tags, ("gbeng", "gbsct", "gbwls")))
_OCCURRENCES = re.compile(
    f"(?<=\U0001f3f4)(?:{_FLAGS})\U000e007f"
    f"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"
    f"|(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])"
    f"|(?<=[{_EMOJI}{_IDEOGRAPHS}0-9#*\u00a9\u00ae\u203c\u2049])[\ufe00-\ufe0f](?![{_SELECTORS}])"
    f"|(?<=[{_MONGOLIAN}])[\u180b-\u180d\u180f](?![{_SELECTORS}])"
    f"|(?<=[{_IDEOGRAPHS}])[\U000e0100-\U000e01ef](?![{_SELECTORS}])"
    f"|(?<=[{_RIGHT_TO_LEFT}])[{_MARKS}](?![{_MARKS}])|(?<![{_MARKS}])[{_MARKS}](?=[{_RIGHT_TO_LEFT}])"
    f"|(?P<hidden>[{_INVISIBLE}])"
)


def escape_invisible(text: str) -> tuple[str, int]:
    """Return *text* with escapes in place of invisible characters, and the number of such characters."""
    if text.isascii():
        return text, 0
    count = 0

    def escaped(match: re.Match[str]) -> str:
        nonlocal count
        hidden = match["hidden"]
        if hidden is None:
            return match[0]
        count += 1
        return f"\\u{ord(hidden):04x}" if ord(hidden) <= 0xFFFF else f"\\U{ord(hidden):08x}"

    return _OCCURRENCES.sub(escaped, text), count
