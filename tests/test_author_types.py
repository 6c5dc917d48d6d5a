"""Type checkers accept right components of an author, and refuse wrong ones at the right line."""

from __future__ import annotations

from pathlib import Path

import pytest

COMPONENTS = Path(__file__).with_name("author_types") / "components.py"
MARKED = {number for number, line in enumerate(COMPONENTS.read_text().splitlines(), 1) if line.endswith("  # error")}

pytestmark = pytest.mark.slow


def test_mypy_refuses_exactly_the_marked_lines(type_checkers):
    assert {line for _, line, _ in type_checkers.mypy_errors(COMPONENTS)} == MARKED


def test_basedpyright_refuses_exactly_the_marked_lines(type_checkers, tmp_path):
    assert {line for _, line, _ in type_checkers.basedpyright_errors(tmp_path, COMPONENTS)} == MARKED


def test_a_misspelled_option_is_named_with_the_nearest_option(type_checkers):
    lines = COMPONENTS.read_text().splitlines()
    messages = {lines[line - 1]: message for _, line, message in type_checkers.mypy_errors(COMPONENTS)}
    assert 'did you mean "words"' in messages["brevity(word=3)  # error"]
