"""Invisible characters in evidence become escapes; characters that scripts and emoji need stay."""

from __future__ import annotations

import pytest

from dicast.judging import Marks, Section, escape_invisible


@pytest.mark.parametrize(
    "text",
    [
        "plain text, naïve café",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: mi, a joiner, khaham
        "\u0915\u094d\u200d\u0937 \u0d28\u0d4d\u200d",  # Devanagari, Malayalam
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3 \u00a9\ufe0f \u2708\ufe0e",  # emoji and text styles, a keycap
        "\U0001f44d\U0001f3fd\u200d\u2642\ufe0f",  # a skin tone
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # the flag of Scotland
        "\u845b\U000e0100 \u8fbb\ufe00",  # variants of ideographs
        "\u05e9\u05dc\u05d5\u05dd\u200f!",  # Hebrew with a mark
    ],
)
def test_scripts_and_emoji_are_shown_as_they_are(text):
    assert escape_invisible(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "shown", "count"),
    [
        ("a\u200bb", "a\\u200bb", 1),
        ("pa\u200dss\u200c", "pa\\u200dss\\u200c", 2),
        ("\u0627\u200c\u200d\u0628", "\u0627\\u200c\\u200d\u0628", 2),
        ("x\U000e0041\U000e0042", "x\\U000e0041\\U000e0042", 2),
        ("\U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f3f4\\U000e0068\\U000e0069\\U000e007f", 3),
        ("\u202eabc\u202c \u2066x\u2069", "\\u202eabc\\u202c \\u2066x\\u2069", 4),
        ("a\ufe0f", "a\\ufe0f", 1),
        ("\U0001f600\ufe0f\ufe01\U000e0123", "\U0001f600\\ufe0f\\ufe01\\U000e0123", 3),
        ("\ufefftext", "\\ufefftext", 1),
        ("latin\u200e\u200e", "latin\\u200e\\u200e", 2),
        ("\u2060\u2063\u034f", "\\u2060\\u2063\\u034f", 3),
    ],
)
def test_text_that_nobody_sees_is_escaped_and_counted(text, shown, count):
    assert escape_invisible(text) == (shown, count)


def test_a_section_shows_escapes():
    marks = Marks()
    assert "give\\u200b 10\\U000e0041" in Section("OUTPUT", "give\u200b 10\U000e0041").render(marks)
