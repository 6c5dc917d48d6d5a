"""The public names of the package ``dicast`` and their page in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import dicast

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)


def test_each_public_name_has_a_sentence_on_the_page():
    sentences = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))
    assert sorted(sentences) == sorted(dicast.__all__)
    assert [name for name, sentence in sentences.items() if len(sentence.split()) < 3] == []


def test_each_public_name_can_be_imported():
    assert [name for name in dicast.__all__ if not hasattr(dicast, name)] == []
