"""Lists of texts separated by commas, as promptfoo reads them."""

from __future__ import annotations

_ESCAPED = ('"', "\\")


def comma_separated(text: str) -> list[str]:
    """Return the texts of a list with commas. Quotes may enclose a text. Blanks around a text without quotes and empty texts are left out.

    :raises ValueError: if a quote is not closed, or is followed by anything but a comma.
    """
    texts, place = list[str](), 0
    while place < len(text):
        if text[place].isspace() or text[place] == ",":
            place += 1
        elif text[place] == '"':
            part, place = _quoted(text, place)
            rest = text[place:].lstrip()
            if rest and not rest.startswith(","):
                raise ValueError(f"a comma has to follow {part!r:.40}")
            texts.append(part)
        else:
            end = text.find(",", place)
            end = len(text) if end < 0 else end
            texts.append(text[place:end].strip())
            place = end
    return texts


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Return the text in the quotes that begin at *start*, and the place after them."""
    letters, place = list[str](), start + 1
    while place < len(text):
        letter, following = text[place], text[place + 1 : place + 2]
        if (letter == "\\" and following in _ESCAPED and following) or (letter == '"' and following == '"'):
            letters.append(following)
            place += 2
        elif letter == '"':
            return "".join(letters), place + 1
        else:
            letters.append(letter)
            place += 1
    raise ValueError("a quote is not closed")
