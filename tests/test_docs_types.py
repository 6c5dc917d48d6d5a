"""The Python of the pages for authors passes strict type checkers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = sorted((ROOT / "examples" / "third-party").glob("*/src"))
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/start/own-metric.md",
        *(f"docs/concepts/{name}.md" for name in ("budget", "judges")),
        "docs/reference/hooks.md",
        *(
            f"docs/how-to/{name}.md"
            for name in (
                "agreement",
                "commands",
                "evaluator-judges",
                "executors",
                "experiments",
                "judge-plugin",
                "juries",
                "optimisation",
                "plugin-topics",
                "plugins",
                "rubrics",
                "write-a-reader",
            )
        ),
    )
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
        folder = folders[page] = tmp_path_factory.mktemp(page.stem.replace("-", "_"))
        for name, code in modules(page).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(code, encoding="utf-8")
    return folders


@pytest.fixture(scope="module")
def pyright_errors(type_checkers, written, tmp_path_factory):
    """Return the errors of all pages; each section of a page has its own imports."""
    folder = tmp_path_factory.mktemp("settings")
    paths = [str(page / "src") for page in written.values()]
    return type_checkers.basedpyright_errors(folder, *written.values(), extraPaths=paths, reportDuplicateImport=False)


def listed(errors):
    return "\n".join(f"{path.name}:{line}: {message}" for path, line, message in errors)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_of_a_page_passes_strict_mypy(page, written, type_checkers):
    errors = type_checkers.mypy_errors(*written[page].rglob("*.py"), search=[written[page] / "src"])
    assert not errors, listed(errors)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_of_a_page_passes_strict_basedpyright(page, written, pyright_errors):
    assert [*written[page].rglob("*.py")]
    errors = [error for error in pyright_errors if error[0].is_relative_to(written[page].resolve())]
    assert not errors, listed(errors)


def test_packages_of_third_parties_pass_strict_type_checkers(type_checkers, tmp_path):
    assert PACKAGES
    errors = [error for package in PACKAGES for error in type_checkers.mypy_errors(package)]
    errors += type_checkers.basedpyright_errors(tmp_path, *PACKAGES)
    assert not errors, listed(errors)
