"""Bars for the language of docstrings, names, messages and pages.

A room is a folder of code or of pages. Its figures:

- ``pointing``: percent of docstrings whose first paragraph has a pointing word ("what", "whoever", "those that").
- ``openers``: percent of docstrings that begin with a word like "Whether" or "Those".
- ``listed``: words of ``LISTED`` in docstrings.
- ``names``: percent of new names that are participles or pronouns.
- ``messages``: words of ``LISTED`` in texts that are raised, reported or shown as help.
- ``pages``: percent of sentences with a pointing word; text in backticks and code blocks does not count.
- ``page_words``: words of ``LISTED`` in pages.

``word_bars.toml`` has the bars of rooms that miss the common bar. A bar must fall with its figure. To lower all of them:

    uv run python tests/test_words.py
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("word_bars.toml")
BARS = {"pointing": 2.0, "openers": 2.0, "listed": 0, "names": 0.5, "messages": 0, "pages": 3.0, "page_words": 0}
SLACK = 1.1
"""How far a bar of ``word_bars.toml`` may lie above its figure."""

POINTING = re.compile(
    r"\b(what|whatever|whoever|those (that|which|who|of)|the ones? that|of which|none of (it|them|those))\b",
    re.IGNORECASE,
)
OPENERS = re.compile(r"(what|whether|those|as|none of)\b", re.IGNORECASE)
LISTED = re.compile(
    r"\b(dear(er)?|likeness|begun|(?<!instead )of before|whoever|beside(?! the point)|told|stands?(?! for\b| in for\b)"
    r"|thereof|mend(s|ed)?|heeds?|hears)\b",
    re.IGNORECASE,
)
NAMES = re.compile(
    r"apart|asked|at_once|began|begun|beside|besides|each|ended|found|further|given|held|here|kept|known|less|made|many|more|much"
    r"|one|others|own|said|same|shown|such|taken|there|those|told|took|wanted|whole"
)
CODE = re.compile(r"``?[^`]*``?|:\w+:`[^`]*`")
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
SENTENCES = re.compile(r"(?<=[.!?])\s+|\n\n|\|")
UNMEASURED = {"templates", "_vendor", "node_modules", ".venv", "build", "adr"}
"""Folders that are not measured; records of decisions are history, in the words of their day."""

MESSAGE_CALLS = frozenset(
    ["Failure", "Fault", "Problem", "echo", "fault", "note", "problem", "refuse", "style", "warn"]
)
"""Calls whose texts a user reads; calls of a name that ends in ``Error`` count too, and everything inside ``raise``."""

Nodes = Sequence[ast.AST]
"""All nodes of a module, in the order of :func:`ast.walk`, which takes most of the time."""

Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def rooms() -> list[str]:
    """Return the folders that have bars of their own, relative to the repository."""
    kernel = ROOT / "framework" / "dicast" / "_kernel"
    folders = [path for path in kernel.iterdir() if path.is_dir()]
    folders += [path for path in kernel.parent.iterdir() if path.is_dir()]
    folders += [path.parent for part in ("plugins", "contrib") for path in (ROOT / part).glob("*/pyproject.toml")]
    folders += [ROOT / "framework", ROOT / "docs", *(path for path in (ROOT / "docs").iterdir() if path.is_dir())]
    outside = {"__pycache__", "pictures"} | UNMEASURED
    return sorted({str(path.relative_to(ROOT)) for path in folders if path.name not in outside} | {"."})


def files(room: str, pattern: str) -> list[Path]:
    """Return the files of *room*, without files of rooms inside it; the room ``.`` has the pages of the top folder."""
    if room == ".":
        return sorted(ROOT.glob(pattern)) if pattern == "*.md" else []
    inner = [ROOT / other for other in rooms() if other.startswith(f"{room}/")]
    paths = [path for path in (ROOT / room).rglob(pattern) if not UNMEASURED & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if not any(path.is_relative_to(folder) for folder in inner))


def plain(text: str) -> str:
    """Return *text* with an ``x`` in place of each piece of code."""
    return CODE.sub("x", text)


def docstrings(nodes: Nodes) -> Iterator[str]:
    """Yield the docstrings of the module and of its classes and functions."""
    for node in nodes:
        if isinstance(node, Definition) and (text := ast.get_docstring(node)):
            yield text


def names(nodes: Nodes) -> Iterator[str]:
    """Yield each name that the module assigns, takes as an argument or defines."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def messages(nodes: Nodes) -> set[str]:
    """Return the texts that the module raises, reports or shows as help of a command."""
    places: list[ast.AST] = []
    for node in nodes:
        if isinstance(node, ast.Raise):
            places.append(node)
        elif isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in MESSAGE_CALLS or name.endswith("Error"):
                places.append(node)
            places += [keyword for keyword in node.keywords if keyword.arg in {"help", "epilog", "short_help"}]
    constants = {node for place in places for node in ast.walk(place) if isinstance(node, ast.Constant)}
    return {f"{node.lineno}: {node.value}" for node in constants if isinstance(node.value, str)}


def percent(count: int, total: int) -> float:
    """Return *count* as percent of *total*, with one decimal; 0 of nothing is 0."""
    return round(100 * count / max(1, total), 1)


def code_figures(modules: list[Nodes], published: list[Nodes]) -> dict[str, float]:
    """Return the figures of modules; only the *published* ones have messages for users."""
    texts = [text for nodes in modules for text in docstrings(nodes)]
    firsts = [plain(" ".join(text.split("\n\n")[0].split())) for text in texts]
    words = [name.strip("_").lower() for nodes in modules for name in names(nodes)]
    return {
        "pointing": percent(sum(bool(POINTING.search(first)) for first in firsts), len(firsts)),
        "openers": percent(sum(bool(OPENERS.match(first)) for first in firsts), len(firsts)),
        "listed": sum(len(LISTED.findall(plain(text))) for text in texts),
        "names": percent(sum(bool(NAMES.fullmatch(word)) for word in words), len(words)),
        "messages": sum(len(LISTED.findall(plain(text))) for nodes in published for text in messages(nodes)),
    }


def page_figures(texts: list[str]) -> dict[str, float]:
    """Return the figures of pages in Markdown."""
    prose = [plain(FENCE.sub("", text)) for text in texts]
    sentences = [part for text in prose for part in SENTENCES.split(text) if len(part.split()) > 3]
    return {
        "pages": percent(sum(bool(POINTING.search(sentence)) for sentence in sentences), len(sentences)),
        "page_words": sum(len(LISTED.findall(text)) for text in prose),
    }


@cache
def figures(room: str) -> dict[str, float]:
    """Return the figures of *room* by name."""
    modules = {path: [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))] for path in files(room, "*.py")}
    published = [nodes for path, nodes in modules.items() if "tests" not in path.parts]
    pages = [path.read_text(encoding="utf-8") for path in files(room, "*.md")]
    return code_figures([*modules.values()], published) | page_figures(pages)


def exceptions() -> dict[str, dict[str, float]]:
    """Return the bars of ``word_bars.toml``, by room and figure."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("room", rooms())
def test_a_room_keeps_its_bars(room):
    bars = BARS | exceptions().get(room, {})
    assert {name: figure for name, figure in figures(room).items() if figure > bars[name]} == {}, bars


@pytest.mark.parametrize("room", exceptions())
def test_a_rooms_own_bar_is_needed_and_close_to_its_figure(room):
    slack = {
        name: f"bar {bar}, now {figures(room)[name]}"
        for name, bar in exceptions()[room].items()
        if figures(room)[name] <= BARS[name] or bar > SLACK * figures(room)[name]
    }
    assert slack == {}, "to lower the bars: uv run python tests/test_words.py"


def test_figures_of_code():
    tree = ast.parse(
        '"""What is told."""\n'
        "def found(one, path): \n"
        '    """Return ``what`` it is beside *path*."""\n'
        '    raise ConfigError(f"{path} stands alone. Mend it.")\n'
    )
    nodes = [*ast.walk(tree)]
    assert code_figures([nodes], [nodes]) == {
        "pointing": 50.0,
        "openers": 50.0,
        "listed": 2,
        "names": 66.7,
        "messages": 2,
    }


def test_figures_of_pages():
    text = "The run says what it did. The `told` value is a number.\n\n```text\nwhat the dear beside\n```\n\nIt is dear to us."
    assert page_figures([text]) == {"pages": 33.3, "page_words": 1}


def lowered() -> dict[str, dict[str, float]]:
    """Return the bars that are needed today, none above its bar in the file."""
    present = exceptions()
    bars: dict[str, dict[str, float]] = {}
    for room in rooms():
        for name, figure in figures(room).items():
            if figure > BARS[name]:
                bars.setdefault(room, {})[name] = min(figure, present.get(room, {}).get(name, figure))
    return bars


def write(bars: dict[str, dict[str, float]]) -> None:
    """Write *bars* as ``word_bars.toml``, a line for each room."""
    lines = ["# Written by tests/test_words.py: the bars of rooms that miss a common bar of that file."]
    lines += [
        f'"{room}" = {{{", ".join(f"{name} = {bar}" for name, bar in room_bars.items())}}}'
        for room, room_bars in bars.items()
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(lowered())
    sys.stdout.write(FILE.read_text(encoding="utf-8"))
