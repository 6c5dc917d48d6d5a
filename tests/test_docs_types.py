"""The Python of the pages for authors passes strict type checkers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = [
    DOCS / "reference" / "hooks.md",
    DOCS / "reference" / "authors.md",
    *(DOCS / "how-to" / name for name in ("plugins.md", "judge-plugin.md", "own-metric.md", "plugin-topics.md")),
]
BLOCK = re.compile(
    r"^```python(?: title=\"(?P<title>[^\"]+)\"(?P<append> append)?)?\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)

pytestmark = pytest.mark.slow


def modules(page):
    """Return the Python of *page* by file name: a block with a title is a file, and the other blocks are one module, in their order.

    Each line has the line number that it has on the page, so that an error is found there.
    """
    text = page.read_text(encoding="utf-8")
    lines = {}
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start("code")) + 1
        name = block["title"] or f"{page.stem.replace('-', '_')}.py"
        if block["title"] and not block["append"]:
            lines.pop(name, None)
        lines.setdefault(name, {}).update(enumerate(block["code"].splitlines(), first))
    return {
        name: without_replaced_hooks([numbered.get(number, "") for number in range(1, max(numbered) + 1)])
        for name, numbered in lines.items()
        if name.endswith(".py")
    }


def without_replaced_hooks(lines):
    """Return *lines* as a module, without a hook that a later block of the page writes anew."""
    last = {}
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("dicast_"):
            if replaced := last.get(node.name):
                first = min([replaced.lineno, *(decorator.lineno for decorator in replaced.decorator_list)])
                lines[first - 1 : replaced.end_lineno] = [""] * (replaced.end_lineno - first + 1)
            last[node.name] = node
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write the modules of all pages, one folder a page; return the folder of each page."""
    folders = {}
    for page in PAGES:
        if page.exists():
            folder = folders[page] = tmp_path_factory.mktemp(page.stem.replace("-", "_"))
            for name, code in modules(page).items():
                (folder / name).write_text(code, encoding="utf-8")
    return folders


def listed(errors):
    return "\n".join(f"{path.name}:{line}: {message}" for path, line, message in errors)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_of_a_page_passes_strict_mypy(page, written, type_checkers):
    if not (page in written and (files := [*written[page].glob("*.py")])):
        pytest.skip("the page has no Python")
    errors = type_checkers.mypy_errors(*files)
    assert not errors, listed(errors)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_of_a_page_passes_strict_basedpyright(page, written, type_checkers, tmp_path):
    if not (page in written and (files := [*written[page].glob("*.py")])):
        pytest.skip("the page has no Python")
    errors = type_checkers.basedpyright_errors(
        tmp_path, *files, reportDuplicateImport=False
    )  # each section has its imports
    assert not errors, listed(errors)
