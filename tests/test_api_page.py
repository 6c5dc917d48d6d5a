"""The public names of the packages that authors import, and their page in the docs."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import dicast

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "authors.md"
MODULES = [
    "dicast",
    *(f"dicast.{name}" for name in ("commands", "judging", "reporting", "reading", "signals", "testing")),
]


@pytest.fixture(scope="module")
def sections():
    """Return the text of each section of the page, by the name of its module."""
    parts = re.split(r"^## `([\w.]+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_has_a_place_on_the_page(module, sections):
    named = re.findall(r"^### `(\w+)`$|^\| `(\w+)", sections[module], re.MULTILINE)
    assert {*import_module(module).__all__} - {name for pair in named for name in pair} == set()


def test_each_class_of_the_package_has_a_sentence(sections):
    texts = dict(re.findall(r"^### `(\w+)`\n\n(.*)$", sections["dicast"], re.MULTILINE))
    classes = [name for name in dicast.__all__ if isinstance(getattr(dicast, name), type)]
    errors = [name for name in classes if issubclass(getattr(dicast, name), BaseException)]
    assert [name for name in classes if name not in errors and len(texts[name].split()) < 3] == []


def test_each_field_of_each_class_has_a_meaning(sections):
    silent = []
    for part in re.split(r"^### ", sections["dicast"], flags=re.MULTILINE)[1:]:
        fields = part.partition("| field | type | default | |")[2].partition("\n\n")[0]
        silent += [f"{part.split()[0]} {row}" for row in fields.splitlines() if row.endswith("| |")]
    assert silent == []


def test_each_public_name_can_be_imported():
    assert [name for name in dicast.__all__ if not hasattr(dicast, name)] == []
