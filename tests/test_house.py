"""The kernel's house: no import circle, few names with two meanings, and a short way for a row."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOVES, ENTERED, TWICE = 23, 103, 17
"""Bars for a row's moves between modules, two of them for the scan for secrets, modules that a run enters, and names defined twice."""


@pytest.fixture(scope="module")
def house():
    spec = importlib.util.spec_from_file_location("house", ROOT / "benchmarks" / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_no_modules_import_one_another_in_functions_and_for_type_checking_included(house):
    assert house.circles(house.sources()) == []


def test_a_circle_through_imports_for_type_checking_is_found(house, tmp_path):
    one, two, three = (tmp_path / f"{name}.py" for name in ("one", "two", "three"))
    one.write_text("from two import x\n")
    two.write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from one import y\n")
    three.write_text("import one\ndef later():\n    import three\n")
    assert house.circles({"one": one, "two": two, "three": three}) == [["one", "two"]]


def test_a_circle_through_imports_inside_functions_is_found(house, tmp_path):
    one, two, three = (tmp_path / f"{name}.py" for name in ("one", "two", "three"))
    one.write_text("def later():\n    from two import x\n    import three\n")
    two.write_text("class Y:\n    async def open(self):\n        import one\n")
    three.write_text("import os\n")
    assert house.circles({"one": one, "two": two, "three": three}) == [["one", "two"]]


def test_few_names_are_defined_in_two_modules(house):
    found = house.homonyms(house.sources())
    assert "settled" not in found  # of a plugin: only the kernel counts
    assert len(found) <= TWICE, found


def test_the_route_of_a_row_stays_short(house):
    each, entered = house.moves()
    assert 0 < each <= MOVES
    assert entered <= ENTERED
